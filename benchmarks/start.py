"""How long a reader takes beside the model: a fresh child, a waiting one, and the floors of both."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from statistics import median
from typing import Any

from benchmarks.models import HONEST
from benchmarks.reading import DoubleBroker, asked, job_of, read_there
from benchmarks.texts import Text
from governor.clock import Clock
from governor.inbound.reader_process import child_command
from reader.contract import answer_line, job_line

_TEXT = Text(
    "start",
    "own",
    hostile=False,
    text="The login test in tests/test_login.py:88 fails since v2.4.1. Could you look at PR #482 before Friday?",
    goal="",
)
_PAUSE_S = 0.1
_BARE = [sys.executable, "-I", "-S", "-c", "import json, re, unicodedata"]


async def measure(count: int, clock: Clock) -> dict[str, Any]:
    """Return milliseconds (p50): bare child, fresh reader, message through a waiting reader."""
    floor = await _p50(count, clock, _bare)
    fresh = await _p50(count, clock, lambda: _fresh(clock))
    waiting = median([await _through_a_waiting_child(clock) for _ in range(count)])
    return {
        "bare_child_ms": round(floor * 1000, 2),
        "fresh_reader_ms": round(fresh * 1000, 2),
        "fresh_by_bare": round(fresh / floor, 2),
        "waiting_reader_ms": round(waiting * 1000, 2),
    }


async def _p50(count: int, clock: Clock, work: Callable[[], Awaitable[object]]) -> float:
    taken = []
    for _ in range(count):
        await asyncio.sleep(_PAUSE_S)
        started = clock.monotonic()
        await work()
        taken.append(clock.monotonic() - started)
    return median(taken)


async def _bare() -> None:
    child = await asyncio.create_subprocess_exec(*_BARE, env={}, stdin=asyncio.subprocess.DEVNULL)
    await child.wait()


async def _fresh(clock: Clock) -> None:
    outcome = await read_there(
        _TEXT, "honest", DoubleBroker(HONEST["retold"], ""), clock, timedelta(seconds=60)
    )
    if not outcome.shown:
        raise RuntimeError(f"the reader dropped an ordinary message: {outcome.code}")


async def _through_a_waiting_child(clock: Clock) -> float:
    """Return the seconds from the job to the verdict of a child that was locked before."""
    job = job_of(_TEXT)
    child = await asyncio.create_subprocess_exec(
        *child_command(),
        env={},
        cwd=os.sep,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    hear, say = child.stdout, child.stdin
    if hear is None or say is None:  # pipes were asked for
        raise RuntimeError("the child has no pipes")
    try:
        await hear.readline()
        await asyncio.sleep(_PAUSE_S)
        started = clock.monotonic()
        say.write(job_line(job))
        question = json.loads(await hear.readline())["text"]
        say.write(answer_line(HONEST["retold"](*asked(question), "")))
        verdict = json.loads(await hear.readline())
        taken = clock.monotonic() - started
    finally:
        say.close()
        await child.wait()
    if "drop" in verdict:
        raise RuntimeError(f"the reader dropped an ordinary message: {verdict['drop']}")
    return taken
