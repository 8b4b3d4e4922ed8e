"""What an answer of the model must not be. One pure function a check; the tables say with which code.

Why a code is a drop stands in `reader.contract.DROPS`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from reader.characters import is_plain
from reader.contract import Draft, Kind
from reader.copying import copies
from reader.forms import FORMS, ORDERS, OVERRIDES, found_by
from reader.invention import invents
from reader.prompt import EXAMPLE_NONCES, SYSTEM, boundary_of
from reader.urls import is_shown_safely
from reader.values import Found, find_values
from reader.vocabulary import DOMAINS


class Case(NamedTuple):
    """A draft beside what it was made from. `message` is the normalised text."""

    draft: Draft
    message: str
    nonce: str
    copy_limit: int
    hosts: frozenset[str]


_PROMPT_RUN = 12
"""Words in a row of our own orders, beyond which an answer repeats them."""

_LONGEST_WORD = 64
"""Longest run without a space that is no value, in characters, of scripts that write spaces."""

_ADDRESS = re.compile(rf"[^\W_]\.(?:{DOMAINS})(?![\w\-])", re.IGNORECASE)
"""What is an address to some program, whether or not a grammar knows it."""

_ORDER = found_by(ORDERS, "order_to_agent")
_OVERRIDE = found_by(OVERRIDES, "order_to_agent")


def _commands_reader(case: Case) -> bool:
    return case.draft.kind is Kind.ORDER_TO_READER


def _hides_characters(case: Case) -> bool:
    return not all(map(is_plain, case.draft.texts()))


def _looks_like(code: str) -> Callable[[Case], bool]:
    pattern = found_by(FORMS, code)
    return lambda case: any(map(pattern.search, case.draft.texts()))


def _leaks_prompt(case: Case) -> bool:
    told = _squeezed("".join(case.draft.texts()))
    nonces = (case.nonce, *EXAMPLE_NONCES)
    canaries = map(_squeezed, (*nonces, *map(boundary_of, nonces)))
    if any(canary in told or canary[::-1] in told for canary in canaries):
        return True
    return copies(SYSTEM, case.draft.texts(), _PROMPT_RUN)


def _commands_agent(case: Case) -> bool:
    told = (case.draft.summary, *case.draft.points)
    return any(map(_ORDER.search, told)) or any(map(_OVERRIDE.search, case.draft.texts()))


def _copies_message(case: Case) -> bool:
    return copies(case.message, case.draft.texts(), case.copy_limit)


def _invents(case: Case) -> bool:
    return invents(case.message, case.draft.texts())


def _is_blob(case: Case) -> bool:
    return any(
        len(word) > _LONGEST_WORD and word.isascii()
        for text in case.draft.texts()
        for word in _between(find_values(text), text).split(" ")
    )


def _shows_address(case: Case) -> bool:
    for text in case.draft.texts():
        values = find_values(text)
        urls = [found.value.text for found in values if found.value.type == "url"]
        if not all(is_shown_safely(url, case.hosts) for url in urls):
            return True
        if text.count("://") > sum(url.count("://") for url in urls) or _ADDRESS.search(
            _between(values, text)
        ):
            return True
    return False


def _between(values: list[Found], text: str) -> str:
    """Return what of a text is no value."""
    starts, ends = (0, *(found.end for found in values)), (*(found.start for found in values), len(text))
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))


class Check(NamedTuple):
    """The code of a drop, and what tells that a case deserves it."""

    code: str
    fails: Callable[[Case], bool]


CHECKS: tuple[Check, ...] = (
    Check("order_to_reader", _commands_reader),
    Check("characters", _hides_characters),
    Check("markup", _looks_like("markup")),
    Check("chat_syntax", _looks_like("chat_syntax")),
    Check("imitation", _looks_like("imitation")),
    Check("prompt_leak", _leaks_prompt),
    Check("order_to_agent", _commands_agent),
    Check("copied", _copies_message),
    Check("invented_value", _invents),
)
"""On the answer as the model wrote it. The first that fails is the reason of the drop."""

SHOWN_CHECKS: tuple[Check, ...] = (
    Check("blob", _is_blob),
    Check("address", _shows_address),
)
"""On the answer as it would be shown: values bounded, addresses defanged."""


def first_failure(checks: tuple[Check, ...], case: Case) -> str | None:
    """Return the code of the first check that the case fails, or None."""
    return next((check.code for check in checks if check.fails(case)), None)


def _squeezed(text: str) -> str:
    """Return the letters and digits of a text: a canary with something between them is still one."""
    return "".join(filter(str.isalnum, text.casefold()))
