"""A bell that wakes every waiter: rows changed, look again. It carries nothing, so nothing can be lost."""

import asyncio
import contextlib


class Bell:
    """Rung after a commit; whoever waits looks at the database again."""

    def __init__(self) -> None:
        self.is_over = False
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now."""
        self._rung.set()
        self._rung = asyncio.Event()

    def ring_out(self) -> None:
        """Ring for the last time, as the governor ends: who waits for long must not keep it."""
        self.is_over = True
        self.ring()

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or after this many seconds."""
        with contextlib.suppress(TimeoutError):
            # Not `wait_for`: before Python 3.12 it swallows a cancellation that comes with the ring.
            async with asyncio.timeout(seconds):
                await self._rung.wait()
