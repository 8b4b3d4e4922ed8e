"""Secrets in a text: known values and the shapes of credentials, as they are or lightly disguised.

A search costs time in proportion to the text, whatever the text is: every repeat in a pattern is
bounded, and a disguise is taken off once, never again from what came out of it. What is found is
never part of the answer.
"""

import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import unquote, unquote_plus

from governor.message import TEXT_LIMIT
from governor.policy.known_values import Known, Needle, joined, letters_and_digits, visible
from governor.policy.secret_shapes import SHAPES, Shape


@dataclass(frozen=True, slots=True)
class Found:
    """What kind of secret stands in a text, and where: a position, or how it was disguised.

    `canary` is the name of the planted bait, where it is one.
    """

    kind: str
    where: str
    canary: str = ""


# Six bytes, the shortest that is searched for, are 8 characters of base64 and 12 of hex.
_BASE64_RUN: Final = re.compile(rf"[A-Za-z0-9+/_-]{{8,{TEXT_LIMIT}}}")
_HEX_RUN: Final = re.compile(rf"[0-9A-Fa-f]{{12,{TEXT_LIMIT}}}")
_TO_STANDARD: Final = str.maketrans("-_", "+/")


def find_secret(text: str, known: Known) -> Found | None:
    """Return the first secret in the text, or None; a canary comes before all else.

    Searches for the shapes and for the known values: as they are; with white space, invisible
    characters or (values that allow it) punctuation put in; percent-encoded; in base64, base64url or
    hex; reversed.
    """
    views = list(_views(text))
    for view in views:
        if (found := _value_in(view, known.canaries, text)) is not None:
            return found
    for view in views:
        found = _shape_in(view, text) or _value_in(view, known.others, text)
        if found is not None:
            return found
    return None


@dataclass(frozen=True, slots=True)
class _View:
    """The text with one disguise taken off (none: as it is).

    `is_joined` where white space is gone, `is_bare` where all but letters and digits is.
    """

    disguise: str
    text: str
    is_joined: bool = False
    is_bare: bool = False


def _views(text: str) -> Iterator[_View]:
    seen = visible(text)
    without_space = joined(seen)
    yield _View("", text)
    if seen != text:
        yield _View("invisible characters", seen)
    yield _View("white space", without_space, is_joined=True)
    for source, is_joined in ((text, False), (without_space, True)):
        if "%" in source:
            yield _View("percent-encoded", unquote(source), is_joined)
        yield _View("base64", "\n".join(_base64(source)), is_joined)
        yield _View("hex", "\n".join(_hex(source)), is_joined)
        yield _View("reversed", source[::-1], is_joined)
    if "+" in text:  # a space in the query of a URL
        yield _View("percent-encoded", unquote_plus(text))
    yield _View("punctuation", letters_and_digits(seen), is_bare=True)


def _value_in(view: _View, needles: Iterable[Needle], text: str) -> Found | None:
    for needle in needles:
        if needle.bare is view.is_bare and (start := view.text.find(needle.text)) >= 0:
            kind = "canary" if needle.canary else "known_value"
            return Found(kind, view.disguise or _position(text, start), needle.canary)
    return None


def _shape_in(view: _View, text: str) -> Found | None:
    for shape in () if view.is_bare else SHAPES:
        start = _find(shape, view)
        if start is not None:
            return Found(shape.kind, view.disguise or _position(text, start))
    return None


def _find(shape: Shape, view: _View) -> int | None:
    """Return where the shape stands in the view."""
    if not view.is_joined:
        match = shape.pattern.search(view.text)
        return match.start() if match else None
    if shape.changes is not None:
        for match in shape.pattern.finditer(view.text):
            if _changes(match.group()) >= shape.changes:
                return match.start()
    return None


def _changes(token: str) -> int:
    """Count the changes between small letters, capitals and digits: many in a random token, few in prose."""
    kinds = [(character.islower(), character.isupper()) for character in token if character.isalnum()]
    return sum(before != after for before, after in pairwise(kinds))


def _position(text: str, start: int) -> str:
    line = text.count("\n", 0, start) + 1
    return f"line {line}, character {start - text.rfind(chr(10), 0, start)}"


def _base64(text: str) -> Iterator[str]:
    """Decode each run from each of the four characters at which a quantum may begin (RFC 4648, 4 and 5)."""
    for match in _BASE64_RUN.finditer(text):
        run = match.group().translate(_TO_STANDARD)
        for start in range(4):
            part = run[start:]
            # One character left over holds no byte; two or three do, and want their padding.
            part = part[: len(part) - (len(part) % 4 == 1)]
            yield binascii.a2b_base64(part + "=" * (-len(part) % 4)).decode(errors="replace")


def _hex(text: str) -> Iterator[str]:
    """Decode each run from each of the two digits at which a byte may begin."""
    for match in _HEX_RUN.finditer(text):
        for start in range(2):
            part = match.group()[start:]
            yield bytes.fromhex(part[: len(part) // 2 * 2]).decode(errors="replace")
