"""docs/database.md: its queries run, its tables and views are those of a real file."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.audit.log import append, genesis
from governor.audit.query import Filter, select_records
from governor.audit.record import AuditEvent, Entry
from governor.audit.stats import statistics
from governor.cli.main import main
from governor.store.tables import Link, Message, ModelCall, Peer
from governor.store.unit_of_work import Store

PAGE = (Path(__file__).parents[2] / "docs" / "database.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
NOW = datetime.now(UTC).replace(microsecond=0)
SECRET_TEXT = "the text of a message"


def message(direction: str, id_: str, reply_to: str | None = None) -> Message:
    us, them = "max@max-host", "eva@eva-host"
    return Message(
        id=id_,
        peer="eva-host",
        direction=direction,
        state="accepted" if direction == "out" else "ready",
        sender=us if direction == "out" else them,
        recipient=them if direction == "out" else us,
        conversation="c_1",
        in_reply_to=reply_to,
        hops=4,
        lineage=["max@max-host"],
        size=21,
        sha256="c" * 64,
        text=SECRET_TEXT,
        rewrite=SECRET_TEXT,
        clean=SECRET_TEXT,
        body=SECRET_TEXT.encode(),
        error=SECRET_TEXT,
        created_at=NOW,
        expires_at=NOW,
    )


def entry(event: AuditEvent, direction: str, id_: str | None, reason: str | None = None) -> Entry:
    return Entry(
        event, direction=direction, peer="eva-host", agent="max", message_id=id_, size=21, reason=reason
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    e = AuditEvent
    store = Store(tmp_path / "governor.db")
    with store.begin() as uow:
        uow.add(Peer(name="eva-host", state="confirmed", url="https://eva", agents=["eva"], paired_at=NOW))
        uow.add(Link(peer="eva-host", switch="running", version=2, out_used=2, in_used=1))
        uow.add(message("out", "m_1"))
        uow.add(message("in", "m_2", reply_to="m_1"))
        uow.add(message("out", "m_3"))
        uow.add(
            ModelCall(
                at=NOW,
                peer="eva-host",
                message_id="m_2",
                model="small",
                input_tokens=100,
                output_tokens=20,
                seconds=0.5,
                stop_reason="end_turn",
                verdict="rewrite",
            )
        )
        genesis(uow, NOW, "max-host", "ab" * 32)
        for seconds, happened in [
            (0, Entry(e.GO, peer="eva-host", reason="operator 7", detail={"version": 2})),
            (1, entry(e.MESSAGE_SUBMITTED, "out", "m_1")),
            (3.5, entry(e.MESSAGE_ACCEPTED, "out", "m_1")),
            (4, entry(e.MESSAGE_RECEIVED, "in", "m_2")),
            (5, entry(e.MESSAGE_READ, "in", "m_2")),
            (6, entry(e.MESSAGE_REFUSED, "out", None, "limit")),
            (7, entry(e.MESSAGE_RECEIVED, "in", "m_9")),
            (8, entry(e.MESSAGE_DROPPED, "in", "m_9", "nonce")),
            (9, entry(e.MESSAGE_SUBMITTED, "out", "m_3")),
            (10, entry(e.MESSAGE_ENDED, "out", "m_3", "expired")),
            (60, Entry(e.WEBHOOK_REFUSED, direction="in", reason="stale", detail={"count": 40})),
        ]:
            append(uow, NOW + timedelta(seconds=seconds), happened)
    store.close()
    return tmp_path


@pytest.fixture
def asked(home: Path) -> Iterator[sqlite3.Connection]:
    """Open the file as the page says: with plain SQLite, read-only."""
    with closing(sqlite3.connect(f"file:{home / 'governor.db'}?mode=ro", uri=True)) as raw:
        raw.row_factory = sqlite3.Row
        yield raw


def all_of(asked: sqlite3.Connection, view: str) -> sqlite3.Cursor:
    return asked.execute(f"SELECT * FROM {view}")  # noqa: S608 - a name from the file's own list


def rows_of(page_table: str) -> list[list[str]]:
    section = PAGE.split(page_table)[1].split("\n\n##")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_runs_and_finds_something(asked: sqlite3.Connection, query: str) -> None:
    assert asked.execute(query).fetchall() != []


def test_the_views_and_their_columns_are_those_of_the_page(asked: sqlite3.Connection) -> None:
    views = [name for (name,) in asked.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    found = {view: [name for (name, *_) in all_of(asked, view).description] for view in views}
    assert found == {name.strip("`"): columns.split(", ") for name, _, columns in rows_of("## Views")}


def test_the_tables_are_those_of_the_page(asked: sqlite3.Connection) -> None:
    tables = {name for (name,) in asked.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    named = [name for names, _ in rows_of("## Tables") for name in re.findall(r"`(\w+)`", names)]
    assert sorted(named) == sorted(tables)


def test_no_view_shows_a_text(asked: sqlite3.Connection) -> None:
    views = [name for (name,) in asked.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    for view in views:
        rows = all_of(asked, view).fetchall()
        assert rows != []
        assert SECRET_TEXT not in str([tuple(row) for row in rows])


def test_an_exchange_shows_its_latency_answers_and_reading(asked: sqlite3.Connection) -> None:
    rows = {row["id"]: row for row in asked.execute("SELECT * FROM v_exchanges")}
    assert sorted(rows) == ["m_1", "m_2", "m_3"]
    names = ("latency_seconds", "answers", "model", "model_seconds", "model_tokens")
    assert tuple(rows["m_1"][name] for name in names) == (2.5, 1, None, None, None)
    assert tuple(rows["m_2"][name] for name in names) == (1.0, 0, "small", 0.5, 120)
    assert tuple(rows["m_3"][name] for name in names) == (None, 0, None, None, None)


def test_a_link_shows_what_waits(asked: sqlite3.Connection) -> None:
    (row,) = asked.execute("SELECT waiting_out, waiting_in, unread, peer_state FROM v_links")
    assert tuple(row) == (0, 0, 1, "confirmed")


def test_refusals_count_the_totals_of_a_minute(asked: sqlite3.Connection) -> None:
    rows = asked.execute("SELECT event, reason, times FROM v_refusals ORDER BY seq").fetchall()
    assert [tuple(row) for row in rows] == [
        ("message_refused", "limit", 1),
        ("message_dropped", "nonce", 1),
        ("message_ended", "expired", 1),
        ("webhook_refused", "stale", 40),
    ]


def test_the_daily_figures_agree_with_audit_stats(home: Path, asked: sqlite3.Connection) -> None:
    store = Store(home / "governor.db")
    with store.reading() as uow:
        crossed = statistics(select_records(uow, Filter())).crossed
    store.close()
    names = ("messages", "characters", "refused", "ended", "dropped")
    for direction, figures in crossed.items():
        days = [row for row in all_of(asked, "v_daily") if row["direction"] == direction]
        assert days != []
        assert {name: sum(day[name] for day in days) for name in names} == {
            name: getattr(figures, name) for name in names
        }


def test_the_log_can_be_checked_by_what_the_page_says_alone(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(home), "audit", "--format", "json"]) == 0
    previous = hashlib.sha256(b"bridge-governor audit genesis v1\0max-host\0" + b"ab" * 32).hexdigest()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    for line in lines:
        record = json.loads(line)
        hash_ = record.pop("hash")
        assert record["previous"] == previous
        written = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        previous = hashlib.sha256(b"bridge-governor audit record v1\0" + written).hexdigest()
        assert hash_ == previous
