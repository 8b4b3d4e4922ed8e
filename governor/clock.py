"""The only place that reads the time. Everything else is handed a clock or an instant."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Two clocks: the wall, which people and deadlines share, and one that never goes back."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start; may halt while the machine sleeps."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The clocks of the operating system."""

    def now(self) -> datetime:
        """Return the wall clock as an aware UTC datetime."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()
