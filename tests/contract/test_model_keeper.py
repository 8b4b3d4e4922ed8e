"""The model's server beside a governor: begun, heard, begun anew when it dies, ended with the governor."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from governor.clock import SystemClock
from governor.model.keeper import ModelKeeper, serve_command
from governor.model.serving import READY

WITHIN_S = 60.0
NOTE = """
import json, os, sys, time
with open(sys.argv[1], "a") as notes:
    notes.write(json.dumps([os.getpid(), os.getsid(0), dict(os.environ)]) + "\\n")
"""
SERVES = f"{NOTE}print({READY!r}, flush=True); time.sleep(600)"
DIES = f"{NOTE}sys.exit(3)"
HANGS = f"{NOTE}print('loading', flush=True); time.sleep(600)"
FLOODS = f"{NOTE}\nwhile True: os.write(1, b'x' * 65536)"
TALKS = f"""{NOTE}
print({READY!r}, flush=True)
for _ in range(50):
    sys.stdout.write("x" * 65536)  # more than a pipe holds
sys.stdout.flush()
open(sys.argv[1] + ".on", "w")
time.sleep(600)
"""


class Kept:
    """A keeper at work, and what its servers noted: process id, session, environment."""

    def __init__(self, keeper: ModelKeeper, notes: Path, changes: list[bool]) -> None:
        self.keeper, self.notes, self.changes = keeper, notes, changes

    def seen(self) -> list[tuple[int, int, dict[str, str]]]:
        text = self.notes.read_text() if self.notes.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not true():  # noqa: ASYNC110 - told by other processes
                await asyncio.sleep(0.02)


Keep = Callable[..., "contextlib.AbstractAsyncContextManager[Kept]"]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    @contextlib.asynccontextmanager
    async def keep(
        script: str, python: str = sys.executable, ready_within: float = WITHIN_S
    ) -> AsyncIterator[Kept]:
        notes, changes = tmp_path / "notes", []
        keeper = ModelKeeper(
            [python, "-c", script, str(notes)],
            SystemClock(),
            lambda: changes.append(keeper.is_ready),
            first_rest=0.01,
            ready_within=ready_within,
        )
        task = asyncio.create_task(keeper.run())
        try:
            yield Kept(keeper, notes, changes)
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    return keep


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_a_server_is_begun_apart_and_without_keys(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-governor")
    monkeypatch.setenv("GOVERNOR_READER__KEY", "sk-of-the-governor")
    async with keep(SERVES) as kept:
        assert not kept.keeper.is_ready
        await kept.until(lambda: kept.keeper.is_ready)
        ((pid, session, environment),) = kept.seen()
        assert session == pid != os.getsid(0)
        assert "sk-of-the-governor" not in repr(environment)
        assert environment.keys() <= {"HOME", "LANG", "TMPDIR", "PYTHONPATH", "LC_CTYPE"}
        assert kept.changes == [True]


async def test_it_ends_with_the_keeper(keep: Keep) -> None:
    async with keep(SERVES) as kept:
        await kept.until(lambda: kept.keeper.is_ready)
        ((pid, *_),) = kept.seen()
    assert is_gone(pid)
    assert not kept.keeper.is_ready


async def test_it_ends_with_the_keeper_also_before_it_is_ready(keep: Keep) -> None:
    async with keep(HANGS) as kept:
        await kept.until(lambda: len(kept.seen()) == 1)
        ((pid, *_),) = kept.seen()
    assert is_gone(pid)


async def test_one_that_died_is_begun_anew(keep: Keep) -> None:
    async with keep(SERVES) as kept:
        await kept.until(lambda: kept.keeper.is_ready)
        first = kept.seen()[0][0]
        os.kill(first, signal.SIGKILL)
        await kept.until(lambda: len(kept.seen()) == 2 and kept.keeper.is_ready)
        assert kept.seen()[1][0] != first
        assert kept.changes == [True, True]


@pytest.mark.parametrize(("script", "ready_within"), [(DIES, WITHIN_S), (HANGS, 0.5), (FLOODS, WITHIN_S)])
async def test_one_that_never_gets_ready_is_tried_again(keep: Keep, script: str, ready_within: float) -> None:
    async with keep(script, ready_within=ready_within) as kept:
        await kept.until(lambda: len(kept.seen()) >= 3)
        assert kept.changes == []
        assert not kept.keeper.is_ready
        assert is_gone(kept.seen()[0][0])


async def test_one_that_cannot_be_begun_is_tried_again(
    keep: Keep, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    told = ""
    async with keep(SERVES, python="/nowhere/python") as kept:

        def tried() -> bool:
            nonlocal told
            told += capsys.readouterr().out
            return (told + caplog.text).count("not started") >= 3  # wherever logs are written by now

        await kept.until(tried)
        assert not kept.keeper.is_ready


async def test_what_it_says_once_ready_does_not_halt_it(keep: Keep) -> None:
    async with keep(TALKS) as kept:
        await kept.until(lambda: Path(f"{kept.notes}.on").exists())
        assert kept.keeper.is_ready


def test_the_command_names_file_socket_and_parent() -> None:
    command = serve_command("python", Path("/m.gguf"), Path("/h/model.sock"))
    assert command[:3] == ["python", "-m", "governor.cli.main"]
    assert command[-1] == str(os.getpid())
    assert [command[6], command[8]] == ["/m.gguf", "/h/model.sock"]
