"""JSON objects without the readings in which two parsers differ."""

import json
from typing import Any, NoReturn


def read_object(raw: bytes | str) -> dict[str, Any] | None:
    """Return the one JSON object in raw, or None if it is anything else.

    Stricter than RFC 8259: no duplicate names, no NaN or Infinity, UTF-8 only, no depth beyond the
    interpreter's. Lone surrogates written as escapes come through: whoever uses a string checks it.
    """
    try:
        # json.loads would guess UTF-16 from bytes
        text = raw.decode("utf-8") if isinstance(raw, bytes) else raw
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def line(fields: dict[str, Any]) -> bytes:
    """Write fields as one line of pure ASCII, so that no character can end or split it."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_constant(_name: str) -> NoReturn:
    raise ValueError
