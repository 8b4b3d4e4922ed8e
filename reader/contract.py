"""What governor and child say to each other, and what the governor believes of it.

Lines of JSON, one object each, pure ASCII, bounded. In this order:

    child  -> governor   locked   what the child has given up; only if that is enough it gets the message
    governor -> child    job      text, mode, nonce, limits
    child  -> governor   ask      the user turn for the model; once, in `rewrite` mode only
    governor -> child    answer   the model's text
    child  -> governor   verdict  a rewrite, or a drop with its code; then the child ends

The governor treats every line as written by the sender of the message.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from reader.characters import is_plain
from reader.errors import DroppedError
from reader.grammar import MORE, TYPES, fits
from reader.prompt import EXAMPLES, SCHEMA, SYSTEM
from reader.signals import SIGNALS
from reader.strict_json import line, read_object
from reader.urls import is_shown_safely

TEXT_LIMIT = 10_000
"""Longest message, in code points."""

READ_LIMIT = 2 * TEXT_LIMIT
"""Longest message after normalisation, which may lengthen it (NFKC: one character to eighteen)."""

ASK_LIMIT = 2 * READ_LIMIT + 500
"""Longest user turn, in code points: each quoted character may take two."""

ANSWER_LIMIT = 32_000
"""Longest answer of the model that is handed to the child, in code points."""

LOCKED_BYTES: Final = 1_024
JOB_BYTES: Final = 256 * 1_024
ASK_BYTES: Final = 768 * 1_024
ANSWER_BYTES: Final = 512 * 1_024
VERDICT_BYTES: Final = 128 * 1_024

MAX_TOKENS: Final = 4_096
"""What the model may write; an answer that reaches it is a drop."""

PROSE_LIMIT: Final = 4_000
SUMMARY_LIMIT: Final = 1_000
ITEM_LIMIT: Final = 500
ITEMS_LIMIT: Final = 20
VALUES_LIMIT: Final = 800
"""All values of one message together, in characters; `COUNT_LIMIT` bounds their number."""
COUNT_LIMIT: Final = 100


class Mode(StrEnum):
    """How a message is read."""

    REWRITE = "rewrite"
    VALUES = "values"


WORDS: dict[Mode, int] = {Mode.REWRITE: 6, Mode.VALUES: 3}
"""How many words a segment of a value may hold."""


class Kind(StrEnum):
    """What a message is. `unread`: no model read it. `order_to_reader` is always a drop."""

    REPORT = "report"
    QUESTION = "question"
    REQUEST = "request"
    PROPOSAL = "proposal"
    ANSWER = "answer"
    ORDER_TO_READER = "order_to_reader"
    UNREAD = "unread"


DROPS: dict[str, str] = {
    # what came in
    "not_text": "the message is not valid Unicode text",
    "empty": "nothing readable is left of the message",
    "too_long": "the message or the answer is longer than the limit",
    # what the model gave
    "no_model": "no model is configured, and the mode needs one",
    "model_unavailable": "the model could not be reached or answered with an error",
    "model_stopped": "the model stopped for another reason than having finished",
    "contract": "the answer is not the one JSON object agreed on",
    "nonce": "the answer does not carry this message's nonce",
    "order_to_reader": "the message tries to command its reader",
    "characters": "the answer holds characters that hide, reorder or break lines",
    "blob": "the answer holds an unbroken run of characters too long for prose",
    "markup": "the answer holds HTML, a Markdown link or image, or a code fence",
    "chat_syntax": "the answer holds the syntax of chats or tool calls",
    "imitation": "the answer imitates a system note or the governor's own frame",
    "prompt_leak": "the answer repeats what only the prompt holds",
    "order_to_agent": "the answer commands the receiving agent",
    "copied": "the answer copies a longer run of words than the limit",
    "invented_value": "the answer holds a value that is not in the message",
    "address": "the answer holds an address that cannot be shown safely",
    # what became of the child
    "not_locked": "the reader could not lock itself in, so it did not get the message",
    "child_died": "the reader ended without a verdict",
    "timeout": "the reader took longer than its deadline",
    "flood": "the reader wrote more than a line may hold",
    "protocol": "the reader said something that does not fit the protocol",
}
"""Why a message was dropped: the code for the audit log, and what it means."""


class Job(NamedTuple):
    """One message to read. `nonce`: at least 8 random letters or digits, never used before.

    `copy_limit` is the longest run of words the rewrite may copy; `url_hosts` are the hosts (lower
    case) whose URLs are shown as they are.
    """

    text: str
    mode: Mode
    nonce: str
    copy_limit: int = 20
    url_hosts: frozenset[str] = frozenset()


class Value(NamedTuple):
    """One typed value, taken from the message by code; `type` is one of `grammar.TYPES` or `more`."""

    type: str
    text: str


class Rewrite(NamedTuple):
    """All that an agent may learn of a message. `signals` are (name, count) pairs."""

    kind: Kind
    summary: str
    points: tuple[str, ...]
    wants: tuple[str, ...]
    values: tuple[Value, ...]
    signals: tuple[tuple[str, int], ...]


class Drop(NamedTuple):
    """Nothing may be shown; `code` is one of `DROPS`."""

    code: str


class Draft(NamedTuple):
    """The model's answer as far as its form is right."""

    kind: Kind
    summary: str
    points: tuple[str, ...]
    wants: tuple[str, ...]

    def texts(self) -> tuple[str, ...]:
        """Return every piece of prose."""
        return (self.summary, *self.points, *self.wants)


def prose_limit(size: int) -> int:
    """Return how much prose a message of this size may become: little from little, 4,000 at most."""
    return min(PROSE_LIMIT, 400 + 2 * size)


def model_request(ask: str) -> dict[str, Any]:
    """Return what is put to the model beside its name: orders, examples, schema. No tools, ever."""
    return {
        "max_tokens": MAX_TOKENS,
        "system": SYSTEM,
        "messages": [*EXAMPLES, {"role": "user", "content": ask}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }


def locked_line(by: Mapping[str, int]) -> bytes:
    """Say by which locks the child is held, each with its degree (`reader.sandbox.lock`)."""
    return line({"type": "locked", "by": dict(by)})


def job_line(job: Job) -> bytes:
    """Write the job for the child."""
    return line({"type": "job", **job._asdict(), "url_hosts": sorted(job.url_hosts)})


def ask_line(text: str) -> bytes:
    """Write the child's one question to the model."""
    return line({"type": "ask", "text": text})


def answer_line(text: str) -> bytes:
    """Write the model's answer for the child."""
    return line({"type": "answer", "text": text})


def verdict_line(verdict: Rewrite | Drop, nonce: str) -> bytes:
    """Write the child's last word."""
    if isinstance(verdict, Drop):
        return line({"type": "verdict", "drop": verdict.code})
    return line({"type": "verdict", "nonce": nonce, **verdict._asdict()})


def parse_locked(raw: bytes) -> dict[str, int] | None:
    """Return the locks that hold the child, by name with their degree, or None."""
    match read_object(raw):
        case {"type": "locked", "by": dict(by), **rest} if not rest and len(by) <= ITEMS_LIMIT:
            return by if all(type(degree) is int for degree in by.values()) else None
    return None


def parse_job(raw: bytes) -> Job:
    """Return the job; raises DroppedError where the governor did not write it whole."""
    found = read_object(raw)
    if found is None or found.pop("type", None) != "job" or found.keys() != set(Job._fields):
        raise DroppedError("protocol")
    return Job(**{**found, "mode": Mode(found["mode"]), "url_hosts": frozenset(found["url_hosts"])})


def parse_ask(raw: bytes) -> str | None:
    """Return the child's question, or None if the line is none or too long."""
    text = _text_of(raw, "ask")
    return text if text is not None and len(text) <= ASK_LIMIT and _is_unicode(text) else None


def parse_answer(raw: bytes) -> str:
    """Return the model's text; raises DroppedError where the governor did not write it whole."""
    text = _text_of(raw, "answer")
    if text is None:
        raise DroppedError("protocol")
    return text


def parse_draft(fields: dict[str, Any]) -> Draft | None:
    """Return kind and prose if their types and bounds are right; characters are checked apart."""
    points, wants = _strings(fields["points"]), _strings(fields["wants"])
    kind, summary = fields["kind"], fields["summary"]
    if points is None or wants is None or not isinstance(summary, str) or kind not in tuple(Kind):
        return None
    if len(summary) > SUMMARY_LIMIT or any(len(item) > ITEM_LIMIT for item in points + wants):
        return None
    return Draft(Kind(kind), summary, points, wants)


def parse_verdict(raw: bytes, job: Job) -> Rewrite | Drop:
    """Return what the child decided, after checking again all that can be checked without the text.

    Types, bounds, characters, nonce; that a kind belongs to the mode; that each value is one.
    """
    found = read_object(raw)
    if found is None or found.pop("type", None) != "verdict":
        return Drop("protocol")
    if found.keys() == {"drop"}:
        code = found["drop"]
        return Drop(code if isinstance(code, str) and code in DROPS else "protocol")
    if found.keys() != {"nonce", *Rewrite._fields}:
        return Drop("protocol")
    return _checked(found, job) if found["nonce"] == job.nonce else Drop("nonce")


def _checked(found: dict[str, Any], job: Job) -> Rewrite | Drop:
    draft, values, signals = parse_draft(found), _values(found["values"], job), _signals(found["signals"])
    if draft is None or values is None or signals is None or not _is_of_mode(draft, job):
        return Drop("protocol")
    if not all(map(is_plain, draft.texts())):
        return Drop("characters")
    return Rewrite(*draft, values, signals)


def _is_of_mode(draft: Draft, job: Job) -> bool:
    size = sum(map(len, draft.texts()))
    if job.mode is Mode.VALUES:
        return draft.kind is Kind.UNREAD and size == 0
    return draft.kind not in (Kind.UNREAD, Kind.ORDER_TO_READER) and 0 < size <= prose_limit(len(job.text))


def _values(found: object, job: Job) -> tuple[Value, ...] | None:
    if not isinstance(found, list) or len(found) > COUNT_LIMIT:
        return None
    values = []
    for pair in found:
        strings = _strings(pair)
        if strings is None or len(strings) != len(Value._fields):
            return None
        value = Value(*strings)
        if value.type not in (*TYPES, MORE) or not fits(value.type, value.text, WORDS[job.mode]):
            return None
        if value.type == "url" and not is_shown_safely(value.text, job.url_hosts):
            return None
        values.append(value)
    return tuple(values) if sum(len(value.text) for value in values) <= VALUES_LIMIT else None


def _signals(found: object) -> tuple[tuple[str, int], ...] | None:
    if not isinstance(found, list):
        return None
    signals = []
    for pair in found:
        match pair:
            case [str(name), int(count)] if name in SIGNALS and 0 < count <= TEXT_LIMIT:
                signals.append((name, int(count)))
            case _:
                return None
    return tuple(signals) if len(dict(signals)) == len(signals) else None


def _text_of(raw: bytes, type_: str) -> str | None:
    found = read_object(raw)
    if found is None or found.keys() != {"type", "text"} or found["type"] != type_:
        return None
    return found["text"] if isinstance(found["text"], str) else None


def _strings(found: object) -> tuple[str, ...] | None:
    if not isinstance(found, list) or len(found) > ITEMS_LIMIT:
        return None
    return tuple(found) if all(isinstance(item, str) for item in found) else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, at which the model's client would fail
        return False
    return True
