import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from governor.audit.log import append, genesis
from governor.audit.query import Filter, select_records
from governor.audit.record import AuditEvent, Entry
from governor.errors import StoreError
from governor.message import Direction
from governor.store.unit_of_work import Store

START = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "governor.db")
    entries = [
        Entry(AuditEvent.GO, peer="eva-host"),
        Entry(AuditEvent.MESSAGE_SUBMITTED, direction="out", peer="eva-host", agent="max"),
        Entry(AuditEvent.MESSAGE_RECEIVED, direction="in", peer="eva-host", agent="max"),
        Entry(AuditEvent.MESSAGE_SUBMITTED, direction="out", peer="zoe-host", agent="mia"),
        Entry(AuditEvent.STOP, peer="eva-host"),
    ]
    with opened.begin() as uow:
        genesis(uow, START, "max-host", "ab" * 32)
        for n, entry in enumerate(entries, 1):
            append(uow, START + timedelta(minutes=n), entry)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), [1, 2, 3, 4, 5, 6]),
        (Filter(since=START + timedelta(minutes=4)), [5, 6]),
        (Filter(since=(START + timedelta(minutes=4)).astimezone(timezone(timedelta(hours=-8)))), [5, 6]),
        (Filter(until=START + timedelta(minutes=1)), [1]),
        (Filter(peer="eva-host"), [2, 3, 4, 6]),
        (Filter(agent="mia"), [5]),
        (Filter(direction=Direction.OUT), [3, 5]),
        (Filter(event=AuditEvent.STOP), [6]),
        (Filter(limit=2), [5, 6]),
        (Filter(peer="eva-host", direction=Direction.IN, limit=5), [4]),
        (Filter(peer="' OR 1=1 --"), []),
    ],
)
def test_a_filter_picks_these(store: Store, wanted: Filter, found: list[int]) -> None:
    with store.reading() as uow:
        assert [row.seq for row in select_records(uow, wanted)] == found


@pytest.mark.parametrize("change", ["at = 'yesterday'", "detail = '{'", "at = 5"])
def test_a_record_that_cannot_be_read_is_one_clear_error(store: Store, change: str) -> None:
    with closing(sqlite3.connect(store.path)) as raw, raw:
        raw.execute("DROP TRIGGER audit_record_unchanged")
        raw.execute(f"UPDATE audit_record SET {change} WHERE seq = 3")  # noqa: S608 - made up here
    with store.reading() as uow, pytest.raises(StoreError, match="run `governor audit verify`"):
        list(select_records(uow, Filter()))
