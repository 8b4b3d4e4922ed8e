"""How a governor goes on and how it ends: signals, loops that begin anew, an end that comes in time."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import structlog

from governor.clock import Clock
from governor.errors import StoreError
from governor.logs import log_unhandled

FIRST_REST_S: Final = 1.0
LONGEST_REST_S: Final = 60.0

log = structlog.get_logger(__name__)

Loop = Callable[[], Awaitable[None]]


class Signals:
    """What other processes tell this one: to end (SIGTERM, SIGINT), or to stop all links (SIGUSR1)."""

    def __init__(self) -> None:
        self.ending, self.stop = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_unhandled)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ending.set)
        loop.add_signal_handler(signal.SIGUSR1, self.stop.set)


class Loops:
    """Keeps loops going. A loop that the database fails commits nothing, so nothing passes meanwhile.

    It begins anew after a rest (in seconds, each time longer up to a limit) and then only after the next
    tick that succeeds: what the tick looks after (a file STOP, a deadline) waited for the database too,
    and comes first.
    """

    def __init__(
        self, clock: Clock, *, first_rest: float = FIRST_REST_S, longest_rest: float = LONGEST_REST_S
    ) -> None:
        self._clock, self._first_rest, self._longest_rest = clock, first_rest, longest_rest
        self._tick = asyncio.Event()

    def ticked(self) -> None:
        """Note that a tick succeeded."""
        self._tick.set()
        self._tick = asyncio.Event()

    async def keep(self, loop: Loop) -> None:
        """Run a loop until it ends of itself; raises what breaks it, if it is not the database."""
        rest = self._first_rest
        while True:
            began = self._clock.monotonic()
            try:
                await loop()
            except Exception as error:  # noqa: BLE001 - the loop may be a group of tasks; looked at below
                failure = innermost(error)
                if not isinstance(failure, StoreError):
                    raise failure from None
            else:
                return
            if self._clock.monotonic() - began > self._longest_rest:
                rest = self._first_rest
            log.error("store_failed", error=failure.message, again_in=rest)
            await asyncio.sleep(rest)
            await self._tick.wait()
            rest = min(2 * rest, self._longest_rest)


def innermost(error: BaseException) -> BaseException:
    """Return the first error in a group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class TimelyEnd:
    """Ends the process by force when its end, once begun, takes too long: a thread may wait for a disk.

    Nothing is lost by that: what counts is committed, and the next start recovers as after a crash. `code`
    is the exit code then.
    """

    def __init__(self, seconds: float) -> None:
        self.code = 1
        self._timer = threading.Timer(seconds, self._by_force)
        self._timer.daemon = True

    def begin(self) -> None:
        """Start counting."""
        self._timer.start()

    @contextlib.contextmanager
    def awaited(self) -> Iterator["TimelyEnd"]:
        """Stop counting at the end of the block."""
        try:
            yield self
        finally:
            self._timer.cancel()

    def _by_force(self) -> None:
        if self.code:
            log.error("ended_by_force")
        os._exit(self.code)
