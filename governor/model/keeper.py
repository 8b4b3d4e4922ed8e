"""Keeps the model's server going beside the governor: a child process, begun anew when it dies."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import structlog

from governor.clock import Clock
from governor.model.serving import READY

FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 60.0
READY_WITHIN_S: Final = 600.0
"""How long a server may take to load its file and to read the prompt, in seconds."""

_LINE: Final = 4_096
_LAST_WORD_S: Final = 1.0
_PASSED_ON: Final = ("HOME", "LANG", "TMPDIR", "PYTHONPATH")

log = structlog.get_logger(__name__)


def serve_command(python: str, file: Path, place: Path) -> list[str]:
    """Return the argv of a server that ends with this process."""
    words = ["model", "serve", "--file", str(file), "--socket", str(place), "--parent", str(os.getpid())]
    return [python, "-m", "governor.cli.main", *words]


def environment() -> dict[str, str]:
    """Return what a server is started with: where things are, and no key of anybody's."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


class ModelKeeper:
    """Runs one server by its argv. `on_change` is called when it becomes ready."""

    def __init__(
        self,
        command: Sequence[str],
        clock: Clock,
        on_change: Callable[[], None] = lambda: None,
        *,
        first_rest: float = FIRST_REST_S,
        ready_within: float = READY_WITHIN_S,
    ) -> None:
        self._command, self._clock, self._on_change = command, clock, on_change
        self._first_rest, self._ready_within = first_rest, ready_within
        self.is_ready = False

    async def run(self) -> None:
        """Keep a server running until cancelled; then there is none."""
        rest = self._first_rest
        while True:
            began = self._clock.monotonic()
            how = await self._serve_once()
            if self._clock.monotonic() - began > LONGEST_REST_S:
                rest = self._first_rest
            log.error("model_server_ended", how=how, again_in=rest)
            await asyncio.sleep(rest)
            rest = min(2 * rest, LONGEST_REST_S)

    async def _serve_once(self) -> str:
        """Run one server until it ends; return how it did."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment(),
                start_new_session=True,
                limit=_LINE,
            )
        except OSError as error:
            return f"not started: {error.strerror}"
        said = cast("asyncio.StreamReader", child.stdout)
        how = "never ready"
        try:
            if await self._hears_ready(said):
                how = "was ready"
                self.is_ready = True
                log.info("model_ready")
                self._on_change()
                while await said.read(_LINE):  # until its end; a full pipe would halt it
                    pass
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORD_S):
                    how = f"{how}, exit code {await child.wait()}"
        finally:
            self.is_ready = False
            # Shielded: whoever is cancelled in the middle of this must not leave a process behind.
            await asyncio.shield(_bury(child, said))
        return how

    async def _hears_ready(self, said: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(self._ready_within):
                await said.readuntil(READY.encode() + b"\n")
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return False
        return True


async def _bury(child: asyncio.subprocess.Process, said: asyncio.StreamReader) -> None:
    """Kill a child with its group, at once: it has nothing to finish."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    while await said.read(_LINE):  # unread output keeps the pipe open, and wait() waits for the pipe too
        pass
    await child.wait()
