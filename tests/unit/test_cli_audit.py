import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.audit.log import append, genesis
from governor.audit.record import AuditEvent, Entry
from governor.cli.audit_formats import shown
from governor.cli.main import main
from governor.clock import SystemClock
from governor.store.unit_of_work import Store

START = datetime(2026, 1, 2, 12, 0, 0, 7, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    entries = [
        (0, Entry(AuditEvent.GO, peer="eva-host", reason="operator 7", detail={"version": 2})),
        (1, crossing(AuditEvent.MESSAGE_SUBMITTED, "out")),
        (3, crossing(AuditEvent.MESSAGE_ACCEPTED, "out")),
        (4, crossing(AuditEvent.MESSAGE_RECEIVED, "in")),
        (5, crossing(AuditEvent.MESSAGE_DROPPED, "in")),
        (6, Entry(AuditEvent.STOP, peer="eva-host", reason="signal")),
    ]
    store = Store(tmp_path / "governor.db")
    with store.begin() as uow:
        genesis(uow, START, "max-host", "ab" * 32)
        for seconds, entry in entries:
            append(uow, START + timedelta(seconds=seconds), entry)
    store.close()
    return tmp_path


def crossing(event: AuditEvent, direction: str) -> Entry:
    return Entry(
        event, direction=direction, peer="eva-host", agent="max", message_id="m_1", size=42, sha256="c" * 64
    )


def run(home: Path, *words: str) -> int:
    return main(["--home", str(home), "audit", *words])


def tamper(home: Path, change: str, *values: object) -> None:
    with closing(sqlite3.connect(home / "governor.db")) as raw, raw:
        raw.execute("DROP TRIGGER audit_record_unchanged")
        raw.execute(f"UPDATE audit_record SET {change} WHERE seq = 3", values)  # noqa: S608 - made up here


Capture = pytest.CaptureFixture[str]


def test_the_table_has_a_line_for_each_record(home: Path, capsys: Capture) -> None:
    assert run(home) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0].split() == [
        "seq",
        "at",
        "event",
        "direction",
        "peer",
        "agent",
        "message_id",
        "size",
        "reason",
        "detail",
    ]
    assert lines[2].split() == [
        "2",
        "2026-01-02T12:00:00.000007Z",
        "go",
        "eva-host",
        "operator",
        "7",
        '{"version":',
        "2}",
    ]
    assert lines[3].split() == [
        "3",
        "2026-01-02T12:00:01.000007Z",
        "message_submitted",
        "out",
        "eva-host",
        "max",
        "m_1",
        "42",
    ]
    assert not any(line.endswith(" ") for line in lines)


def test_json_gives_every_field_a_record_a_line(home: Path, capsys: Capture) -> None:
    assert run(home, "--format", "json", "--event", "go") == 0
    (line,) = capsys.readouterr().out.splitlines()
    record = json.loads(line)
    assert {name: record[name] for name in ("seq", "at", "event", "peer", "reason", "detail", "size")} == {
        "seq": 2,
        "at": "2026-01-02T12:00:00.000007Z",
        "event": "go",
        "peer": "eva-host",
        "reason": "operator 7",
        "detail": {"version": 2},
        "size": None,
    }
    assert len(record["hash"]) == len(record["previous"]) == 64


def test_json_in_one_object(home: Path, capsys: Capture) -> None:
    assert run(home, "--json", "--direction", "in") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert [record["seq"] for record in document["records"]] == [5, 6]


def test_csv_gives_every_field(home: Path, capsys: Capture) -> None:
    assert run(home, "--format", "csv", "--direction", "out") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["seq"], row["event"], row["size"], row["detail"]) for row in rows] == [
        ("3", "message_submitted", "42", ""),
        ("4", "message_accepted", "42", ""),
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--since", "2026-01-02T12:00:05"], [6, 7]),
        (["--since", "2026-01-02T13:00:05+01:00"], [6, 7]),
        (["--since", "2026-01-02T12:00:05Z"], [6, 7]),
        (["--until", "2026-01-03"], [1, 2, 3, 4, 5, 6, 7]),
        (["--until", "2026-01-02"], []),
        (["--since", "99999w"], [1, 2, 3, 4, 5, 6, 7]),
        (["--peer", "eva-host", "--event", "stop"], [7]),
        (["--peer", "nobody"], []),
        (["--agent", "max", "--limit", "2"], [5, 6]),
        (["--direction", "in"], [5, 6]),
    ],
)
def test_filters_pick_records(home: Path, capsys: Capture, words: list[str], found: list[int]) -> None:
    assert run(home, "--format", "json", *words) == 0
    assert [json.loads(line)["seq"] for line in capsys.readouterr().out.splitlines()] == found


@pytest.mark.parametrize(
    ("span", "ago", "found"),
    [("30s", timedelta(seconds=40), False), ("30m", timedelta(minutes=29), True), ("1h", timedelta(minutes=61), False),
     ("2d", timedelta(hours=47), True), ("1w", timedelta(days=6), True)],
)  # fmt: skip
def test_a_span_reaches_back_from_now(
    tmp_path: Path, capsys: Capture, span: str, ago: timedelta, found: bool
) -> None:
    store = Store(tmp_path / "governor.db")
    with store.begin() as uow:
        genesis(uow, SystemClock().now() - ago, "max-host", "ab" * 32)
    store.close()
    assert run(tmp_path, "--format", "json", "--since", span) == 0
    assert bool(capsys.readouterr().out) == found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--since", "yesterday"], "'yesterday' is neither a date nor a span such as 30m, 1h, 2d"),
        (["--since", "999999999999d"], "is neither a date nor a span"),
        (["--until", "0001-01-01T00:00+14:00"], "is neither a date nor a span"),
        (["--limit", "0"], "'0' is not a number of records"),
        (["--limit", "-5"], "--limit"),
        (["--event", "nonsense"], "invalid choice: 'nonsense'"),
        (["--direction", "both"], "invalid choice: 'both'"),
        (["--format", "xml"], "invalid choice: 'xml'"),
        (["verify", "--anchor", "7"], "'7' is not SEQ:HASH"),
        (["verify", "--anchor", "0:" + "a" * 64], "'0' is not a number of records"),
        (["--peer", "eva-host", "verify"], "verify walks the whole log; leave the filters out"),
    ],
)
def test_a_wrong_command_line_is_one_clear_error(
    home: Path, capsys: Capture, words: list[str], message: str
) -> None:
    assert run(home, *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("words", [[], ["stats"], ["verify"]])
def test_no_home_is_a_clear_error_and_makes_none(tmp_path: Path, capsys: Capture, words: list[str]) -> None:
    assert run(tmp_path / "none", *words) == 2
    assert "is not the home of a governor; run `governor init`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_stats_for_people(home: Path, capsys: Capture) -> None:
    assert run(home, "stats") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["in", "1", "42", "0", "0", "1", "-"],
        ["out", "1", "42", "0", "0", "0", "2.00"],
    ]
    assert lines[3:5] == ["webhooks refused: 0", "STOP and GO: 2:"]
    assert [line.split() for line in lines[5:]] == [
        ["2026-01-02T12:00:00.000007Z", "go", "eva-host", "operator", "7"],
        ["2026-01-02T12:00:06.000007Z", "stop", "eva-host", "signal"],
    ]


def test_stats_for_programs(home: Path, capsys: Capture) -> None:
    assert run(home, "stats", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is True
    assert document["crossed"]["out"]["median_seconds"] == 2.0
    assert document["switched"][1] == {
        "at": "2026-01-02T12:00:06.000007Z", "event": "stop", "peer": "eva-host", "reason": "signal"
    }  # fmt: skip


def test_stats_take_the_filters(home: Path, capsys: Capture) -> None:
    assert run(home, "--direction", "in", "stats") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["out", "0", "0", "0", "0", "0", "-"]
    assert lines[-1] == "STOP and GO: 0"


def head_of(home: Path) -> tuple[int, str]:
    with closing(sqlite3.connect(home / "governor.db")) as raw:
        seq, hash_ = raw.execute("SELECT seq, hash FROM audit_record ORDER BY seq DESC").fetchone()
        return int(seq), str(hash_)


def test_verify_says_that_the_log_holds_and_what_no_anchor_vouches_for(home: Path, capsys: Capture) -> None:
    seq, hash_ = head_of(home)
    assert run(home, "verify") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"7 records hold; the last has the hash {hash_}.",
        "No anchor vouches for the records from 1 on (see --anchor).",
    ]
    assert run(home, "verify", "--anchor", f"{seq}:{hash_}") == 0
    assert capsys.readouterr().out.splitlines() == [f"7 records hold; the last has the hash {hash_}."]


def test_verify_names_the_first_broken_record(home: Path, capsys: Capture) -> None:
    tamper(home, "reason = 'x'")
    assert run(home, "verify") == 1
    assert "BROKEN: record 3 was changed or moved" in capsys.readouterr().out

    assert run(home, "verify", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["count"], document["first_broken"]) == (False, 2, 3)


def test_verify_of_an_empty_log(tmp_path: Path, capsys: Capture) -> None:
    Store(tmp_path / "governor.db").close()
    assert run(tmp_path, "verify") == 1
    assert capsys.readouterr().out.startswith("BROKEN: record 1 is missing")


def test_verify_takes_several_anchors(home: Path, capsys: Capture) -> None:
    seq, hash_ = head_of(home)
    assert run(home, "verify", "--json", "--anchor", f"{seq}:{hash_}", "--anchor", f"{seq + 9}:{hash_}") == 1
    assert (
        json.loads(capsys.readouterr().out)["why"]
        == "record 8 is missing: the log ends, but there was a record 16"
    )


def test_a_changed_record_that_cannot_be_listed_names_the_next_step(home: Path, capsys: Capture) -> None:
    tamper(home, "detail = '{'")
    assert run(home) == 1
    assert "run `governor audit verify`" in capsys.readouterr().err


HOSTILE = '=HYPERLINK("http://x")\x1b[2J\x07\u202e\u200b\r\n\u2028end'


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_nothing_in_a_record_can_drive_a_terminal(home: Path, capsys: Capture, form: str) -> None:
    tamper(home, "reason = ?, peer = ?, detail = ?", HOSTILE, HOSTILE, json.dumps({"note": HOSTILE}))
    assert run(home, "--format", form) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == (7 if form == "json" else 8)
    assert all(character.isprintable() for line in out.splitlines() for character in line)
    assert "\\u202e" in out


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "＝1"])  # noqa: RUF001 - a wide form is meant
def test_nothing_in_a_csv_is_a_formula(home: Path, capsys: Capture, start: str) -> None:
    tamper(home, "reason = ?", start)
    assert run(home, "--format", "csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["reason"] for row in rows if row["seq"] == "3"] == [f"'{start}"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (5, "5"),
        ("ü 猫", "ü 猫"),
        ("a\tb", "a\\tb"),
        ("\ud800", "\\ud800"),
        ({"b": 1, "a": None}, '{"a": null, "b": 1}'),
    ],
)
def test_a_value_is_shown_in_one_harmless_line(value: object, text: str) -> None:
    assert shown(value) == text


def test_asking_for_help_does_not_load_the_database() -> None:
    code = (
        "import sys; from governor.cli.main import main; main(['audit', '--help']);"
        "sys.exit(any(name in sys.modules for name in ('sqlmodel', 'sqlalchemy', 'pydantic')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    assert "[stats | verify]" in done.stdout
