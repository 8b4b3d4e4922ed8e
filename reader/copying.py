"""How much of the message a retelling copies, in words."""

import re
from collections.abc import Iterator

_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
WORDS = re.compile(rf"[^\W\d_{_SPACELESS}]{{1,4000}}+")
_LETTERS = re.compile(rf"[{_SPACELESS}]")
"""Of scripts that write no spaces; two of them weigh as much as one word."""

_PART = 8
"""Words in a row that count as copied at all."""

_TIMES = 3
"""So many limits may all copied parts have together."""


def copies(source: str, texts: tuple[str, ...], limit: int) -> bool:
    """Tell whether texts, read one after the other, copy too much of source.

    That is more than `limit` words in a row, or in parts more than three times as many. Numbers and
    punctuation neither count nor interrupt, nor does the end of a text: a copy cut into many items is
    one copy. Linear in the texts.
    """
    told = "\n".join(texts).casefold()
    source = source.casefold()
    for unit, weight in ((WORDS, 1), (_LETTERS, 2)):
        ours, theirs = unit.findall(told), unit.findall(source)
        longest = weight * limit + 1
        if not set(_runs(theirs, longest)).isdisjoint(_runs(ours, longest)):
            return True
        if _copied(ours, theirs, weight * _PART) > _TIMES * weight * limit:
            return True
    return False


def _copied(ours: list[str], theirs: list[str], part: int) -> int:
    """Return how many of our words stand in a run of at least `part` words of theirs."""
    runs = set(_runs(theirs, part))
    copied = end = 0
    for at, run in enumerate(_runs(ours, part)):
        if run in runs:
            copied += at + part - max(at, end)
            end = at + part
    return copied


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))
