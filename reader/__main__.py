"""The child: two pipes, one message, one verdict, the end. It holds no key and opens nothing.

Once it is locked, the kernel kills it for any call but a few: it reads and writes its pipes without the
buffered streams, which ask more of the kernel, and it leaves without cleaning up.
"""

import os
from collections.abc import Callable, Mapping

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

_CHUNK = 64 * 1024


def main(
    parent: int,
    *,
    lock: Callable[[int], Mapping[str, int]] = lock_in,
    leave: Callable[[int], object] = os._exit,
    pipes: tuple[int, int] = (0, 1),
) -> None:
    """Read one message as the child of the process `parent`, and leave without cleaning up.

    An exit that cleans up, and a traceback, would open files; a locked child cannot.
    """
    hear, say = pipes
    try:
        serve(lambda most: hear_line(hear, most), lambda line: say_line(say, line), lambda: lock(parent))
    finally:
        leave(0)


def serve(
    hear: Callable[[int], bytes], say: Callable[[bytes], object], lock: Callable[[], Mapping[str, int]]
) -> None:
    """Speak the protocol of `reader.contract` once. Whatever goes wrong is a drop.

    A child that is left without locks says so by a drop in place of `locked`: it gets no message.
    """
    nonce = ""

    def ask(text: str) -> str:
        say(ask_line(text))
        return parse_answer(hear(ANSWER_BYTES))

    verdict: Rewrite | Drop
    try:
        say(locked_line(lock()))
        job = parse_job(hear(JOB_BYTES))
        nonce = job.nonce
        verdict = rewrite(job, ask)
    except DroppedError as dropped:
        verdict = Drop(dropped.code)
    except BaseException:  # noqa: BLE001 - no memory, no depth, no rights: the message is dropped in every case
        verdict = Drop("child_died")
    say(verdict_line(verdict, nonce))


def hear_line(descriptor: int, most: int) -> bytes:
    """Return the next line, or what there is of it after `most` bytes or at the end.

    The governor says nothing before it is asked, so nothing of another line can come with it.
    """
    heard = bytearray()
    while len(heard) < most and not heard.endswith(b"\n"):
        chunk = os.read(descriptor, min(_CHUNK, most - len(heard)))
        if not chunk:
            break
        heard += chunk
    return bytes(heard)


def say_line(descriptor: int, line: bytes) -> None:
    """Write a whole line."""
    left = memoryview(line)
    while left:
        left = left[os.write(descriptor, left) :]


if __name__ == "__main__":  # pragma: no cover - `python -m reader`; a locked process measures nothing
    main(os.getppid())
