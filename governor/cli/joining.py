"""`governor agent join`: an agent's own user turns a grant into a credential.

The line that carries a grant is `bgjoin1.` and base64url of the JSON object `grant`, `socket`,
`tcp`: what to show, and the governor to show it to.
"""

import argparse
import json
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.credentials import (
    Credential,
    Place,
    checked_place,
    checked_token,
    is_agent_name,
    save_credential,
)
from governor.cli.failure import NO_ANSWER, Failure
from governor.cli.local_client import ask

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

PREFIX: Final = "bgjoin1."
_READ_MOST: Final = 10_000


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `agent join`."""
    commands = subparsers.add_parser("agent").add_subparsers(required=True, metavar="COMMAND")
    add_join(commands)


def add_join(commands: "Subparsers") -> None:
    """Register `join` among the commands of `agent`."""
    join = commands.add_parser("join", help="turn a grant into your own credential")
    join.add_argument("grant", metavar="GRANT", help="the line that begins with bgjoin1.; -: standard input")
    add_json(join)
    join.set_defaults(func=answering(_join))


def join_line(grant: str, place: Place) -> str:
    """Return the line that carries a grant."""
    document = json.dumps({"grant": grant, **place._asdict()}, separators=(",", ":"))
    return PREFIX + urlsafe_b64encode(document.encode()).decode().rstrip("=")


def read_join_line(line: str) -> tuple[str, Place]:
    """Return the grant of a line and where to show it; raises Failure."""
    word = "".join(line.split())
    try:
        document = urlsafe_b64decode(word.removeprefix(PREFIX) + "=" * (-len(word.removeprefix(PREFIX)) % 4))
        found = json.loads(document)
        grant, place = checked_token(found["grant"]), checked_place(found["socket"], found["tcp"])
    except (ValueError, KeyError, TypeError, RecursionError):
        grant = place = None
    if not word.startswith(PREFIX) or grant is None or place is None:
        raise Failure(
            "usage",
            f"That is no grant: it begins with {PREFIX} and comes from: governor agent add NAME --grant."
            " Copy it whole.",
        )
    return grant, place


def _join(args: argparse.Namespace) -> Answer:
    line = sys.stdin.buffer.read(_READ_MOST).decode("ascii", "replace") if args.grant == "-" else args.grant
    grant, place = read_join_line(line)
    found = ask(Credential("", "", place), "POST", "/v1/join", {"grant": grant})
    token = checked_token(found.get("token"))
    if not is_agent_name(found.get("agent")) or token is None:
        raise Failure(NO_ANSWER, "What answered is no governor. Ask your operator for a new grant.")
    path = save_credential(args.home, Credential(found["agent"], token, place))
    return Answer(
        [f"You are {found['agent']}. Your credential: {path}"],
        {"agent": found["agent"], "credential": str(path)},
    )
