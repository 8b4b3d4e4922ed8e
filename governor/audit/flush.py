"""Writes the totals of a minute that is over."""

from collections.abc import Iterable
from datetime import datetime

from governor.audit.log import append
from governor.audit.record import Entry
from governor.store.unit_of_work import Store


def append_all(store: Store, at: datetime, entries: Iterable[Entry]) -> None:
    """Append the entries in one transaction."""
    with store.begin() as uow:
        for entry in entries:
            append(uow, at, entry)
