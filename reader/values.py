"""Finds the typed values of a message, bounds them, and tells where they stand in a text."""

import hashlib
import re
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import NamedTuple

from reader.contract import COUNT_LIMIT, VALUES_LIMIT, Value
from reader.grammar import MORE, SPACED, type_of, within_bounds
from reader.urls import defang, is_shown_safely

_TOKEN = re.compile(
    # Latin, Greek and Cyrillic letters belong to a token, so that no half of a word is taken for a
    # name; letters of scripts written without spaces end it
    r"[A-Za-z0-9_./\\~+@%=:#?&$,;!*'()\[\]\-\u00a3\u00a5\u00b0\u00b5\u00c0-\u052f\u20ac]{1,40000}+"
)
_SPLIT = re.compile(r"[=,;()\[\]'!*]|:(?!//)")
_BEFORE = "([*'\",;:!=?&"
_AFTER = ".,;:!?)]'*=&"
_TRIMS = 6


class Found(NamedTuple):
    """A value where it stands in a text."""

    start: int
    end: int
    value: Value


def find_values(text: str) -> list[Found]:
    """Return every value in text, in order, none within another."""
    found: list[Found] = []
    taken = bytearray(len(text))
    for row in SPACED:
        for match in row.pattern.finditer(text):
            if not any(taken[match.start() : match.end()]):
                taken[match.start() : match.end()] = b"\x01" * len(match[0])
                found.append(Found(match.start(), match.end(), Value(row.type, match[0])))
    for match in _TOKEN.finditer(text):
        for start, end in _gaps(taken, match.start(), match.end()):
            found += _in_token(text, start, end)
    return sorted(found)


def listed(text: str, words: int, hosts: frozenset[str]) -> tuple[Value, ...]:
    """Return what is listed beside the prose: each value once, bounded, in all at most 800 characters.

    What does not fit into the total is one last placeholder.
    """
    every = list(dict.fromkeys(shown(found.value, words, hosts) for found in find_values(text)))
    if len(every) <= COUNT_LIMIT and sum(len(value.text) for value in every) <= VALUES_LIMIT:
        return tuple(every)
    room = VALUES_LIMIT - len(_more(every))
    lengths = accumulate(len(value.text) for value in every)
    fitting = sum(length <= room for length in islice(lengths, COUNT_LIMIT - 1))
    return (*every[:fitting], Value(MORE, _more(every[fitting:])))


def shown(value: Value, words: int, hosts: frozenset[str]) -> Value:
    """Return the value as it may be shown: as it is, defanged, or as a placeholder."""
    text = value.text
    if value.type == "url" and not is_shown_safely(text, hosts):
        text = defang(text)
    if not within_bounds(value.type, text, words):
        text = f"[{value.type}, {len(value.text)} characters, sha256 {_short_hash(value.text)}]"
    return Value(value.type, text)


def _in_token(text: str, start: int, end: int) -> Iterator[Found]:
    """Yield the token as one value, or the values among its pieces."""
    if whole := _trimmed(text, start, end):
        yield whole
        return
    splits = [match.start() for match in _SPLIT.finditer(text, start, end)]
    at = start
    for split in (*splits, end) if splits else ():
        if piece := _trimmed(text, at, split):
            yield piece
        at = split + 1


def _trimmed(text: str, start: int, end: int) -> Found | None:
    """Return the value in text[start:end] after taking away, one by one, what may surround it."""
    while start < end and text[start] in _BEFORE and not text.startswith("::", start):
        start += 1
    for _ in range(_TRIMS):
        token = text[start:end]
        if token and (type_ := type_of(token)):
            return Found(start, end, Value(type_, token))
        if not token or token[-1] not in _AFTER:
            return None
        end -= 1
    return None


def _gaps(taken: bytearray, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of [start, end) that no value has taken."""
    while start < end:
        stop = taken.find(b"\x01", start, end)
        if stop < 0:
            yield start, end
            return
        if stop > start:
            yield start, stop
        free = taken.find(b"\x00", stop, end)
        start = end if free < 0 else free


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _more(values: list[Value]) -> str:
    together = "\n".join(value.text for value in values)
    return f"[{len(values)} more values, {len(together)} characters, sha256 {_short_hash(together)}]"
