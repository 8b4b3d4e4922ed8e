"""Wait for something, but no longer than until the governor stops."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_DELAY = 60.0
"""Seconds after which a delay stops growing."""


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, T], grace: float = 0.0) -> T | None:
    """Return what `work` returns, or None if `stop` was set first.

    After `stop` the work may go on for `grace` seconds; then it is cancelled. Errors of the work are raised.
    """
    task = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=grace)
        return task.result() if task.done() else None
    finally:
        stopping.cancel()
        task.cancel()
        await asyncio.gather(task, stopping, return_exceptions=True)


def growing_delays() -> Iterator[float]:
    """Yield seconds to wait after each failure in a row: 1, 2, 4 ... up to `LONGEST_DELAY`."""
    delay = 1.0
    while True:
        yield delay
        delay = min(delay * 2, LONGEST_DELAY)
