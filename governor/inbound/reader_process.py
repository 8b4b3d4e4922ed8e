"""Runs one reader child for one message: started with nothing, believed in nothing, killed at the end."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple, cast

from governor.errors import ReadingError
from governor.inbound import sandbox_exec
from governor.inbound.model_broker import Broker, ModelCall
from governor.inbound.reader_locks import Sandbox, locks_needed
from reader import contract
from reader.contract import Drop, Job, Mode, Rewrite

DEADLINE: Final = timedelta(seconds=60)

LOCKS_NEEDED: Final = locks_needed(Sandbox.REQUIRED)

_BURIAL_SECONDS: Final = 5
"""How long a killed child may take to be gone; the kernel needs milliseconds."""


def child_command(locks: frozenset[str] = LOCKS_NEEDED) -> list[str]:
    """Return the argv of a reader child of this process that can be held by these locks.

    Isolated, without site-packages: its path is the standard library, and for the time of the
    imports the folder that holds `reader`, behind it. It lives too briefly to collect garbage.
    """
    reader = Path(contract.__file__).parent
    code = (
        f"import gc, sys; gc.disable(); sys.path.append({str(reader.parent)!r}); "
        f"from reader.__main__ import main; sys.path.pop(); main({os.getpid()})"
    )
    confined = sandbox_exec.prefix(reader) if "sandbox_exec" in locks else []
    return [*confined, sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", code]


async def read_message(
    job: Job,
    broker: Broker | None,
    *,
    deadline: timedelta = DEADLINE,
    on_call: Callable[[ModelCall], None] = lambda _call: None,
    locks: frozenset[str] = LOCKS_NEEDED,
    command: Sequence[str] | None = None,
) -> Rewrite:
    """Return what a reader of its own makes of one message, once at least `locks` hold it.

    Raises ReadingError with one of `reader.contract.DROPS` for everything else, and leaves no
    process behind, whatever happens, cancellation included. `on_call` hears of the model call.
    The loop's thread must outlive the read: on Linux the child dies with the thread that started it.
    """
    if job.mode is Mode.REWRITE and broker is None:
        raise ReadingError("no_model")
    line = contract.job_line(job)
    if len(line) > contract.JOB_BYTES:
        raise ReadingError("too_long")
    try:
        async with (
            asyncio.timeout(deadline.total_seconds()),
            _child(command or child_command(locks)) as pipes,
        ):
            if not locks <= (await _hear_locks(pipes)).keys():
                raise ReadingError("not_locked")
            return await _Conversation(pipes, job, broker, on_call).hold(line)
    except TimeoutError:
        raise ReadingError("timeout") from None
    except OSError as error:
        raise ReadingError("child_died", f"not started: {error.strerror}") from None


async def try_locks(locks: frozenset[str], command: Sequence[str] | None = None) -> dict[str, int]:
    """Start a child that may be held by these locks and gets no message; return those that held it.

    By name, with their degree. None held it where it could not start or said nothing that fits.
    """
    try:
        async with (
            asyncio.timeout(DEADLINE.total_seconds()),
            _child(command or child_command(locks)) as pipes,
        ):
            return await _hear_locks(pipes)
    except (ReadingError, TimeoutError, OSError):
        return {}


class _Pipes(NamedTuple):
    """The two ends of the governor's, and nothing else of the child."""

    hear: asyncio.StreamReader
    say: asyncio.StreamWriter


@contextlib.asynccontextmanager
async def _child(command: Sequence[str]) -> AsyncIterator[_Pipes]:
    """Start a child with pipes and nothing else; at the end kill it with its group and bury it."""
    with tempfile.TemporaryDirectory(prefix="reader-") as empty:
        child = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # a traceback would quote the message
            env={},
            cwd=empty,
            close_fds=True,
            start_new_session=True,
            limit=contract.ASK_BYTES,
        )
        pipes = _Pipes(cast("asyncio.StreamReader", child.stdout), cast("asyncio.StreamWriter", child.stdin))
        try:
            yield pipes
        finally:
            # Shielded: whoever is cancelled in the middle of this must not leave a process behind.
            await asyncio.shield(_bury(child, pipes))


async def _bury(child: asyncio.subprocess.Process, pipes: _Pipes) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    pipes.say.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_BURIAL_SECONDS):
            # Unread output keeps the pipe open, and wait() waits for the pipe too.
            while await pipes.hear.read(contract.ASK_BYTES):
                pass
            await child.wait()


async def _hear_locks(pipes: _Pipes) -> dict[str, int]:
    held = contract.parse_locked(await _hear(pipes, contract.LOCKED_BYTES, at_end="not_locked"))
    if held is None:
        raise ReadingError("not_locked")
    return held


async def _hear(pipes: _Pipes, most: int, *, at_end: str = "child_died") -> bytes:
    try:
        line = await pipes.hear.readuntil(b"\n")
    except asyncio.IncompleteReadError:
        raise ReadingError(at_end) from None
    except asyncio.LimitOverrunError:
        raise ReadingError("flood") from None
    if len(line) > most:
        raise ReadingError("flood")
    return line


class _Conversation:
    """The governor's side of the protocol, with one child about one message."""

    def __init__(
        self, pipes: _Pipes, job: Job, broker: Broker | None, on_call: Callable[[ModelCall], None]
    ) -> None:
        self._pipes = pipes
        self._job = job
        self._broker = broker
        self._on_call = on_call

    async def hold(self, job_line: bytes) -> Rewrite:
        """Hand over the job, put the child's one question to the model, and judge the verdict."""
        await self._say(job_line)
        line = await _hear(self._pipes, contract.ASK_BYTES)
        question = contract.parse_ask(line)
        if question is not None:
            await self._say(contract.answer_line(await self._asked(question)))
            line = await _hear(self._pipes, contract.VERDICT_BYTES)
        verdict = contract.parse_verdict(line, self._job)
        if isinstance(verdict, Drop):
            raise ReadingError(verdict.code)
        return verdict

    async def _asked(self, question: str) -> str:
        if self._broker is None or self._job.mode is not Mode.REWRITE:
            raise ReadingError("protocol", "a question in a mode without a model")
        return await self._broker.ask(question, self._on_call)

    async def _say(self, line: bytes) -> None:
        try:
            self._pipes.say.write(line)
            await self._pipes.say.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise ReadingError("child_died") from None
