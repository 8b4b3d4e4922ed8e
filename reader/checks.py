"""What an answer of the model must not be. One pure function a check; the tables say with which code."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from reader.characters import is_plain
from reader.contract import Draft, Kind, Value
from reader.normalise import CHAT_TOKEN
from reader.prompt import SYSTEM, boundary_of
from reader.urls import is_shown_safely
from reader.values import find_values


class Case(NamedTuple):
    """A draft beside what it was made from. `message` is the normalised text."""

    draft: Draft
    message: str
    nonce: str
    copy_limit: int
    hosts: frozenset[str]


_PROMPT_RUN = 12
"""Words in a row of our own orders, beyond which an answer repeats them."""

_LONGEST_WORD = 120

_START = r"(?:^|[.!?;:,\"'(\-] ?)"
_WHO = "system|governor|operator|administrator|admin|developer|assistant|security|human|user|tool"

_MARKUP = re.compile(
    r"<[/!?A-Za-z]|!\[|\] ?\(|^\[[^\]]{1,100}\]:|```|~~~|(?:javascript|vbscript):|data:[a-z]{1,20}/",
    re.IGNORECASE,
)
_CHAT = re.compile(
    rf"{CHAT_TOKEN.pattern}|<\||\|>"
    r"|(?:^|[.!?;] ?)(?:human|assistant|user|system|developer|tool) ?:"
    r"|### ?(?:instruction|system|response|human|assistant|user)"
    r"|\"(?:tool_calls?|tool_use|tool_name|tool_input|function_call|arguments|role)\" ?:"
    r"|\bantml:|\bfunction_calls\b",
    re.IGNORECASE,
)
_IMITATION = re.compile(
    rf"\[ ?(?:{_WHO})\b"
    rf"|{_START}(?:{_WHO}) (?:message|notes?|notice|notification|reminder|alert|override|prompt|instructions?) ?[:\-]"
    r"|system[-_ ]reminder|end of (?:the )?message\b|content from another agent|no model read this",
    re.IGNORECASE,
)
_SECOND_PERSON_ORDER = re.compile(
    r"\byou(?: |'ll )(?:must|should|shall|will|have to|need to"
    r"|are (?:now|to|required|instructed|allowed|authori[sz]ed|permitted))\b"
    r"|\byour (?:new |only |real |previous )?(?:instructions?|system prompt|rules?|guidelines|role|goal|objective)\b"
    rf"|{_START}(?:please )?(?:do not|don't|never) (?:tell|inform|mention|reveal|notify|ask|report|warn)\b",
    re.IGNORECASE,
)
_OVERRIDE = re.compile(
    rf"{_START}(?:please )?(?:now )?(?:ignore|disregard|forget|override|bypass|discard)"
    r" (?:all|any|every|everything|the|your|these|those|previous|prior|above|earlier)\b[^.!?]{0,60}?"
    r"\b(?:instructions?|rules?|prompts?|guidelines|polic(?:y|ies)|directions|directives|safety|restrictions|context)\b",
    re.IGNORECASE,
)
_SPACELESS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORDS = re.compile(rf"[^\W\d_{_SPACELESS}]{{1,4000}}+")
_LETTERS = re.compile(rf"[{_SPACELESS}]")
"""Of scripts that write no spaces; two of them weigh as much as one word."""
_DIGITS = re.compile(r"\d{1,4000}+")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)

_BY_DIGITS = frozenset({"number", "duration", "time", "ticket"})
"""Types a model may fairly write in another way: `5 MB` for `5MB`, `PR #7` for `pull request 7`."""


def _commands_reader(case: Case) -> bool:
    return case.draft.kind is Kind.ORDER_TO_READER


def _hides_characters(case: Case) -> bool:
    return not all(map(is_plain, case.draft.texts()))


def _holds(pattern: re.Pattern[str]) -> Callable[[Case], bool]:
    return lambda case: any(map(pattern.search, case.draft.texts()))


def _leaks_prompt(case: Case) -> bool:
    prose = "\n".join(case.draft.texts())
    secret = case.nonce in prose or boundary_of(case.nonce) in prose
    return secret or copies(SYSTEM, case.draft.texts(), _PROMPT_RUN)


def _commands_agent(case: Case) -> bool:
    told = (case.draft.summary, *case.draft.points)
    return any(map(_SECOND_PERSON_ORDER.search, told)) or any(map(_OVERRIDE.search, case.draft.texts()))


def _copies_message(case: Case) -> bool:
    return copies(case.message, case.draft.texts(), case.copy_limit)


def _invents(case: Case) -> bool:
    message = case.message.casefold()
    words = set(_WORDS.findall(message))
    digits = {*_digits(message), *(str(n) for n, word in enumerate(_NUMBER_WORDS) if word in words)}
    values = {found.value for text in case.draft.texts() for found in find_values(text)}
    return not all(_stems_from(value, message, digits) for value in values)


def _is_blob(case: Case) -> bool:
    return any(
        len(word) > _LONGEST_WORD and word.isascii()
        for text in case.draft.texts()
        for word in text.split(" ")
    )


def _shows_address(case: Case) -> bool:
    for text in case.draft.texts():
        urls = [found for found in find_values(text) if found.value.type == "url"]
        known = sum("://" in url.value.text for url in urls)
        if text.count("://") > known or not all(is_shown_safely(url.value.text, case.hosts) for url in urls):
            return True
    return False


Check = tuple[str, Callable[[Case], bool]]

CHECKS: tuple[Check, ...] = (
    ("order_to_reader", _commands_reader),
    ("characters", _hides_characters),
    ("markup", _holds(_MARKUP)),
    ("chat_syntax", _holds(_CHAT)),
    ("imitation", _holds(_IMITATION)),
    ("prompt_leak", _leaks_prompt),
    ("order_to_agent", _commands_agent),
    ("copied", _copies_message),
    ("invented_value", _invents),
)
"""On the answer as the model wrote it. The first that holds is the reason of the drop."""

SHOWN_CHECKS: tuple[Check, ...] = (
    ("blob", _is_blob),
    ("address", _shows_address),
)
"""On the answer as it would be shown: values bounded, addresses defanged."""


def first_failure(checks: tuple[Check, ...], case: Case) -> str | None:
    """Return the code of the first check that the case fails, or None."""
    return next((code for code, fails in checks if fails(case)), None)


def copies(source: str, texts: tuple[str, ...], limit: int) -> bool:
    """Tell whether one of texts holds more than `limit` words of source in a row.

    Numbers and punctuation neither count nor interrupt. Linear in the texts.
    """
    for unit, length in ((_WORDS, limit + 1), (_LETTERS, 2 * limit + 1)):
        runs = set(_runs(unit.findall(source.casefold()), length))
        if any(run in runs for text in texts for run in _runs(unit.findall(text.casefold()), length)):
            return True
    return False


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def _digits(text: str) -> list[str]:
    return _DIGITS.findall(_THOUSANDS.sub("", text))


def _stems_from(value: Value, message: str, digits: set[str]) -> bool:
    """Tell whether a value of the prose is in the message (casefolded), if written in another way."""
    if value.type in _BY_DIGITS:
        return digits.issuperset(_digits(value.text))
    text = value.text.casefold().removesuffix("()").strip('"')
    if value.type == "version":
        return any(_occurs(prefix + text.removeprefix("v"), message) for prefix in ("", "v"))
    if value.type == "location":  # "line 88 of a.py" and "a.py:88" are one
        return all(_occurs(part, message) for part in re.split(r"[:#]l?", text) if part)
    return _occurs(text, message)


def _occurs(text: str, message: str) -> bool:
    """Tell whether text stands in message with no letter or digit right before or after it."""
    at = message.find(text)
    while at >= 0:
        around = message[at - 1 : at] + message[at + len(text) : at + len(text) + 1]
        if not any(character.isascii() and character.isalnum() for character in around):
            return True
        at = message.find(text, at + 1)
    return False
