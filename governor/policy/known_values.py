"""The secrets a host knows by value: made ready to be searched for, and judged whether they can be.

A value that is short or plain is found in harmless texts, and then everything is refused.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Final

KNOWN_LENGTH: Final = 6
"""A value shorter than this is not searched for."""

STRENGTH: Final = 32.0
"""Bits, as `strength` guesses them, that a value somebody lists must have: more than a long word has."""

DISTINCT: Final = 6
"""Different characters that a value somebody lists must have."""

_LETTER_WITHIN_A_WORD: Final = 2.0  # it tells little: Shannon, 1951
_DIGIT: Final = log2(10)
_LETTER: Final = log2(26)
_OTHER: Final = 1.0

# Nothing to see, and yet letters or symbols to Unicode: Hangul fillers and the empty Braille cell.
_BLANKS: Final = frozenset("\u115f\u1160\u2800")
_UNSEEN_ASCII: Final = {
    code: None for code in range(128) if not (chr(code).isprintable() or chr(code).isspace())
}


@dataclass(frozen=True, slots=True)
class KnownValue:
    """A secret by value; `canary` is its name where it was planted as bait."""

    text: str
    canary: str = ""


@dataclass(frozen=True, slots=True)
class Needle:
    """A form of a value that is searched for; `bare`: what is left of it are letters and digits alone."""

    text: str
    canary: str
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """All values a host knows, ready for the search: canaries apart, each in a fixed order."""

    canaries: tuple[Needle, ...] = ()
    others: tuple[Needle, ...] = ()


def known(values: Iterable[KnownValue]) -> Known:
    """Prepare values for the search; those that are too short are left out."""
    needles = sorted({needle for value in values for needle in _needles(value)}, key=_order)
    return Known(
        tuple(needle for needle in needles if needle.canary),
        tuple(needle for needle in needles if not needle.canary),
    )


def _order(needle: Needle) -> tuple[str, str, bool]:
    return needle.text, needle.canary, needle.bare


def _needles(value: KnownValue) -> Iterable[Needle]:
    for text in {value.text, joined(visible(value.text))}:
        if len(text) >= KNOWN_LENGTH:
            yield Needle(text, value.canary)
    bare = letters_and_digits(visible(value.text))
    if not weakness(bare):
        yield Needle(bare, value.canary, bare=True)


def weakness(value: str) -> str:
    """Say what makes a value too easily found in harmless texts; empty when it will do."""
    if len(joined(value)) < KNOWN_LENGTH:
        return f"it is shorter than {KNOWN_LENGTH} characters"
    if len(set(value)) < DISTINCT:
        return f"it has fewer than {DISTINCT} different characters"
    if strength(value) < STRENGTH:
        return "it is as plain as a word or a short number"
    return ""


def strength(value: str) -> float:
    """Guess how many bits of surprise a value holds: little for words, much where kinds of characters change."""
    return sum(_surprise(before, after) for before, after in pairwise(f" {value}"))


def _surprise(before: str, character: str) -> float:
    if character.isdigit():
        return _DIGIT
    if not character.isalpha():
        return _OTHER
    goes_on = before.isalpha() and not (before.islower() and character.isupper())
    return _LETTER_WITHIN_A_WORD if goes_on else _LETTER


def visible(text: str) -> str:
    """Leave out what cannot be seen or sits on another character; undo look-alike forms."""
    if text.isascii():
        return text.translate(_UNSEEN_ASCII)
    return "".join(
        part
        for character in text
        # Some characters stand for whole phrases: cut, lest the text grow eighteen times as long.
        for part in unicodedata.normalize("NFKD", character)[:4]
        if part.isspace() or (unicodedata.category(part)[0] not in "CM" and part not in _BLANKS)
    )


def joined(text: str) -> str:
    """Leave out all white space."""
    return "".join(text.split())


def letters_and_digits(text: str) -> str:
    """Leave out all but letters and digits."""
    return "".join(filter(str.isalnum, text))
