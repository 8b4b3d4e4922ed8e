"""How loops go on when the database fails, and how a process ends that cannot."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import structlog

from governor.clock import SystemClock
from governor.errors import ConfigError, StoreError
from governor.lifetime import Loops, innermost
from governor.supervision.telegram_errors import MovedError


@pytest.fixture
async def loops() -> AsyncIterator[Loops]:
    loops = Loops(SystemClock(), first_rest=0.01)
    ticking = asyncio.create_task(_ticks(loops))
    with structlog.testing.capture_logs():
        yield loops
    ticking.cancel()


async def _ticks(loops: Loops) -> None:
    while True:
        loops.ticked()
        await asyncio.sleep(0.01)


async def test_a_loop_that_the_database_fails_begins_anew(loops: Loops) -> None:
    failures = [StoreError("full"), ExceptionGroup("both", [StoreError("held"), MovedError(-7)])]

    async def loop() -> None:
        if failures:
            raise failures.pop()

    await asyncio.wait_for(loops.keep(loop), 30)
    assert failures == []


async def test_it_begins_anew_only_after_a_tick() -> None:
    loops, begun = Loops(SystemClock(), first_rest=0.01), 0

    async def loop() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            raise StoreError("full")

    with structlog.testing.capture_logs() as logged:
        kept = asyncio.create_task(loops.keep(loop))
        while not logged:  # noqa: ASYNC110 - the log has no event to wait for
            await asyncio.sleep(0)
        loops.ticked()  # too early: it still rests
        await asyncio.sleep(0.1)
        assert begun == 1
        loops.ticked()
        await asyncio.wait_for(kept, 30)
    assert begun == 2
    assert [line["error"] for line in logged] == ["full"]


async def test_the_rests_grow() -> None:
    loops, left = Loops(SystemClock(), first_rest=0.01, longest_rest=0.04), 5

    async def loop() -> None:
        nonlocal left
        left -= 1
        if left:
            raise StoreError("full")

    ticking = asyncio.create_task(_ticks(loops))
    with structlog.testing.capture_logs() as logged:
        await asyncio.wait_for(loops.keep(loop), 30)
    ticking.cancel()
    assert [line["again_in"] for line in logged] == [0.01, 0.02, 0.04, 0.04]


@pytest.mark.parametrize("group", [False, True])
async def test_what_else_breaks_a_loop_is_raised(loops: Loops, *, group: bool) -> None:
    error = ConfigError("the token is unknown")

    async def loop() -> None:
        raise ExceptionGroup("loops", [error, StoreError("full")]) if group else error

    with pytest.raises(ConfigError) as caught:
        await loops.keep(loop)
    assert caught.value is error


def test_the_innermost_of_groups_is_the_first() -> None:
    error = KeyError("a")
    assert innermost(ExceptionGroup("x", [ExceptionGroup("y", [error]), ValueError()])) is error
    assert innermost(error) is error


STUCK = """
import sys, time
from governor.clock import SystemClock
from governor.lifetime import TimelyEnd
from governor.logs import write_logs
write_logs(SystemClock())
with TimelyEnd(0.2).awaited() as end:
    end.begin()
    end.code = int(sys.argv[1])
    time.sleep(60)
"""


@pytest.mark.parametrize("code", [1, 0])
def test_an_end_that_hangs_is_ended(code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK, str(code)], capture_output=True, timeout=50, check=False
    )
    assert done.returncode == code
    assert (b"ended_by_force" in done.stderr) is (code == 1)
