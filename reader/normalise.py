"""The first steps with a hostile text: fold it to what can be seen, and count what was hidden."""

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

from reader.characters import hiding_class
from reader.contract import READ_LIMIT, SIGNALS, TEXT_LIMIT
from reader.errors import DroppedError

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")

_ANSI = re.compile(
    r"\x1b\[[0-?]{0,32}+[ -/]{0,8}+[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]{0,1000}+(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links, clipboard
    r"|\x1b[ -~]?"
    r"|\x9b[0-?]{0,32}+[ -/]{0,8}+[@-~]"
)

CHAT_TOKEN = re.compile(
    r"<\|[^|<>\n]{1,60}+\|>"  # <|im_start|>, <|eot_id|> and all of that family
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|<</?SYS>>"
    r"|</?(?:system|user|assistant|human|developer|start_of_turn|end_of_turn|start_header_id|end_header_id|bos|eos|s|pad|unk|think|thinking"
    r"|tool_call|tool_calls|tool_response|tool_result|function_call|function_calls|invoke|antml:[a-z_]{1,30})>",
    re.IGNORECASE,
)
"""Control tokens of chat templates. Some servers read them inside content and start a turn there."""


class Source(NamedTuple):
    """The message as the reader sees it. `signals` are (name, count) pairs of what was taken out."""

    text: str
    signals: tuple[tuple[str, int], ...]


def normalise(text: str) -> Source:
    """Return the visible text in NFKC, without hiding characters, terminal sequences and comments.

    Raises DroppedError (`too_long`, `not_text`, `empty`). Order matters: what a later step looks for
    must not be put together by an earlier one, so each step removes before the next one reads.
    """
    if len(text) > TEXT_LIMIT:
        raise DroppedError("too_long")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DroppedError("not_text")
    counts: Counter[str] = Counter()
    text, counts["ansi"] = _ANSI.subn("", text)
    text = _LINE_ENDS.sub("\n", text)
    # twice: NFKC makes hiding characters from visible-looking ones (U+FFA0), and hides none
    text = _without_hiding(text, counts)
    text = _without_hiding(unicodedata.normalize("NFKC", text), counts)
    text, counts["html_comment"] = _without_comments(text)
    text, counts["chat_token"] = CHAT_TOKEN.subn(lambda token: f"{token[0][0]} {token[0][1:]}", text)
    text = text.strip()
    if len(text) > READ_LIMIT:
        raise DroppedError("too_long")
    if not text:
        raise DroppedError("empty")
    return Source(text, tuple((name, counts[name]) for name in SIGNALS if counts[name]))


def _without_hiding(text: str, counts: Counter[str]) -> str:
    kept = []
    for character in text:
        if name := hiding_class(character):
            counts[name] += 1
        else:
            kept.append(character)
    return "".join(kept)


def _without_comments(text: str) -> tuple[str, int]:
    """Put a space for each closed comment; a space, so that no comment forms around the gap."""
    pieces, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        pieces.append(text[at:start])
        at = end + 3
    return " ".join([*pieces, text[at:]]), len(pieces)
