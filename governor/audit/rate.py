"""Adds up what would flood the log: refusals that anybody can cause, as totals of a minute."""

import re
from datetime import datetime

from governor.audit.record import AuditEvent, Entry, instant

OTHER = "other"
"""The kind of all that comes under no kind of ours, or under too many in one minute."""

_KIND = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)
_MOST_KINDS = 256
"""Distinct (kind, peer) in one minute, so that a flood cannot fill memory or log by variety."""


class Totals:
    """Refusals of the minute under way, by kind and (where the sender is known) peer.

    `add` and `flush` return the entries of a minute that is over, for the caller to append; call
    `flush` at each tick, and with `stopping` at the end, so that no minute stays unwritten.
    """

    def __init__(self) -> None:
        self._minute: datetime | None = None
        self._counts: dict[tuple[str, str | None], int] = {}

    def add(self, kind: str, now: datetime, peer: str | None = None) -> list[Entry]:
        """Count one refusal, and return the entries of the minute before if it is over."""
        entries = self.flush(now)
        self._minute = _minute(now)
        key = (kind if _KIND.fullmatch(kind) else OTHER, peer)
        if key not in self._counts and len(self._counts) >= _MOST_KINDS:
            key = (OTHER, None)
        self._counts[key] = self._counts.get(key, 0) + 1
        return entries

    def flush(self, now: datetime, *, stopping: bool = False) -> list[Entry]:
        """Return one entry for each kind and peer if the minute counted in is over, or at the end."""
        if self._minute is None or (self._minute == _minute(now) and not stopping):
            return []
        entries = [
            Entry(
                AuditEvent.WEBHOOK_REFUSED,
                direction="in",
                peer=peer,
                reason=kind,
                detail={"count": count, "minute": instant(self._minute)},
            )
            for (kind, peer), count in self._counts.items()
        ]
        self._minute, self._counts = None, {}
        return entries


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
