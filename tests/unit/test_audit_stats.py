from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.audit.log import append, genesis
from governor.audit.query import Filter, select_records
from governor.audit.record import AuditEvent, Entry
from governor.audit.stats import Switched, statistics
from governor.store.unit_of_work import Store

START = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "governor.db")
    with opened.begin() as uow:
        genesis(uow, START, "max-host", "ab" * 32)
    yield opened
    opened.close()


def record(store: Store, *entries: tuple[float, Entry]) -> None:
    with store.begin() as uow:
        for seconds, entry in entries:
            append(uow, START + timedelta(seconds=seconds), entry)


def crossing(
    event: AuditEvent, direction: str, message_id: str, peer: str = "eva-host", size: int = 100
) -> Entry:
    return Entry(event, direction=direction, peer=peer, message_id=message_id, size=size)


def test_messages_are_summed_by_direction(store: Store) -> None:
    e = AuditEvent
    record(
        store,
        (0, crossing(e.MESSAGE_SUBMITTED, "out", "a")),
        (1, crossing(e.MESSAGE_SENDING, "out", "a")),
        (2, crossing(e.MESSAGE_ACCEPTED, "out", "a")),
        (3, crossing(e.MESSAGE_SUBMITTED, "out", "b", size=50)),
        (4, crossing(e.MESSAGE_ENDED, "out", "b", size=50)),
        (5, crossing(e.MESSAGE_REFUSED, "out", "c", size=7)),
        (6, Entry(e.MESSAGE_RECEIVED, direction="in", peer="eva-host", message_id="a", size=None)),
        (7, crossing(e.MESSAGE_DROPPED, "in", "a")),
        (8, crossing(e.MESSAGE_REFUSED_IN, "in", "d")),
        (9, Entry(e.MESSAGE_SUBMITTED)),  # without a direction it counts in none
    )
    with store.reading() as uow:
        sums = statistics(select_records(uow, Filter()))
    assert {way: asdict(of) for way, of in sums.crossed.items()} == {
        "out": {
            "messages": 2,
            "characters": 150,
            "refused": 1,
            "ended": 1,
            "dropped": 0,
            "median_seconds": 2.0,
        },
        "in": {
            "messages": 1,
            "characters": 0,
            "refused": 1,
            "ended": 0,
            "dropped": 1,
            "median_seconds": None,
        },
    }


def test_the_median_runs_from_submitted_to_accepted_and_from_received_to_ready(store: Store) -> None:
    e = AuditEvent
    record(
        store,
        (0, crossing(e.MESSAGE_SUBMITTED, "out", "a")),
        (0, crossing(e.MESSAGE_SUBMITTED, "out", "a", peer="zoe-host")),  # the same id at another peer
        (0, crossing(e.MESSAGE_SUBMITTED, "out", "never")),
        (1, crossing(e.MESSAGE_ACCEPTED, "out", "a")),
        (1, crossing(e.MESSAGE_ACCEPTED, "out", "begun-before-the-filter")),
        (4, crossing(e.MESSAGE_ACCEPTED, "out", "a", peer="zoe-host")),
        (10, crossing(e.MESSAGE_RECEIVED, "in", "a")),
        (10.5, crossing(e.MESSAGE_READ, "in", "a")),
    )
    with store.reading() as uow:
        sums = statistics(select_records(uow, Filter()))
    assert sums.crossed["out"].median_seconds == 2.5
    assert sums.crossed["in"].median_seconds == 0.5


def test_the_totals_of_refused_webhooks_are_added_up(store: Store) -> None:
    record(
        store,
        (0, Entry(AuditEvent.WEBHOOK_REFUSED, direction="in", reason="stale", detail={"count": 40})),
        (60, Entry(AuditEvent.WEBHOOK_REFUSED, direction="in", reason="signature", detail={"count": 2})),
        (61, Entry(AuditEvent.WEBHOOK_REFUSED, direction="in", reason="signature")),
    )
    with store.reading() as uow:
        assert statistics(select_records(uow, Filter())).webhooks_refused == 43


def test_the_history_of_stop_and_go_is_in_order(store: Store) -> None:
    record(
        store,
        (1, Entry(AuditEvent.GO, peer="eva-host", reason="operator 7")),
        (2, Entry(AuditEvent.HUMAN_ACTED, peer="eva-host")),
        (3, Entry(AuditEvent.PAUSED, peer="eva-host", reason="unwatched")),
        (4, Entry(AuditEvent.GO_REFUSED, peer="eva-host", reason="rival_poller")),
        (5, Entry(AuditEvent.STOP, peer="eva-host", reason="signal")),
    )
    with store.reading() as uow:
        history = statistics(select_records(uow, Filter())).switched
    assert history == [
        Switched(START + timedelta(seconds=1), "go", "eva-host", "operator 7"),
        Switched(START + timedelta(seconds=3), "paused", "eva-host", "unwatched"),
        Switched(START + timedelta(seconds=4), "go_refused", "eva-host", "rival_poller"),
        Switched(START + timedelta(seconds=5), "stop", "eva-host", "signal"),
    ]


def test_an_empty_log_sums_up_to_nothing() -> None:
    sums = statistics([])
    assert (sums.webhooks_refused, sums.switched) == (0, [])
    assert all(of.messages == 0 and of.median_seconds is None for of in sums.crossed.values())
