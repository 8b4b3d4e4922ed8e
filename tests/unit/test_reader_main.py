import io
import json
import os
import sys

import pytest

from reader import contract as c
from reader.__main__ import main, serve

NONCE = "0123456789abcdef"


def locked() -> list[str]:
    return ["limits"]


def spoken(*lines: bytes, lock: object = locked) -> list[dict[str, object]]:
    out = io.BytesIO()
    serve(io.BytesIO(b"".join(lines)), out, lock)  # type: ignore[arg-type]
    return [json.loads(line) for line in out.getvalue().splitlines()]


def job(mode: c.Mode = c.Mode.REWRITE, text: str = "Look at a.py, please.") -> bytes:
    return c.job_line(c.Job(text, mode, NONCE))


def answer(nonce: str = NONCE) -> bytes:
    fields = {"nonce": nonce, "kind": "request", "summary": "A look is asked for.", "points": [], "wants": []}
    return c.answer_line(json.dumps(fields))


def test_it_locks_asks_once_and_gives_its_verdict() -> None:
    first, ask, verdict = spoken(job(), answer())
    assert first == {"type": "locked", "by": ["limits"]}
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
    def fails() -> list[str]:
        raise error

    job_pipe = io.BytesIO(job(c.Mode.VALUES))
    out = io.BytesIO()
    serve(job_pipe, out, fails)
    assert json.loads(out.getvalue()) == {"type": "verdict", "drop": "child_died"}
    assert c.parse_locked(out.getvalue()) is None
    assert job_pipe.tell() == 0


def test_main_serves_its_two_pipes_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(job(c.Mode.VALUES))))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    left: list[int] = []
    parents: list[int] = []

    def lock(parent: int) -> list[str]:
        parents.append(parent)
        return []

    main(os.getpid(), lock=lock, leave=left.append)
    assert [json.loads(line)["type"] for line in out.getvalue().splitlines()] == ["locked", "verdict"]
    assert (left, parents) == ([0], [os.getpid()])


def test_main_leaves_even_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    left: list[int] = []
    with open(writing, "wb", buffering=0) as out:  # noqa: PTH123 - a descriptor, no path
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
        with pytest.raises(BrokenPipeError):
            main(1, lock=lambda _parent: [], leave=left.append)
    assert left == [0]
