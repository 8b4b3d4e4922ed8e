"""`governor canary`: bait that an operator hides where an agent may come upon it."""

import argparse
import secrets
from typing import TYPE_CHECKING

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.opened import opened
from governor.directory.canaries import LOOKS, plant, planted, remove

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_WHERE = (
    "Hide it where only an agent comes upon it: in a file of its workspace, in CLAUDE.md or AGENTS.md, in its"
    " environment. It is not shown again."
)
_THEN = "Should a message carry it, in whatever disguise, it is refused and every link pauses."


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `canary plant`, `list` and `remove`."""
    commands = subparsers.add_parser("canary", help="bait that no message may carry").add_subparsers(
        required=True, metavar="COMMAND"
    )
    planting = commands.add_parser("plant", help="make bait to hide where an agent may come upon it")
    listing = commands.add_parser("list", help="list the canaries of this host, never their values")
    removing = commands.add_parser("remove", help="forget a canary; its value may be sent again")
    for parser, work in ((planting, _plant), (listing, _list), (removing, _remove)):
        parser.set_defaults(func=answering(work))
        add_json(parser)
    kinds = "; ".join(f"{kind}: {look.of}" for kind, look in LOOKS.items())
    planting.add_argument("--kind", choices=LOOKS, default="github", help=f"what it looks like ({kinds})")
    planting.add_argument("--note", metavar="TEXT", default="", help="where it is hidden, for the list")
    removing.add_argument("name", metavar="NAME")


def _plant(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.begin() as uow:
        now = home.host.clock.now()
        canary = plant(uow, home.path, now, secrets.choice, kind=args.kind, note=args.note)
    document = {"canary": canary.name, "kind": canary.kind, "note": canary.note, "value": canary.value}
    return Answer([canary.value], document, notes=[f"Planted {canary.name}. {_WHERE}", _THEN])


def _list(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        rows = [
            {"canary": each.name, "planted_at": each.planted_at, "kind": each.kind, "note": each.note}
            for each in planted(home.path)
        ]
    lines = [
        f"{row['canary']:<14}  {row['planted_at'][:16]}  {row['kind']:<8}  {row['note']}".rstrip()
        for row in rows
    ]
    return Answer(lines or ["No canary yet. Make one: governor canary plant"], {"canaries": rows})


def _remove(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.begin() as uow:
        remove(uow, home.path, args.name, home.host.clock.now())
    return Answer([f"Removed {args.name}; its value may be sent again."], {"canary": args.name})
