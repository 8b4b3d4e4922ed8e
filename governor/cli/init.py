"""`governor init`: makes the home of a governor."""

import argparse
from typing import TYPE_CHECKING

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.home_making import Wanted, make_home
from governor.clock import SystemClock

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_NEXT = "Next: governor operator enroll; governor run; governor pair offer"


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `init`."""
    init = subparsers.add_parser("init", help="make the home of a governor: settings, keys, database, agents")
    init.add_argument("--name", required=True, metavar="NAME", help="this governor's name, such as max-host")
    init.add_argument(
        "--agent",
        dest="agents",
        action="append",
        default=[],
        metavar="NAME",
        help="an agent of this user; may be repeated",
    )
    init.add_argument(
        "--listen", default="", metavar="ADDR", help="where peers connect to: IP address and port"
    )
    init.add_argument("--url", default="", metavar="URL", help="the https URL of that, as peers reach it")
    add_json(init)
    init.set_defaults(func=answering(_init))


def _init(args: argparse.Namespace) -> Answer:
    wanted = Wanted(args.name, tuple(dict.fromkeys(args.agents)), args.listen, args.url)
    made = make_home(args.home, wanted, SystemClock())
    document = {
        "home": str(args.home),
        "name": args.name,
        "changed": made.host or bool(made.credentials),
        "credentials": {agent: str(path) for agent, path in made.credentials.items()},
    }
    lines = [
        f"{args.name} lives in {args.home} already." if not made.host else f"Made {args.name} in {args.home}."
    ]
    lines += [f"Added agent {agent}. Its credential: {path}" for agent, path in made.credentials.items()]
    if not document["changed"]:
        lines.append("Nothing was changed.")
    return Answer(lines, document, notes=[_NEXT] if made.host else [])
