"""P9: somebody who may write the file changes the log behind the governor's back, and is found out.

The attacker here drops the triggers first, knows how records are hashed, and uses a connection of his own.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.audit.log import append, genesis
from governor.audit.record import AuditEvent, Entry, canonical, genesis_hash, record_hash
from governor.audit.verify import Anchor, Verdict, verify
from governor.store.triggers import TRIGGERS
from governor.store.unit_of_work import Store

START = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
COUNT = 8
KEY = "ab" * 32


def entry(n: int) -> Entry:
    return Entry(
        AuditEvent.MESSAGE_SUBMITTED,
        direction="out",
        peer="eva-host",
        agent="max",
        message_id=f"m_{n}",
        conversation="c_1",
        size=n,
        sha256="c" * 64,
        reason="limit",
        detail={"count": n},
    )


def write_log(path: Path, count: int = COUNT, host: str = "max-host") -> None:
    store = Store(path)
    with store.begin() as uow:
        genesis(uow, START, host, KEY)
        for n in range(2, count + 1):
            append(uow, START + timedelta(minutes=n), entry(n))
    store.close()


@pytest.fixture(scope="module")
def whole_log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("log") / "governor.db"
    write_log(path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, whole_log: bytes) -> Path:
    path = tmp_path / "governor.db"
    path.write_bytes(whole_log)
    return path


@pytest.fixture
def attacker(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for name in TRIGGERS:
            raw.execute(f"DROP TRIGGER {name}")
        yield raw


def judged(path: Path, *anchors: Anchor) -> Verdict:
    store = Store(path)
    try:
        with store.reading() as uow:
            return verify(uow, anchors)
    finally:
        store.close()


def hash_at(path: Path, seq: int) -> str:
    with closing(sqlite3.connect(path)) as raw:
        return str(raw.execute("SELECT hash FROM audit_record WHERE seq = ?", (seq,)).fetchone()[0])


def hash_anew(raw: sqlite3.Connection, since: int) -> None:
    """Do what the chain alone cannot find: give every record from `since` on a hash that fits."""
    raw.row_factory = sqlite3.Row
    rows = raw.execute("SELECT * FROM audit_record WHERE seq >= ? ORDER BY seq", (since - 1,)).fetchall()
    previous = rows[0]["hash"]
    for row in rows[1:]:
        names = ("direction", "peer", "agent", "message_id", "conversation", "size", "sha256", "reason")
        forged = Entry(
            AuditEvent(row["event"]), **{name: row[name] for name in names}, detail=json.loads(row["detail"])
        )
        at = datetime.fromisoformat(row["at"]).replace(tzinfo=UTC)
        hash_ = record_hash(canonical(row["seq"], at, forged, previous))
        raw.execute(
            "UPDATE audit_record SET previous = ?, hash = ? WHERE seq = ?", (previous, hash_, row["seq"])
        )
        previous = hash_


def test_an_honest_log_holds(path: Path) -> None:
    verdict = judged(path)
    assert verdict == Verdict(
        ok=True,
        count=COUNT,
        head=(COUNT, hash_at(path, COUNT)),
        first_broken=None,
        why=None,
        unanchored_from=1,
    )


CHANGES = [
    "at = '2026-01-02 03:04:05.000007'",
    "at = '2026-01-02T03:09:05.000006'",
    "at = 'yesterday'",
    "at = x'ff'",
    "event = 'message_refused'",
    "direction = 'in'",
    "direction = NULL",
    "peer = 'eve-host'",
    "agent = 'eva'",
    "message_id = 'm_99'",
    "conversation = 'c_2'",
    "size = 0",
    "size = 'five'",
    "size = '0_5'",
    "size = 5.5",
    "sha256 = ''",
    "reason = NULL",
    "reason = 'stopped'",
    "reason = CAST(x'ff' AS TEXT)",
    "reason = 'limit' || char(0) || 'x'",
    "detail = NULL",
    "detail = '{\"count\": 6}'",
    "detail = '{\"count\": 5.0}'",
    'detail = \'{"count": 99, "count": 5}\'',
    "detail = '{\"count\": NaN}'",
    "detail = '{'",
    "detail = replace(hex(zeroblob(10000)), '00', '[[[[')",
    "previous = hash",
    "hash = previous",
    "hash = ''",
    "hash = x'ff'",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_is_named(path: Path, attacker: sqlite3.Connection, change: str) -> None:
    attacker.execute(f"UPDATE audit_record SET {change} WHERE seq = 5")  # noqa: S608 - from the list above
    verdict = judged(path)
    assert (verdict.ok, verdict.count, verdict.first_broken) == (False, 4, 5)
    assert verdict.why is not None
    assert "record 5 " in verdict.why


@pytest.mark.parametrize(
    ("detail", "event"),
    [
        (f'{{"name": "eve-host", "key": "{KEY}"}}', "host_made"),
        (None, "host_made"),
        ("[]", "host_made"),
        ("{}", "started"),
    ],
)
def test_a_changed_beginning_is_named(
    path: Path, attacker: sqlite3.Connection, detail: str | None, event: str
) -> None:
    attacker.execute("UPDATE audit_record SET detail = ?, event = ? WHERE seq = 1", (detail, event))
    verdict = judged(path)
    assert (verdict.count, verdict.head, verdict.first_broken) == (0, None, 1)


def test_a_beginning_that_is_not_of_the_host_it_names_is_found_though_hashed_rightly(
    path: Path, attacker: sqlite3.Connection
) -> None:
    forged = Entry(AuditEvent.HOST_MADE, detail={"name": "eve-host", "key": KEY})
    previous = genesis_hash("max-host", KEY)
    attacker.execute(
        "UPDATE audit_record SET detail = ?, hash = ? WHERE seq = 1",
        (json.dumps(dict(forged.detail or {})), record_hash(canonical(1, START, forged, previous))),
    )
    verdict = judged(path)
    assert verdict.first_broken == 1
    assert verdict.why == "record 1 does not follow from the host it names: one of them was replaced"


@pytest.mark.parametrize("seq", [1, 2, 5, COUNT - 1])
def test_a_deleted_record_is_named(path: Path, attacker: sqlite3.Connection, seq: int) -> None:
    attacker.execute("DELETE FROM audit_record WHERE seq = ?", (seq,))
    verdict = judged(path)
    assert (verdict.ok, verdict.count, verdict.first_broken) == (False, seq - 1, seq)
    assert verdict.why == f"record {seq} is missing: record {seq + 1} comes in its place"


def test_a_deleted_record_is_named_though_the_rest_moved_up(path: Path, attacker: sqlite3.Connection) -> None:
    attacker.execute("DELETE FROM audit_record WHERE seq = 5")
    for seq in range(6, COUNT + 1):
        attacker.execute("UPDATE audit_record SET seq = seq - 1 WHERE seq = ?", (seq,))
    assert judged(path).first_broken == 5


def test_records_in_another_order_are_named(path: Path, attacker: sqlite3.Connection) -> None:
    for before, after in [(5, -1), (6, 5), (-1, 6)]:
        attacker.execute("UPDATE audit_record SET seq = ? WHERE seq = ?", (after, before))
    verdict = judged(path)
    assert (verdict.count, verdict.first_broken) == (4, 5)
    assert verdict.why == "record 5 was changed or moved: its hash does not fit its contents and place"


def test_an_inserted_record_is_named(path: Path, attacker: sqlite3.Connection) -> None:
    for seq in range(COUNT, 4, -1):
        attacker.execute("UPDATE audit_record SET seq = seq + 1 WHERE seq = ?", (seq,))
    forged = entry(99)
    attacker.execute(
        "INSERT INTO audit_record SELECT 5, at, event, direction, peer, agent, 'm_99', conversation, 99, sha256, reason,"
        " '{\"count\": 99}', hash, ? FROM audit_record WHERE seq = 4",
        (record_hash(canonical(5, START + timedelta(minutes=4), forged, hash_at(path, 4))),),
    )
    verdict = judged(path)
    assert (verdict.count, verdict.first_broken) == (5, 6), (
        "the forged record itself fits: what it pushed aside does not"
    )


def test_a_record_before_the_first_is_named(path: Path, attacker: sqlite3.Connection) -> None:
    attacker.execute("INSERT INTO audit_record (seq, at, event, previous, hash) VALUES (0, '', 'go', '', '')")
    verdict = judged(path)
    assert (verdict.first_broken, verdict.why) == (0, "record 0 was inserted: the log begins with record 1")


def test_a_record_that_replaced_another_is_found_by_the_next(
    path: Path, attacker: sqlite3.Connection
) -> None:
    attacker.execute("UPDATE audit_record SET reason = 'stopped' WHERE seq = 5")
    forged = Entry(
        **{**{name: getattr(entry(5), name) for name in Entry.__dataclass_fields__}, "reason": "stopped"}
    )
    line = canonical(5, START + timedelta(minutes=5), forged, hash_at(path, 4))
    attacker.execute("UPDATE audit_record SET hash = ? WHERE seq = 5", (record_hash(line),))
    verdict = judged(path)
    assert (verdict.count, verdict.first_broken) == (5, 6)
    assert verdict.why == "record 6 does not follow record 5: one of them was replaced"


def test_an_emptied_log_is_found(path: Path, attacker: sqlite3.Connection) -> None:
    attacker.execute("DELETE FROM audit_record")
    verdict = judged(path)
    assert (verdict.ok, verdict.count, verdict.head, verdict.first_broken) == (False, 0, None, 1)


def test_a_log_cut_off_before_its_last_anchor_is_found(path: Path, attacker: sqlite3.Connection) -> None:
    anchor = (7, hash_at(path, 7))
    attacker.execute("DELETE FROM audit_record WHERE seq > 5")
    verdict = judged(path, anchor)
    assert (verdict.ok, verdict.count, verdict.first_broken) == (False, 5, 6)
    assert verdict.why == "record 6 is missing: the log ends, but there was a record 7"


def test_a_tail_behind_the_last_anchor_can_be_cut_off_and_is_named_as_unanchored(
    path: Path, attacker: sqlite3.Connection
) -> None:
    anchors = [(3, hash_at(path, 3)), (5, hash_at(path, 5))]
    assert judged(path, *anchors).unanchored_from == 6
    attacker.execute("DELETE FROM audit_record WHERE seq > 6")
    verdict = judged(path, *anchors)
    assert (verdict.ok, verdict.unanchored_from) == (True, 6)


def test_a_log_whose_head_is_anchored_has_no_unanchored_tail(path: Path) -> None:
    verdict = judged(path, (COUNT, hash_at(path, COUNT)))
    assert (verdict.ok, verdict.unanchored_from) == (True, None)


def test_a_change_hashed_anew_to_the_end_is_found_by_an_anchor_only(
    path: Path, attacker: sqlite3.Connection
) -> None:
    anchor = (7, hash_at(path, 7))
    attacker.execute("UPDATE audit_record SET reason = 'stopped' WHERE seq = 5")
    hash_anew(attacker, since=5)
    assert judged(path).ok, "this is why heads leave the host"
    verdict = judged(path, anchor)
    assert (verdict.ok, verdict.count, verdict.first_broken, verdict.unanchored_from) == (False, 6, 7, 1)
    assert verdict.why == "record 7 was replaced: it is not the one that was anchored"


def test_a_whole_log_written_anew_is_found_by_an_anchor(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.db"
    write_log(other, count=COUNT + 5, host="eve-host")
    assert judged(other).ok
    assert judged(other, (3, hash_at(path, 3))).first_broken == 3


def test_two_anchors_of_one_record_that_differ_cannot_both_hold(path: Path) -> None:
    verdict = judged(path, (5, hash_at(path, 5)), (5, "0" * 64))
    assert verdict.first_broken == 5


def test_what_holds_before_the_break_keeps_its_anchor(path: Path, attacker: sqlite3.Connection) -> None:
    anchor = (3, hash_at(path, 3))
    attacker.execute("UPDATE audit_record SET size = 1 WHERE seq = 5")
    assert judged(path, anchor).unanchored_from == 4


@pytest.mark.parametrize(
    "act",
    [
        lambda raw: raw.execute("UPDATE audit_record SET reason = NULL"),
        lambda raw: raw.execute("DELETE FROM audit_record WHERE seq = 8"),
        lambda raw: raw.execute("REPLACE INTO audit_record SELECT * FROM audit_record WHERE seq = 8"),
        lambda raw: raw.execute(
            "INSERT INTO audit_record (seq, at, event, previous, hash) VALUES (0, '', '', '', '')"
        ),
    ],
)
def test_with_the_triggers_in_place_the_file_refuses(
    path: Path, act: Callable[[sqlite3.Connection], object]
) -> None:
    with (
        closing(sqlite3.connect(path)) as raw,
        pytest.raises(sqlite3.IntegrityError, match="audit records are"),
    ):
        act(raw)
    assert judged(path).ok
