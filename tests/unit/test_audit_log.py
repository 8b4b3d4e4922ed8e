from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.audit.log import append, genesis, head
from governor.audit.record import AuditEvent, Entry, canonical, genesis_hash, record_hash
from governor.audit.verify import verify
from governor.errors import StoreError
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import Store

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "governor.db")
    yield opened
    opened.close()


def test_the_first_record_names_the_host_and_its_key(store: Store) -> None:
    with store.begin() as uow:
        row = genesis(uow, AT, "max-host", "ab" * 32)
    assert (row.seq, row.event, row.detail) == (1, "host_made", {"name": "max-host", "key": "ab" * 32})
    assert row.previous == genesis_hash("max-host", "ab" * 32)


def test_each_record_carries_the_hash_of_the_one_before(store: Store) -> None:
    go = Entry(AuditEvent.GO, peer="eva-host", reason="operator 7", detail={"version": 2})
    with store.begin() as uow:
        genesis(uow, AT, "max-host", "ab" * 32)
        first = append(uow, AT, go)
    with store.begin() as uow:
        second = append(
            uow, AT - timedelta(days=1), Entry(AuditEvent.STOP)
        )  # the clock went back: said, not hidden
    assert (first.seq, second.seq) == (2, 3)
    assert first.hash == record_hash(canonical(2, AT, go, first.previous))
    assert second.previous == first.hash
    with store.reading() as uow:
        assert head(uow) == (3, second.hash)
        assert verify(uow).ok


def test_what_is_read_back_is_what_was_hashed(store: Store) -> None:
    entry = Entry(
        AuditEvent.MESSAGE_READ,
        direction="in",
        peer="eva-host",
        agent="max",
        message_id="m_1",
        conversation="c_1",
        size=10_000,
        sha256="c" * 64,
        reason="question",
        detail={"seconds": 1.25, "whole": 3.0, "many": 2, "none": None, "yes": True},
    )
    with store.begin() as uow:
        genesis(uow, AT, "max-host", "ab" * 32)
        append(uow, AT, entry)
    with store.reading() as uow:
        row = uow.get(AuditRecord, 2)
        assert row is not None
        names = [name for name in Entry.__dataclass_fields__ if name != "event"]
        again = Entry(AuditEvent(row.event), **{name: getattr(row, name) for name in names})
        assert again == entry
        assert record_hash(canonical(row.seq, row.at, again, row.previous)) == row.hash


def test_a_record_is_there_only_if_the_transaction_commits(store: Store) -> None:
    with store.begin() as uow:
        genesis(uow, AT, "max-host", "ab" * 32)
    uow_of_the_caller = store.begin()
    with pytest.raises(ZeroDivisionError), uow_of_the_caller as uow:
        append_and_fail(uow)
    with store.begin() as uow:
        assert append(uow, AT, Entry(AuditEvent.STOP)).seq == 2
        assert verify(uow).ok


def append_and_fail(uow: object) -> None:
    append(uow, AT, Entry(AuditEvent.GO))  # type: ignore[arg-type]
    raise ZeroDivisionError


def test_a_log_without_beginning_takes_nothing_and_has_no_head(store: Store) -> None:
    with store.begin() as uow:
        for act in (lambda: append(uow, AT, Entry(AuditEvent.GO)), lambda: head(uow)):
            with pytest.raises(StoreError, match="no beginning; run `governor init`"):
                act()


def test_a_log_begins_once(store: Store) -> None:
    with store.begin() as uow:
        genesis(uow, AT, "max-host", "ab" * 32)
        with pytest.raises(StoreError, match="begun already"):
            genesis(uow, AT, "max-host", "ab" * 32)
