"""What the log says and, above all, what it does not."""

import asyncio
import gc
import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from governor.logs import log_unhandled, place_of, write_logs

SECRET = "whsk_" + "A" * 40


class Clock:
    def now(self) -> datetime:
        return datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    root, ours = logging.getLogger(), logging.getLogger("governor")
    before = (root.handlers[:], root.level, ours.level, logging.raiseExceptions)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    write_logs(Clock())
    yield stream
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers[:], logging.raiseExceptions = before[0], before[3]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object(stream: io.StringIO) -> None:
    structlog.get_logger("governor.daemon").info("running", found="a\nb\x1b[31m")
    assert lines(stream) == [
        {
            "event": "running",
            "found": "a\nb\x1b[31m",
            "level": "info",
            "logger": "governor.daemon",
            "at": "2026-03-02T09:00:00.000+00:00",
        }
    ]
    assert "\x1b" not in stream.getvalue()


def test_of_libraries_only_warnings_and_only_their_template(stream: io.StringIO) -> None:
    logging.getLogger("httpx").info("POST %s", f"https://api.telegram.org/bot{SECRET}/getMe")
    logging.getLogger("telegram").warning("Could not parse %s\nand more", SECRET)
    structlog.get_logger("governor.x").debug("nothing")
    assert [(line["event"], line["logger"]) for line in lines(stream)] == [("Could not parse %s", "telegram")]
    assert SECRET not in stream.getvalue()


def _fail() -> None:
    raise KeyError(SECRET)


def test_of_an_exception_only_kind_and_place(stream: io.StringIO) -> None:
    ours, theirs = structlog.get_logger("governor.x"), logging.getLogger("uvicorn.error")
    try:
        _fail()
    except KeyError as error:
        ours.exception("broken")
        ours.error("broken", exc_info=error)
        theirs.error("Exception in ASGI application\n", exc_info=error, stack_info=True)
    found = lines(stream)
    assert {line["error"] for line in found} == {"KeyError"}
    assert all("test_logs.py" in line["where"] for line in found)
    assert SECRET not in stream.getvalue()
    assert "Traceback" not in stream.getvalue()


def test_without_an_exception_there_is_no_place(stream: io.StringIO) -> None:
    structlog.get_logger("governor.x").error("broken", exc_info=True)
    assert "where" not in lines(stream)[0]
    assert place_of(None) == "unknown"


async def test_what_no_task_caught_is_one_line(stream: io.StringIO) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(log_unhandled)

    async def fail() -> None:
        _fail()

    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    del task
    gc.collect()
    loop.set_exception_handler(before)
    [line] = lines(stream)
    assert (line["event"], line["error"]) == ("unhandled", "KeyError")
    assert SECRET not in stream.getvalue()


def test_warnings_are_lines_too(stream: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning("old", UserWarning, "file.py", 3)
    assert lines(stream)[0]["logger"] == "py.warnings"


def test_a_log_that_cannot_be_written_stops_nothing(stream: io.StringIO) -> None:
    stream.close()
    structlog.get_logger("governor.x").error("broken")
    logging.getLogger("x").error("broken")
