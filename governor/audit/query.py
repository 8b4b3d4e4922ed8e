"""Picks records from the log, for people and programs that ask."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import col, select

from governor.audit.record import AuditEvent
from governor.errors import StoreError
from governor.message import Direction
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class Filter:
    """Which records; None asks for all. `since` is included, `until` not. `limit` keeps the newest."""

    since: datetime | None = None
    until: datetime | None = None
    peer: str | None = None
    agent: str | None = None
    direction: Direction | None = None
    event: AuditEvent | None = None
    limit: int | None = None


def select_records(uow: UnitOfWork, wanted: Filter) -> Iterator[AuditRecord]:
    """Give the records one by one, oldest first; raises StoreError at one that cannot be read."""
    newest = (
        select(AuditRecord.seq)
        .where(*_conditions(wanted))
        .order_by(col(AuditRecord.seq).desc())
        .limit(wanted.limit)
    )
    statement = select(AuditRecord).where(col(AuditRecord.seq).in_(newest)).order_by(col(AuditRecord.seq))
    try:
        yield from uow.session.exec(statement.execution_options(yield_per=500))
    except (ValueError, TypeError) as error:
        raise StoreError("an audit record was changed; run `governor audit verify`.") from error


def _conditions(wanted: Filter) -> Iterator[ColumnElement[bool]]:
    if wanted.since is not None:
        yield col(AuditRecord.at) >= wanted.since
    if wanted.until is not None:
        yield col(AuditRecord.at) < wanted.until
    for column in ("peer", "agent", "direction", "event"):
        if (value := getattr(wanted, column)) is not None:
            yield getattr(AuditRecord, column) == str(value)
