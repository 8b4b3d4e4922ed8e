"""How audit records are written out: a table for people, JSON lines for programs, CSV for spreadsheets.

Peers choose some of the strings, and somebody may have written into the file: so nothing that a
terminal or a spreadsheet would act on leaves here.
"""

import csv
import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from governor.audit.record import instant

if TYPE_CHECKING:  # loading the tables takes time that only the command itself has to pay
    from governor.store.tables import AuditRecord

COLUMNS = (
    "seq", "at", "event", "direction", "peer", "agent", "message_id", "conversation",
    "size", "sha256", "reason", "detail", "previous", "hash",
)  # fmt: skip

_TABLE = (("seq", 6), ("at", 27), ("event", 18), ("direction", 9), ("peer", 14), ("agent", 10),
          ("message_id", 26), ("size", 6), ("reason", 16), ("detail", 0))  # fmt: skip

_FORMULA = tuple("=+-@\t\r\n＝＋－＠")  # noqa: RUF001 - spreadsheets take the wide forms too


def shown(value: object) -> str:
    """Write a value in one line, with escapes for all that a terminal would act on or hide."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _cell(value: object) -> str:
    """Write a value for a spreadsheet; an apostrophe makes text of what would be a formula (CWE-1236)."""
    text = shown(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def fields(record: "AuditRecord") -> dict[str, object]:
    """Return a record as it was hashed, with its hash."""
    values: dict[str, object] = {name: getattr(record, name) for name in COLUMNS}
    return values | {"at": instant(record.at)}


def write_table(records: Iterable["AuditRecord"], out: TextIO) -> None:
    """Write a line for each record, without the hashes."""
    print("  ".join(name.ljust(width) for name, width in _TABLE).rstrip(), file=out)
    for record in records:
        values = fields(record)
        print("  ".join(shown(values[name]).ljust(width) for name, width in _TABLE).rstrip(), file=out)


def write_json(records: Iterable["AuditRecord"], out: TextIO) -> None:
    """Write a JSON object a line, all fields and in ASCII, so that others can verify the chain."""
    for record in records:
        print(json.dumps(fields(record)), file=out)


def write_csv(records: Iterable["AuditRecord"], out: TextIO) -> None:
    """Write all fields as CSV (RFC 4180, with plain line ends)."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow(_cell(value) for value in fields(record).values())


FORMATS: dict[str, Callable[[Iterable["AuditRecord"], TextIO], None]] = {
    "table": write_table,
    "json": write_json,
    "csv": write_csv,
}
"""What `--format` may be."""
