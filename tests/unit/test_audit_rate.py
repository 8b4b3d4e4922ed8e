from datetime import UTC, datetime, timedelta

from governor.audit.rate import OTHER, Totals
from governor.audit.record import AuditEvent, Entry, Value

NOON = datetime(2026, 1, 2, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def total(
    kind: str, count: int, minute: str = "2026-01-02T12:00:00.000000Z", peer: str | None = None
) -> Entry:
    detail: dict[str, Value] = {"count": count, "minute": minute}
    return Entry(AuditEvent.WEBHOOK_REFUSED, direction="in", peer=peer, reason=kind, detail=detail)


def test_a_minute_becomes_one_entry_for_each_kind_and_peer() -> None:
    totals = Totals()
    for kind, peer in [("stale", None), ("stale", None), ("signature", None), ("stale", "eva-host")]:
        assert totals.add(kind, NOON, peer) == []
    assert totals.flush(NOON + MINUTE) == [
        total("stale", 2), total("signature", 1), total("stale", 1, peer="eva-host")
    ]  # fmt: skip


def test_the_minute_under_way_is_left_until_it_is_over_or_the_governor_stops() -> None:
    totals = Totals()
    totals.add("stale", NOON)
    assert totals.flush(NOON.replace(second=59)) == []
    assert totals.flush(NOON.replace(second=59), stopping=True) == [total("stale", 1)]
    assert totals.flush(NOON + MINUTE, stopping=True) == []


def test_the_first_refusal_of_a_new_minute_gives_the_minute_before() -> None:
    totals = Totals()
    totals.add("stale", NOON)
    assert totals.add("stale", NOON + MINUTE) == [total("stale", 1)]
    assert totals.flush(NOON + 2 * MINUTE) == [total("stale", 1, "2026-01-02T12:01:00.000000Z")]


def test_a_clock_that_goes_back_loses_no_refusal() -> None:
    totals = Totals()
    totals.add("stale", NOON)
    assert totals.add("stale", NOON - MINUTE) == [total("stale", 1)]


def test_nothing_refused_is_nothing_to_write() -> None:
    assert Totals().flush(NOON, stopping=True) == []


def test_a_kind_that_is_no_word_of_ours_is_counted_as_other() -> None:
    totals = Totals()
    totals.add("from <script>", NOON)
    totals.add("", NOON)
    assert totals.flush(NOON + MINUTE) == [total(OTHER, 2)]


def test_variety_fills_neither_memory_nor_log() -> None:
    totals = Totals()
    for n in range(10_000):
        totals.add(f"kind_{n}", NOON)
    entries = totals.flush(NOON + MINUTE)
    assert len(entries) == 257
    assert entries[-1] == total(OTHER, 10_000 - 256)
