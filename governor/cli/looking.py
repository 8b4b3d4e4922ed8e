"""`governor show` and `governor agents`: the life of a message, and whom one may write to."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_speaker, message_id
from governor.cli.credentials import load_credential
from governor.cli.local_client import ask

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `show` and `agents`."""
    show = subparsers.add_parser("show", help="show the whole life of a message")
    show.add_argument("id", type=message_id, metavar="ID", help="of a message you sent, or were shown")
    show.set_defaults(func=answering(_show))
    agents = subparsers.add_parser("agents", help="list the agents you may write to")
    agents.set_defaults(func=answering(_agents))
    for parser in (show, agents):
        add_speaker(parser)


def _show(args: argparse.Namespace) -> Answer:
    life = ask(load_credential(args.home, args.who), "GET", f"/v1/messages/{args.id}")
    return Answer(list(life_lines(life)), life)


def life_lines(life: dict[str, Any]) -> Iterator[str]:
    """Return the lines that tell a message's life, as the local API gives it."""
    yield f"{life['id']} from {life['from']} to {life['to']}: {life['state']}{_why(life['reason'])}"
    yield f"conversation {life['conversation']}" + (
        f", in reply to {life['in_reply_to']}" if life["in_reply_to"] else ""
    )
    for step in life["steps"]:
        yield f"{step['at']}  {step['event']}{_why(step['reason'])}"
    yield f"expires {life['expires_at']}; {life['size']} characters"
    if life["text"] is None:
        yield "The text is no longer kept."
    elif life["direction"] == "in":
        yield life["text"]
    else:
        yield from map(_plain, life["text"].split("\n"))


def _why(reason: str | None) -> str:
    return f" ({reason})" if reason else ""


def _plain(line: str) -> str:
    """Return a line of a sent text, marked as such, without what a terminal would act on."""
    return "| " + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _agents(args: argparse.Namespace) -> Answer:
    found = ask(load_credential(args.home, args.who), "GET", "/v1/agents")
    none = ["There is no agent to write to yet. An operator pairs first: governor pair offer"]
    return Answer(found["agents"] or none, found)
