"""Walks the log from its beginning and names the first record that is not as it was written.

The chain alone finds what was changed by somebody who did not, or could not, hash everything after it
anew. An anchor is a head that left this host (signed in a receipt, posted to the group): up to the
last one, even a log that was wholly rewritten is found out. What lies behind it is the unanchored tail.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import text

from governor.audit.record import canonical_json, genesis_hash, record_hash
from governor.store.unit_of_work import UnitOfWork

Anchor = tuple[int, str]
"""(seq, hash) of a record, as it was the head when it left this host."""

Broken = tuple[int, str]
"""(seq, why in words) of a record that is changed or missing."""

Stored = dict[str, bytes | None]
"""A row's columns but `seq`, in the bytes the file holds."""

_COLUMNS = (
    "at", "event", "direction", "peer", "agent", "message_id", "conversation",
    "size", "sha256", "reason", "detail", "previous", "hash",
)  # fmt: skip

# Bytes, because a changed row need not be anything that the driver could decode or the tables load.
_SELECT = text(
    f"SELECT seq, {', '.join(f'CAST({name} AS BLOB)' for name in _COLUMNS)} FROM audit_record ORDER BY seq"  # noqa: S608 - constants only
)

_AT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the walk.

    `count` is how many records hold, `head` the last of these. `first_broken` is the seq of the first
    record that is changed or missing, and `why` says so in words. `unanchored_from` is the first record
    that no anchor vouches for; None when the last one is anchored.
    """

    ok: bool
    count: int
    head: Anchor | None
    first_broken: int | None
    why: str | None
    unanchored_from: int | None


def verify(uow: UnitOfWork, anchors: Iterable[Anchor] = ()) -> Verdict:
    """Check every record against the one before it and against the anchors."""
    claims: dict[int, set[str]] = {}
    for seq, hash_ in anchors:
        claims.setdefault(seq, set()).add(hash_)
    head: Anchor | None = None
    broken: Broken | None = None
    anchored = 0
    for seq, stored in _rows(uow):
        broken = _misplaced(seq, head) or _changed(seq, stored, head, claims.get(seq, set()))
        if broken:
            break
        head = (seq, (stored["hash"] or b"").decode())
        anchored = seq if seq in claims else anchored
    else:
        broken = _cut_off(head, max([1, *claims]))
    count = head[0] if head else 0
    return Verdict(
        ok=broken is None,
        count=count,
        head=head,
        first_broken=broken[0] if broken else None,
        why=broken[1] if broken else None,
        unanchored_from=None if broken is None and anchored == count else anchored + 1,
    )


def _rows(uow: UnitOfWork) -> Iterator[tuple[int, Stored]]:
    rows = uow.session.connection().execute(_SELECT, execution_options={"yield_per": 1000})
    for seq, *values in rows:
        yield seq, dict(zip(_COLUMNS, values, strict=True))


def _misplaced(seq: int, head: Anchor | None) -> Broken | None:
    expected = head[0] + 1 if head else 1
    if seq < expected:
        return seq, f"record {seq} was inserted: the log begins with record 1"
    if seq > expected:
        return expected, f"record {expected} is missing: record {seq} comes in its place"
    return None


def _changed(seq: int, stored: Stored, head: Anchor | None, claims: set[str]) -> Broken | None:
    try:
        fields = _fields(seq, stored)
        hash_ = record_hash(canonical_json(fields))
        previous = head[1] if head else _genesis(fields)
    except (ValueError, TypeError, LookupError, RecursionError):
        return seq, f"record {seq} was changed: it is not written as a governor writes records"
    if hash_ != _text(stored["hash"]):
        return seq, f"record {seq} was changed or moved: its hash does not fit its contents and place"
    if fields["previous"] != previous:
        before = f"record {seq - 1}" if head else "from the host it names"
        return seq, f"record {seq} does not follow {before}: one of them was replaced"
    if claims - {hash_}:
        return seq, f"record {seq} was replaced: it is not the one that was anchored"
    return None


def _cut_off(head: Anchor | None, last: int) -> Broken | None:
    end = head[0] if head else 0
    if end >= last:
        return None
    return end + 1, f"record {end + 1} is missing: the log ends, but there was a record {last}"


def _fields(seq: int, stored: Stored) -> dict[str, object]:
    """Return what was hashed, or raise one of the errors of a record that is written wrongly."""
    fields: dict[str, object] = {name: _text(value) for name, value in stored.items()}
    del fields["hash"]
    at = _AT.fullmatch(str(fields["at"]))
    if at is None:
        raise ValueError
    size, detail = fields["size"], fields["detail"]
    fields["seq"] = seq
    fields["at"] = f"{at[1]}T{at[2]}Z"
    fields["size"] = None if size is None else _whole(str(size))
    fields["detail"] = None if detail is None else json.loads(str(detail), object_pairs_hook=_unique)
    return fields


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _whole(digits: str) -> int:
    """Take a number in the one way SQLite writes it; `int` would also take `1_2`."""
    if str(int(digits)) != digits:
        raise ValueError
    return int(digits)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse a key that comes twice: we would hash the last one while SQLite shows the first."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def _genesis(fields: Mapping[str, object]) -> str:
    """Return what the first record must have in place of a previous hash."""
    detail = fields["detail"]
    if fields["event"] != "host_made" or not isinstance(detail, dict):
        raise ValueError
    return genesis_hash(detail["name"], detail["key"])
