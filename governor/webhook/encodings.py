"""The one accepted spelling of bytes, instants and JSON between governors.

Two spellings of one value are two hashes of one message, or a check that one side makes and the
other does not. So every decoder here takes exactly what its encoder writes, and nothing else; what
it refuses is a SpellingError, whatever the parser below stumbled on.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NoReturn

WHOLE_LIMIT = 2**53 - 1
"""Largest magnitude of a whole number that every JSON parser keeps exactly (RFC 8259, section 6)."""

_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z", re.ASCII)


class SpellingError(ValueError):
    """The value is not spelled in the one accepted way."""


def to_base64(raw: bytes) -> str:
    """Return standard base64 with padding (RFC 4648, section 4)."""
    return base64.b64encode(raw).decode("ascii")


def from_base64(text: str, length: int | None = None) -> bytes:
    """Return the bytes of canonical base64, of exactly `length` bytes if given."""
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:  # also binascii.Error, and non-ASCII text
        raise SpellingError("not base64") from error
    if to_base64(raw) != text:  # unused bits set: many spellings of one signature
        raise SpellingError("base64 is not canonical")
    if length is not None and len(raw) != length:
        raise SpellingError(f"{length} bytes expected")
    return raw


def to_base64url(raw: bytes) -> str:
    """Return base64url without padding (RFC 4648, section 5), as one word for a terminal."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """Return the bytes of canonical base64url without padding."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as error:
        raise SpellingError("not base64url") from error
    if to_base64url(raw) != text:
        raise SpellingError("base64url is not canonical")
    return raw


def to_instant(at: datetime) -> str:
    """Return an aware datetime as UTC with six decimals and a Z (RFC 3339)."""
    if at.tzinfo is None:
        raise SpellingError("an instant needs a time zone")
    return at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_instant(text: str) -> datetime:
    """Return the aware UTC datetime that `to_instant` wrote."""
    if _INSTANT.fullmatch(text) is None:
        raise SpellingError("not an instant")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:  # the 31st of February
        raise SpellingError("no such instant") from error


def to_json(value: object) -> bytes:
    """Return JSON in UTF-8, keys sorted, without spaces: the same bytes for the same value."""
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    ).encode()


def from_json(raw: bytes) -> Any:  # noqa: ANN401 - JSON is any of its types; the caller checks which
    """Return the value of strict JSON: UTF-8 without a mark, whole numbers only, no key twice.

    A parser that keeps the last of two equal keys and one that keeps the first would read two
    messages out of one signed body.
    """
    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_int=_whole,
            parse_float=_refuse,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError) as error:  # also UnicodeDecodeError
        raise SpellingError("not strict JSON") from error


def from_object(value: object, names: Iterable[str]) -> dict[str, Any]:
    """Return value as a dict if it is a JSON object with exactly these keys."""
    if not isinstance(value, dict) or value.keys() != set(names):
        raise SpellingError("a key is missing or unknown")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SpellingError("a key stands twice")
    return found


def _whole(digits: str) -> int:
    if len(digits) > len(str(-WHOLE_LIMIT)) or abs(value := int(digits)) > WHOLE_LIMIT:
        raise SpellingError("number too large")
    return value


def _refuse(spelling: str) -> NoReturn:
    raise SpellingError(f"not a whole number: {spelling}")
