"""Whether a value of the retelling is in the message, if written in another way."""

import re

from reader.contract import Value
from reader.copying import WORDS
from reader.values import find_values
from reader.vocabulary import NUMBER_WORDS

_DIGITS = re.compile(r"\d{1,4000}+")
_THOUSANDS = re.compile(r"(?<=\d)[, ](?=\d{3}(?!\d))")
_PARTS = re.compile(r"[:#]l?")

_BY_DIGITS = frozenset({"number", "duration", "time", "ticket", "port"})
"""Types a model may fairly write in another way: `5 MB` for `5MB`, `PR #7` for `pull request 7`."""


def invents(message: str, texts: tuple[str, ...]) -> bool:
    """Tell whether texts hold a value that the message does not."""
    message = message.casefold()
    digits = {*_digits(message), *_spelled(message)}
    values = {found.value for text in texts for found in find_values(text)}
    return not all(_stems_from(value, message, digits) for value in values)


def _spelled(message: str) -> set[str]:
    words = set(WORDS.findall(message))
    return {str(number) for word, number in NUMBER_WORDS.items() if word in words}


def _digits(text: str) -> set[str]:
    """Return the numbers of a text, those grouped by thousands both whole and in groups."""
    return {*_DIGITS.findall(_THOUSANDS.sub("", text)), *_DIGITS.findall(text)}


def _stems_from(value: Value, message: str, digits: set[str]) -> bool:
    if value.type in _BY_DIGITS:
        return digits.issuperset(_DIGITS.findall(_THOUSANDS.sub("", value.text)))
    text = value.text.casefold().removesuffix("()").strip('"')
    if value.type == "version":
        return any(_occurs(prefix + text.removeprefix("v"), message) for prefix in ("", "v"))
    if value.type == "location":  # "line 88 of a.py" and "a.py:88" are one
        return all(_occurs(part, message) for part in _PARTS.split(text) if part)
    return _occurs(text, message)


def _occurs(text: str, message: str) -> bool:
    """Tell whether text stands in message with no letter or digit right before or after it.

    Letters of scripts without spaces (all beyond Cyrillic) may stand there: they end no word.
    """
    at = message.find(text)
    while at >= 0:
        around = message[at - 1 : at] + message[at + len(text) : at + len(text) + 1]
        if not any(character < "\u0530" and character.isalnum() for character in around):
            return True
        at = message.find(text, at + 1)
    return False
