"""The first steps with a hostile text: fold it to what can be seen, and count what was hidden."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from reader.characters import HIDING_CLASSES, hiding_class
from reader.contract import READ_LIMIT, TEXT_LIMIT
from reader.errors import DroppedError
from reader.signals import SIGNALS

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")

_SURROGATE = re.compile(r"[\ud800-\udfff]")

_ANSI = re.compile(
    r"\x1b\[[0-?]{0,32}+[ -/]{0,8}+[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]{0,1000}+(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links, clipboard
    r"|\x1b[ -~]?"
    r"|\x9b[0-?]{0,32}+[ -/]{0,8}+[@-~]"
)

TURNS = (
    "system|user|assistant|human|developer|start_of_turn|end_of_turn|start_header_id|end_header_id|bos|eos|s|pad|unk"
    "|think|thinking|tool_calls?|tool_response|tool_result|function_calls?|invoke|antml:[a-z_]{1,30}"
)
CHAT_TOKEN = re.compile(
    r"<\|[^|<>\n]{1,60}+\|>"  # <|im_start|>, <|eot_id|> and all of that family
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|<</?SYS>>"
    rf"|</?(?:{TURNS})>",
    re.IGNORECASE,
)
"""Control tokens of chat templates. Some servers read them inside content and start a turn there."""


class Source(NamedTuple):
    """The message as the reader sees it. `signals` are (name, count) pairs of what was taken out."""

    text: str
    signals: tuple[tuple[str, int], ...]


def normalise(text: str) -> Source:
    """Return the visible text in NFKC, without hiding characters, terminal sequences and comments.

    Raises DroppedError (`too_long`, `not_text`, `empty`): one of `STEPS` after the other.
    """
    counts: Counter[str] = Counter()
    for step in STEPS:
        text = step.run(text, counts)
    return Source(text, tuple((name, counts[name]) for name in SIGNALS if counts[name]))


def _bounded(text: str, _counts: Counter[str]) -> str:
    if len(text) > TEXT_LIMIT:
        raise DroppedError("too_long")
    return text


def _unicode(text: str, _counts: Counter[str]) -> str:
    if _SURROGATE.search(text):
        raise DroppedError("not_text")
    return text


def _without_ansi(text: str, counts: Counter[str]) -> str:
    text, counts["ansi"] = _ANSI.subn("", text)
    return text


def _line_ends(text: str, _counts: Counter[str]) -> str:
    return _LINE_ENDS.sub("\n", text)


def _without_hiding(text: str, counts: Counter[str]) -> str:
    hidden = {character: name for character in set(text) if (name := hiding_class(character))}
    for character, name in hidden.items():
        counts[name] += text.count(character)
    return text.translate(dict.fromkeys(map(ord, hidden)))


def _nfkc(text: str, _counts: Counter[str]) -> str:
    return unicodedata.normalize("NFKC", text)


def _without_comments(text: str, counts: Counter[str]) -> str:
    """Put a space for each closed comment; a space, so that no comment forms around the gap."""
    pieces, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        pieces.append(text[at:start])
        at = end + 3
    counts["html_comment"] = len(pieces)
    return " ".join([*pieces, text[at:]])


def _broken_tokens(text: str, counts: Counter[str]) -> str:
    text, counts["chat_token"] = CHAT_TOKEN.subn(lambda token: f"{token[0][0]} {token[0][1:]}", text)
    return text


def _readable(text: str, _counts: Counter[str]) -> str:
    text = text.strip()
    if len(text) > READ_LIMIT:
        raise DroppedError("too_long")
    if not text:
        raise DroppedError("empty")
    return text


class Step(NamedTuple):
    """One step: what holds after it, with which drops or signals it says that it did not before."""

    what: str
    codes: tuple[str, ...]
    run: Callable[[str, Counter[str]], str]


STEPS: tuple[Step, ...] = (
    Step("at most 10,000 characters", ("too_long",), _bounded),
    Step("valid Unicode", ("not_text",), _unicode),
    Step("no terminal sequences", ("ansi",), _without_ansi),
    Step("line feeds for all line ends", (), _line_ends),
    Step("no hiding characters", HIDING_CLASSES, _without_hiding),
    Step("compatibility forms folded (NFKC)", (), _nfkc),
    Step("no HTML comments", ("html_comment",), _without_comments),
    Step("no chat tokens", ("chat_token",), _broken_tokens),
    Step("something readable, at most 20,000 characters", ("empty", "too_long"), _readable),
)
"""In this order: what a later step looks for must not be put together by an earlier one."""
