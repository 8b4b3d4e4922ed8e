"""Reads texts: in this process for speed, or through the real child and the real broker."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

from benchmarks.models import Answer
from benchmarks.texts import Text
from governor.clock import Clock
from governor.delivery.render import render
from governor.errors import ReadingError
from governor.inbound.model_broker import Broker, ModelCall
from governor.inbound.reader_process import read_message
from reader.contract import Drop, Job, Mode, Rewrite, parse_verdict, verdict_line
from reader.errors import DroppedError
from reader.rewrite import rewrite

COPY_LIMIT = 20


class Outcome(NamedTuple):
    """What became of one text: dropped with a code, or shown. `answer` is what the model said of it."""

    text: Text
    variant: str
    code: str
    shown: str
    answer: str
    seconds: float = 0.0


def job_of(text: Text, copy_limit: int = COPY_LIMIT) -> Job:
    """Return the job of a text, always the same."""
    return Job(text.text, Mode.REWRITE, hashlib.sha256(text.id.encode()).hexdigest()[:16], copy_limit)


def asked(question: str) -> tuple[str, str]:
    """Return nonce and message of the reader's question."""
    nonce, _, quoted, _ = question.split("\n")
    return nonce.removeprefix("nonce: "), json.loads(quoted)


def read_here(text: Text, variant: str, answer: Answer, copy_limit: int = COPY_LIMIT) -> Outcome:
    """Read with the reader's own code and the governor's judgement of its verdict, without a process."""
    said = ""

    def ask(question: str) -> str:
        nonlocal said
        said = answer(*asked(question), text.goal)
        return said

    job = job_of(text, copy_limit)
    try:
        verdict = parse_verdict(verdict_line(rewrite(job, ask), job.nonce), job)
    except DroppedError as dropped:
        return Outcome(text, variant, dropped.code, "", said)
    return Outcome(text, variant, *_judged(verdict), said)


def _judged(verdict: Rewrite | Drop) -> tuple[str, str]:
    return (verdict.code, "") if isinstance(verdict, Drop) else ("", shown_of(verdict))


def shown_of(made: Rewrite) -> str:
    """Return what the agent would see."""
    return render(
        made, sender="max@max-host", message_id="m_1", conversation="c_1", answer_by=None, in_reply_to=None
    )


class DoubleBroker:
    """A broker whose model is a double; remembers the last answer."""

    def __init__(self, answer: Answer, goal: str) -> None:
        self._answer = answer
        self._goal = goal
        self.said = ""

    async def ask(self, text: str, on_call: Callable[[ModelCall], None]) -> str:
        """Answer at once."""
        _ = on_call
        self.said = self._answer(*asked(text), self._goal)
        return self.said


class ListeningBroker:
    """Hands questions on to a broker; remembers the last answer."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.said = ""

    async def ask(self, text: str, on_call: Callable[[ModelCall], None]) -> str:
        """Ask the broker behind."""
        self.said = ""
        self.said = await self._broker.ask(text, on_call)
        return self.said


async def read_there(
    text: Text, variant: str, broker: DoubleBroker | ListeningBroker, clock: Clock, deadline: timedelta
) -> Outcome:
    """Read through a child of its own."""
    started = clock.monotonic()
    try:
        made = await read_message(job_of(text), broker, deadline=deadline)
    except ReadingError as error:
        return Outcome(text, variant, error.drop, "", broker.said, clock.monotonic() - started)
    return Outcome(text, variant, "", shown_of(made), broker.said, clock.monotonic() - started)


def again(outcomes: Iterable[Outcome], copy_limit: int) -> Iterator[Outcome]:
    """Judge the same answers with another copy limit."""
    for outcome in outcomes:
        yield read_here(outcome.text, outcome.variant, lambda *_, said=outcome.answer: said, copy_limit)
