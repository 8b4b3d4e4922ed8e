import io
import json
import os
import threading
from typing import Self

import pytest

from reader import contract as c
from reader.__main__ import hear_line, main, say_line, serve

NONCE = "0123456789abcdef"


def locked() -> dict[str, int]:
    return {"limits": 1}


def spoken(*lines: bytes, lock: object = locked) -> list[dict[str, object]]:
    out = io.BytesIO()
    serve(io.BytesIO(b"".join(lines)).readline, out.write, lock)  # type: ignore[arg-type]
    return [json.loads(line) for line in out.getvalue().splitlines()]


def job(mode: c.Mode = c.Mode.REWRITE, text: str = "Look at a.py, please.") -> bytes:
    return c.job_line(c.Job(text, mode, NONCE))


def answer(nonce: str = NONCE) -> bytes:
    fields = {"nonce": nonce, "kind": "request", "summary": "A look is asked for.", "points": [], "wants": []}
    return c.answer_line(json.dumps(fields))


def test_it_locks_asks_once_and_gives_its_verdict() -> None:
    first, ask, verdict = spoken(job(), answer())
    assert first == {"type": "locked", "by": {"limits": 1}}
    assert ask["type"] == "ask"
    assert verdict["summary"] == "A look is asked for."
    assert verdict["nonce"] == NONCE


def test_in_values_mode_it_asks_nothing() -> None:
    assert [line["type"] for line in spoken(job(c.Mode.VALUES))] == ["locked", "verdict"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((), "protocol"),
        ((b"nonsense\n",), "protocol"),
        ((job(),), "protocol"),
        ((job(), b'{"type":"answer"}\n'), "protocol"),
        ((job(), answer("fedcba9876543210")), "nonce"),
        ((job(text="\u200b"),), "empty"),
        ((job().replace(b'"rewrite"', b'"gossip"'),), "child_died"),
    ],
)
def test_whatever_goes_wrong_is_a_drop(lines: tuple[bytes, ...], code: str) -> None:
    assert spoken(*lines)[-1] == {"type": "verdict", "drop": code}


@pytest.mark.parametrize(
    "error", [OSError, ValueError, MemoryError, RecursionError, KeyboardInterrupt, SystemExit]
)
def test_without_a_lock_it_is_not_locked_and_reads_nothing(error: type[BaseException]) -> None:
    def fails() -> dict[str, int]:
        raise error

    job_pipe = io.BytesIO(job(c.Mode.VALUES))
    out = io.BytesIO()
    serve(job_pipe.readline, out.write, fails)
    assert json.loads(out.getvalue()) == {"type": "verdict", "drop": "child_died"}
    assert c.parse_locked(out.getvalue()) is None
    assert job_pipe.tell() == 0


class Pipe:
    """A pipe, both ends of which are closed after the test."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        os.close(self.reading)

    def end(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1


def test_main_serves_its_two_pipes_and_leaves() -> None:
    left: list[int] = []
    parents: list[int] = []

    def lock(parent: int) -> dict[str, int]:
        parents.append(parent)
        return {}

    with Pipe() as jobs, Pipe() as verdicts:
        os.write(jobs.writing, job(c.Mode.VALUES))
        main(os.getpid(), lock=lock, leave=left.append, pipes=(jobs.reading, verdicts.writing))
        lines = os.read(verdicts.reading, 10_000).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["locked", "verdict"]
    assert (left, parents) == ([0], [os.getpid()])


def test_main_leaves_even_when_nobody_listens() -> None:
    left: list[int] = []
    with Pipe() as jobs, Pipe() as verdicts:
        closed = os.dup(verdicts.reading)
        with pytest.raises(OSError, match="Bad file descriptor"):
            main(1, lock=lambda _parent: {}, leave=left.append, pipes=(jobs.reading, closed))
        os.close(closed)
    assert left == [0]


def test_a_line_is_put_together_from_what_comes() -> None:
    with Pipe() as pipe:
        os.write(pipe.writing, b'{"a":')
        os.write(pipe.writing, b"1}\n")
        assert hear_line(pipe.reading, 100) == b'{"a":1}\n'


def test_a_line_ends_with_the_pipe_or_at_its_bound() -> None:
    with Pipe() as pipe:
        os.write(pipe.writing, b"x" * 10)
        assert hear_line(pipe.reading, 8) == b"x" * 8
        pipe.end()
        assert hear_line(pipe.reading, 8) == b"xx"
        assert hear_line(pipe.reading, 8) == b""


def test_a_long_line_is_said_and_heard_whole() -> None:
    line = b"x" * 300_000 + b"\n"
    with Pipe() as pipe:
        saying = threading.Thread(target=say_line, args=(pipe.writing, line))
        saying.start()
        assert hear_line(pipe.reading, 400_000) == line
        saying.join()
