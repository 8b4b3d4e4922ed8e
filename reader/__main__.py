"""The child: two pipes, one message, one verdict, the end. It holds no key and opens nothing."""

import os
import sys
from collections.abc import Callable
from typing import BinaryIO

from reader.contract import (
    ANSWER_BYTES,
    JOB_BYTES,
    Drop,
    Rewrite,
    ask_line,
    locked_line,
    parse_answer,
    parse_job,
    verdict_line,
)
from reader.errors import DroppedError
from reader.rewrite import rewrite
from reader.sandbox.lock import lock as lock_in


def main(
    parent: int,
    *,
    lock: Callable[[int], list[str]] = lock_in,
    leave: Callable[[int], object] = os._exit,
) -> None:
    """Read one message as the child of the process `parent`, and leave without cleaning up.

    An exit that cleans up, and a traceback, would open files; a locked child cannot.
    """
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, lambda: lock(parent))
    finally:
        leave(0)


def serve(lines_in: BinaryIO, lines_out: BinaryIO, lock: Callable[[], list[str]]) -> None:
    """Speak the protocol of `reader.contract` once. Whatever goes wrong is a drop.

    A child that cannot lock itself in says so by a drop in place of `locked`: it gets no message.
    """
    nonce = ""

    def send(line: bytes) -> None:
        lines_out.write(line)
        lines_out.flush()

    def ask(text: str) -> str:
        send(ask_line(text))
        return parse_answer(lines_in.readline(ANSWER_BYTES))

    verdict: Rewrite | Drop
    try:
        send(locked_line(lock()))
        job = parse_job(lines_in.readline(JOB_BYTES))
        nonce = job.nonce
        verdict = rewrite(job, ask)
    except DroppedError as dropped:
        verdict = Drop(dropped.code)
    except BaseException:  # noqa: BLE001 - no memory, no depth, no rights: the message is dropped in every case
        verdict = Drop("child_died")
    send(verdict_line(verdict, nonce))


if __name__ == "__main__":  # pragma: no cover - `python -m reader`; a locked process measures nothing
    main(os.getppid())
