"""Refusals that somebody could cause again and again: they must not flood the log, nor go unseen.

Of an authenticated peer, the first refusal of a kind in a minute is a record; what follows it, and
all that is not authenticated, only counts. A minute's counts become records when it is over.
"""

from collections import Counter, defaultdict
from datetime import datetime, timedelta

from sqlmodel import col, select

from governor.audit.log import append
from governor.audit.rate import Totals
from governor.audit.record import Entry
from governor.directory.notices import notify
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import UnitOfWork

FLOOD = 100
"""Refusals in a minute from which the operators are told."""

_UNWRITTEN_LIMIT = 1_000
"""Entries that wait for the database, so that its failure does not fill the memory."""


def note_refusal(uow: UnitOfWork, now: datetime, entry: Entry) -> bool:
    """Record the refusal if it is the first of its kind in a minute; False: it is only to be counted."""
    same = (
        select(AuditRecord.seq)
        .where(
            col(AuditRecord.at) > now - timedelta(minutes=1),
            AuditRecord.event == entry.event,
            AuditRecord.peer == entry.peer,
            AuditRecord.reason == entry.reason,
        )
        .limit(1)
    )
    if uow.session.exec(same).first() is not None:
        return False
    append(uow, now, entry)
    return True


class Refusals:
    """The counts of the minute under way; used by the event loop's thread alone."""

    def __init__(self) -> None:
        self._totals = Totals()
        self._unwritten: list[Entry] = []

    def count(self, kind: str, now: datetime, peer: str | None = None) -> None:
        """Count one refusal; needs no database, so that no refusal can fail for want of it."""
        self._keep(self._totals.add(kind, now, peer))

    def take(self, now: datetime, *, stopping: bool = False) -> list[Entry]:
        """Return the entries of the minutes that are over, to be written; `give_back` what was not."""
        self._keep(self._totals.flush(now, stopping=stopping))
        taken, self._unwritten = self._unwritten, []
        return taken

    def give_back(self, entries: list[Entry]) -> None:
        """Take back what could not be written."""
        self._keep(entries)

    def _keep(self, entries: list[Entry]) -> None:
        self._unwritten = (self._unwritten + entries)[-_UNWRITTEN_LIMIT:]


def write_counts(uow: UnitOfWork, now: datetime, entries: list[Entry]) -> None:
    """Append the entries, and tell the operators once of each minute that was a flood."""
    minutes: dict[object, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        append(uow, now, entry)
        detail = entry.detail or {}
        minutes[detail.get("minute")][entry.peer or "senders unknown"] += int(detail.get("count") or 0)
    for counts in minutes.values():
        if counts.total() >= FLOOD:
            most, count = counts.most_common(1)[0]
            notify(
                uow,
                now,
                f"Flood: {counts.total()} webhooks were refused in a minute, {count} of them of {most}.",
            )
