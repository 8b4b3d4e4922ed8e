"""`governor audit`: reads the log, sums it up, and checks that nobody changed it."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from governor.audit.record import AuditEvent, instant
from governor.cli.audit_formats import FORMATS, fields, shown
from governor.clock import SystemClock
from governor.errors import ConfigError, LocalError
from governor.message import Direction, is_fingerprint

if TYPE_CHECKING:
    from governor.audit.query import Filter
    from governor.audit.stats import Statistics
    from governor.audit.verify import Anchor
    from governor.store.unit_of_work import UnitOfWork

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name

BROKEN = 1
"""Exit code of `verify` when a record is changed or missing."""

_SPAN = re.compile(r"(\d{1,5})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_HISTORY = 20
"""Lines of the STOP and GO history in the output for people; JSON has all."""


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `audit`, `audit stats` and `audit verify`."""
    audit = subparsers.add_parser("audit", help="show, sum up or verify the audit log")
    audit.add_argument(
        "--since", type=_when, metavar="WHEN", help="from then on: 2026-01-31, 2026-01-31T12:00, 30m, 1h, 2d"
    )
    audit.add_argument("--until", type=_when, metavar="WHEN", help="before then; dates are UTC")
    audit.add_argument("--peer", metavar="NAME", help="of this peer")
    audit.add_argument("--agent", metavar="NAME", help="of this agent of ours")
    audit.add_argument("--direction", choices=[str(way) for way in Direction], help="one way only")
    audit.add_argument(
        "--event", choices=[str(event) for event in AuditEvent], metavar="EVENT", help="one kind"
    )
    audit.add_argument("--limit", type=_positive, metavar="N", help="the newest N")
    form = audit.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=list(FORMATS), default="table", help="default: table; json: an object a line"
    )
    form.add_argument("--json", action="store_true", help="print one JSON object")
    audit.set_defaults(func=_list)

    commands = audit.add_subparsers(metavar="[stats | verify]")
    stats = commands.add_parser("stats", help="sum up what the filters before `stats` pick (default: all)")
    stats.set_defaults(func=_stats)
    verify = commands.add_parser(
        "verify", help="check the chain of all records; exit code 1 if one is changed or missing"
    )
    verify.add_argument(
        "--anchor",
        dest="anchors",
        action="append",
        default=[],
        type=_anchor,
        metavar="SEQ:HASH",
        help="a head that was posted or sent in a receipt; may be repeated",
    )
    verify.set_defaults(func=_verify)
    for parser in (stats, verify):
        parser.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
        )


def _list(args: argparse.Namespace) -> int:
    from governor.audit.query import select_records  # noqa: PLC0415 - loads the tables

    with _log(args) as uow:
        records = select_records(uow, _filter(args))
        if args.json:
            print(json.dumps({"ok": True, "records": [fields(record) for record in records]}))
        else:
            FORMATS[args.format](records, sys.stdout)
    return 0


def _stats(args: argparse.Namespace) -> int:
    from governor.audit.query import select_records  # noqa: PLC0415 - loads the tables
    from governor.audit.stats import statistics  # noqa: PLC0415 - as above

    with _log(args) as uow:
        sums = statistics(select_records(uow, _filter(args)))
    if args.json:
        print(json.dumps({"ok": True, **asdict(sums)}, default=instant))
    else:
        print("\n".join(_stats_lines(sums)))
    return 0


def _stats_lines(sums: "Statistics") -> Iterator[str]:
    yield "direction  messages  characters  refused  ended  dropped  median seconds"
    for direction, of in sums.crossed.items():
        median = "-" if of.median_seconds is None else f"{of.median_seconds:.2f}"
        yield (
            f"{direction:<9}  {of.messages:>8}  {of.characters:>10}  {of.refused:>7}"
            f"  {of.ended:>5}  {of.dropped:>7}  {median:>14}"
        )
    yield f"webhooks refused: {sums.webhooks_refused}"
    shown_now = sums.switched[-_HISTORY:]
    yield f"STOP and GO: {len(sums.switched)}" + (":" if shown_now else "")
    for line in shown_now:
        yield f"  {instant(line.at)}  {line.event:<10}  {shown(line.peer):<14}  {shown(line.reason)}".rstrip()


def _verify(args: argparse.Namespace) -> int:
    from governor.audit.query import Filter  # noqa: PLC0415 - loads the tables
    from governor.audit.verify import verify  # noqa: PLC0415 - as above

    if _filter(args) != Filter():
        raise LocalError("verify walks the whole log; leave the filters out.")
    with _log(args) as uow:
        verdict = verify(uow, args.anchors)
    if args.json:
        print(json.dumps(asdict(verdict)))
        return 0 if verdict.ok else BROKEN
    if verdict.head is not None:
        print(f"{verdict.count} records hold; the last has the hash {verdict.head[1]}.")
    if not verdict.ok:
        print(f"BROKEN: {verdict.why}. Keep the file, and compare it with a backup.")
    elif verdict.unanchored_from is not None:
        print(f"No anchor vouches for the records from {verdict.unanchored_from} on (see --anchor).")
    return 0 if verdict.ok else BROKEN


@contextmanager
def _log(args: argparse.Namespace) -> "Iterator[UnitOfWork]":
    from governor.store.unit_of_work import Store  # noqa: PLC0415 - loads the tables

    path = args.home / "governor.db"
    if not path.is_file():
        raise ConfigError(
            f"{args.home} is not the home of a governor; run `governor init` or set GOVERNOR_HOME."
        )
    store = Store(path)
    try:
        with store.reading() as uow:
            yield uow
    finally:
        store.close()


def _filter(args: argparse.Namespace) -> "Filter":
    from governor.audit.query import Filter  # noqa: PLC0415 - loads the tables

    now = SystemClock().now()
    return Filter(
        since=_moment(args.since, now),
        until=_moment(args.until, now),
        peer=args.peer,
        agent=args.agent,
        direction=args.direction,
        event=args.event,
        limit=args.limit,
    )


def _moment(when: datetime | timedelta | None, now: datetime) -> datetime | None:
    return now - when if isinstance(when, timedelta) else when


def _when(value: str) -> datetime | timedelta:
    if span := _SPAN.fullmatch(value):
        return timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{value!r} is neither a date nor a span such as 30m, 1h, 2d"
        ) from None


def _positive(value: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", value):
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of records")
    return int(value)


def _anchor(value: str) -> "Anchor":
    seq, _, hash_ = value.partition(":")
    if not is_fingerprint(hash_):
        raise argparse.ArgumentTypeError(f"{value!r} is not SEQ:HASH, with a hash of 64 hexadecimal digits")
    return _positive(seq), hash_
