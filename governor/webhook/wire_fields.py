"""The fields of each type of webhook as tables: its names, each with the check of its grammar.

A body with a key too many is refused like one with a key too few: what one side ignores, the other
may mean.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from governor.message import TEXT_LIMIT, is_address, is_fingerprint, is_id, is_name
from governor.webhook.certificates import CERTIFICATE_LIMIT
from governor.webhook.encodings import WHOLE_LIMIT, SpellingError, from_base64, from_instant, from_object
from governor.webhook.incoming import WireError, WireReason, WireType
from governor.webhook.signing import SIGNATURE_LENGTH, VerifyKey

VERSION: Final = 1
"""The wire version inside the signed body."""

LINEAGE_LIMIT: Final = 16
"""Most agents in a lineage."""

LIFE_LIMIT: Final = timedelta(hours=24)
"""How far ahead of the timestamp a webhook may expire."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Check = Callable[[Any], Any]
"""Returns the value of a field, or raises SpellingError (or WireError with a reason of its own)."""


def read_fields(kind: WireType, data: object) -> dict[str, Any]:
    """Return the checked fields of `data`, or raise WireError."""
    if isinstance(data, dict) and "v" in data and checked(_whole, data["v"]) != VERSION:
        raise WireError(WireReason.VERSION)  # asked first: another version may well have other keys
    checks = {**_EVERY, **_OF_TYPE[kind]}
    try:
        found = from_object(data, checks)
    except SpellingError as error:
        raise WireError(WireReason.MALFORMED) from error
    return {name: checked(check, found[name]) for name, check in checks.items()}


def checked(check: Check, value: object) -> Any:  # noqa: ANN401 - the check decides the type
    """Return the checked value, or raise WireError."""
    try:
        return check(value)
    except SpellingError as error:
        raise WireError(WireReason.FIELD) from error


def instant(value: object) -> Any:  # noqa: ANN401 - see `_string`
    """Check an instant; `encodings` says how it is spelled."""
    return _string(from_instant)(value)


def text_fault(text: str) -> WireReason | None:
    """Return why a text cannot cross, or None.

    A lone surrogate has no UTF-8, and a NUL no place in a Postgres text; either would turn a
    message into a fault of the database.
    """
    if len(text) > TEXT_LIMIT:
        return WireReason.TOO_LONG
    if not text or _UNSTORABLE.search(text):
        return WireReason.TEXT
    return None


def _string(read: Callable[[str], Any]) -> Check:
    """Make a check out of a function that takes strings only."""

    def check(value: object) -> Any:  # noqa: ANN401 - what `read` returns
        if not isinstance(value, str):
            raise SpellingError("not a string")
        return read(value)

    return check


def _grammar(fits: Callable[[str], bool]) -> Check:
    """Make a check out of a predicate on strings."""

    def read(value: str) -> str:
        if not fits(value):
            raise SpellingError("outside its grammar")
        return value

    return _string(read)


def _whole(value: object) -> int:
    if type(value) is not int:  # a bool is an int, too
        raise SpellingError("not a whole number")
    return value


def _count(value: object) -> int:
    if not 0 <= (number := _whole(value)) <= WHOLE_LIMIT:
        raise SpellingError("not a count")
    return number


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise SpellingError("neither true nor false")
    return value


def _is_agent(value: str) -> bool:
    """Hold each half to the grammar of names, which keeps `operator` and the like out."""
    return is_address(value) and all(is_name(half) for half in value.split("@"))


def _optional_id(value: object) -> Any:  # noqa: ANN401 - see `_string`
    return None if value is None else _id(value)


def _lineage(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > LINEAGE_LIMIT:
        raise SpellingError("not a lineage")
    return tuple(_agent(name) for name in value)


def _text(value: str) -> str:
    if fault := text_fault(value):
        raise WireError(fault)
    return value


def _certificate(value: str) -> bytes:
    raw = from_base64(value)
    if not 0 < len(raw) <= CERTIFICATE_LIMIT:
        raise SpellingError("no certificate of ours is that long")
    return raw


def _proof(value: str) -> bytes:
    return from_base64(value, SIGNATURE_LENGTH)


_id = _grammar(is_id)
_agent = _grammar(_is_agent)
_fingerprint = _grammar(is_fingerprint)

_EVERY: Final[Mapping[str, Check]] = {
    "v": _whole,
    "from": _fingerprint,
    "to": _fingerprint,
    "seq": _count,
    "expires_at": instant,
}

_OF_TYPE: Final[Mapping[WireType, Mapping[str, Check]]] = {
    WireType.MESSAGE: {
        "sender": _agent,
        "recipient": _agent,
        "conversation": _id,
        "in_reply_to": _optional_id,
        "hops": _whole,
        "lineage": _lineage,
        "text": _string(_text),
    },
    WireType.STOP: {},
    WireType.HELLO: {"open": _flag},
    WireType.CANCEL: {"message": _id},
    WireType.ROTATE: {
        "new_public_key": _string(VerifyKey.from_public),
        "new_certificate": _string(_certificate),
        "overlap_until": instant,
        "proof": _string(_proof),
    },
}
