"""`governor inbox`, `ack` and `wait`: what came for an agent."""

import argparse
import math
from typing import TYPE_CHECKING

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_speaker, message_id, seconds
from governor.cli.credentials import load_credential
from governor.cli.failure import Exit
from governor.cli.local_client import ask, ask_until

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `inbox`, `ack` and `wait`."""
    inbox = subparsers.add_parser("inbox", help="read the messages that wait for you")
    inbox.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="for a message to come; default: %(default)g",
    )
    inbox.set_defaults(func=answering(_inbox))
    ack = subparsers.add_parser("ack", help="say that you have dealt with messages")
    ack.add_argument("ids", nargs="+", type=message_id, metavar="ID", help="ids as the inbox shows them")
    ack.set_defaults(func=answering(_ack))
    wait = subparsers.add_parser("wait", help="return when messages wait; never shows them")
    wait.add_argument(
        "--timeout",
        type=seconds,
        default=math.inf,
        metavar="SECONDS",
        help="then end with exit code 1; default: none",
    )
    wait.set_defaults(func=answering(_wait))
    for parser in (inbox, ack, wait):
        add_speaker(parser)


def _inbox(args: argparse.Namespace) -> Answer:
    credential = load_credential(args.home, args.who)
    found = ask_until(credential, "/v1/inbox", args.wait, lambda now: bool(now["messages"]))
    lines: list[str] = []
    for item in found["messages"]:
        lines += [""] if lines else []
        lines += ["(shown before)"] if item["shown_before"] else []
        lines += ["(withdrawn by its sender)"] if item["withdrawn"] else []
        lines.append(item["text"])
    return Answer(lines or ["No messages."], found)


def _ack(args: argparse.Namespace) -> Answer:
    credential = load_credential(args.home, args.who)
    done = {each: ask(credential, "POST", f"/v1/inbox/{each}/ack")["acked"] for each in args.ids}
    lines = [f"{each}: {'acknowledged' if new else 'was acknowledged before'}" for each, new in done.items()]
    return Answer(lines, {"acked": [{"id": each, "new": new} for each, new in done.items()]})


def _wait(args: argparse.Namespace) -> Answer:
    credential = load_credential(args.home, args.who)
    found = ask_until(credential, "/v1/waiting", args.timeout, lambda now: now["waiting"] > 0)
    if not found["waiting"]:
        return Answer([], found, Exit.FAILED)
    return Answer([f"{found['waiting']} message(s) waiting. Read them with: governor inbox"], found)
