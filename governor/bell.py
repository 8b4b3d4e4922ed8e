"""A bell that wakes every waiter: rows changed, look again. It carries nothing, so nothing can be lost."""

import asyncio


class Bell:
    """Rung after a commit; whoever waits looks at the database again."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait now."""
        self._rung.set()
        self._rung = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or after this many seconds."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return
