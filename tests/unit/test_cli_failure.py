import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from governor.cli.failure import EXIT_CODES, Exit, Failure, clock_time, told
from governor.errors import (
    CodeError,
    ConfigError,
    CredentialError,
    GovernorError,
    LocalError,
    NotYoursError,
    RefusedError,
    StoreError,
    TransportError,
)

AT = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)


def failing(error: BaseException) -> int:
    def work() -> int:
        raise error

    return told(work, as_json=False)


def test_every_exit_code_is_explained() -> None:
    assert list(EXIT_CODES) == list(Exit)
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 4, 5, 130, 141]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (LocalError("x"), 2),
        (NotYoursError("x"), 2),
        (CredentialError("x"), 2),
        (RefusedError("paused", "x"), 3),
        (CodeError("x"), 3),
        (TransportError("x"), 4),
        (StoreError("x"), 1),
        (GovernorError("x"), 1),
        (Failure("no_governor", "x"), 5),
        (Failure("no_answer", "x"), 5),
        (Failure("usage", "x"), 2),
        (Failure("a code of a newer governor", "x"), 1),
        (PermissionError(13, "Permission denied", "/etc/x"), 2),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: value.__class__.__name__,
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert failing(error) == code


def test_an_error_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    failing(ConfigError("first line\n  second line"))
    assert capsys.readouterr() == ("", "governor: first line second line\n")


def test_a_refusal_tells_its_reason_and_when_to_retry(capsys: pytest.CaptureFixture[str]) -> None:
    failing(RefusedError("limit", "The allowance is used up.", AT))
    assert (
        capsys.readouterr().err
        == "governor: refused (limit): The allowance is used up. Not before 09:05 UTC.\n"
    )


def test_an_error_as_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> int:
        raise RefusedError("limit", "The allowance is used up.", AT)

    assert told(work, as_json=True) == 3
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "ok": False,
        "error": "refused",
        "message": "The allowance is used up.",
        "reason": "limit",
        "retry_at": "2026-03-02T09:05:00+00:00",
    }
    assert err == ""


def test_an_interruption_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    failing(KeyboardInterrupt())
    assert capsys.readouterr() == ("", "")


def test_a_bug_is_named_by_kind_and_place_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOVERNOR_DEBUG", raising=False)
    assert failing(KeyError("what a peer wrote")) == 1
    err = capsys.readouterr().err
    assert err.startswith("governor: This is a bug: KeyError at ")
    assert "test_cli_failure.py:" in err
    assert "GOVERNOR_DEBUG=1" in err
    assert err.count("\n") == 1
    assert "what a peer wrote" not in err


def test_a_trace_is_shown_to_who_asks_for_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOVERNOR_DEBUG", "1")
    failing(KeyError("what"))
    assert "Traceback" in capsys.readouterr().err


def test_an_error_of_the_system_is_told_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert failing(OSError(28, "No space left on device")) == 2
    assert capsys.readouterr().err == "governor: No space left on device. Mend that and try again.\n"
    assert failing(OSError("odd")) == 1
    assert "This is a bug: OSError" in capsys.readouterr().err


def test_a_reader_that_went_away_is_no_error() -> None:
    code = (
        "import sys; from governor.cli.failure import told\n"
        "def work():\n    for _ in range(100_000): print('x' * 100)\n    return 0\n"
        "sys.exit(told(work, as_json=False))"
    )
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdout=writing,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_clock_time() -> None:
    assert clock_time("2026-03-02T09:05:07.123456Z") == "09:05 UTC"
