"""`governor go`, `stop` and `status`: the operator's brake."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_code, add_json
from governor.cli.credentials import Credential
from governor.cli.failure import Exit, Failure
from governor.cli.granting import place_of
from governor.cli.local_client import ask
from governor.cli.opened import opened
from governor.cli.peers import BY_CLI
from governor.cli.proving import BY_CODE, prove
from governor.directory.links import Actor
from governor.errors import GovernorError, NotYoursError
from governor.message import PauseReason
from governor.supervision import answers
from governor.supervision.operations import GoAnswer, LinkNow
from governor.supervision.seeing import causes
from governor.supervision.status import status
from governor.supervision.switching import Go, check_link, give_go, give_stop
from governor.wiring import Home

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `go`, `stop` and `status`."""
    go = subparsers.add_parser("go", help="open a link for five minutes and give it a new allowance")
    add_code(go, "which proves that a human says so")
    go.set_defaults(func=answering(_go))
    stop = subparsers.add_parser("stop", help="close links at once; nothing passes until GO")
    stop.set_defaults(func=answering(_stop))
    for parser, all_ in ((go, "all links but those that await their first GO"), (stop, "all links")):
        parser.add_argument("peer", nargs="?", metavar="PEER", help=f"default: {all_}")
    looking = subparsers.add_parser("status", help="show the links as they are now")
    looking.set_defaults(func=answering(_status))
    for parser in (go, stop, looking):
        add_json(parser)


def _go(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        check_link(home.store, args.peer)  # before a code is used up
        prove(home, args)
        persisting = causes(home.store, home.path)
        switched = give_go(home.store, home.host, Go(BY_CODE, args.peer, causes=persisting))
        links = {link.peer: link for link in status(home.store, home.host)}
    done = [
        GoAnswer(links[each.peer], each.refusal is None, each.refusal)
        for each in switched
        if each.peer in links
    ]
    opened_any = any(each.opened for each in done)
    lines = [answers.of_go(done, args.peer)]
    if PauseReason.STOP_FILE in persisting:
        lines.append(f"The file {home.path / 'STOP'} says STOP. Remove it, then say GO.")
    document: dict[str, Any] = {
        "links": [{**_link(each.link), "opened": each.opened, "refusal": each.reason} for each in done]
    }
    if not opened_any:
        document |= {
            "error": "refused",
            "message": " ".join(lines),
            "reason": done[0].reason if done else None,
        }
    return Answer(lines, document, Exit.OK if opened_any else Exit.REFUSED)


def _stop(args: argparse.Namespace) -> Answer:
    try:
        with opened(args.home) as home:
            lines = []
            try:
                stopped = give_stop(home.store, home.host, Actor(BY_CLI), args.peer)
            except NotYoursError as error:  # a brake does not wait for the right spelling
                lines.append(f"{error.message}. So all links were stopped.")
                stopped = give_stop(home.store, home.host, Actor(BY_CLI))
            links = [
                link for link in status(home.store, home.host) if link.peer in {each.peer for each in stopped}
            ]
    except GovernorError as error:
        hint = f"To stop a running governor all the same: touch {args.home / 'STOP'}"
        raise Failure(error.code, f"{error.message} {hint}") from error
    return Answer([*lines, answers.of_status(links)], {"links": [_link(link) for link in links]})


def _status(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        links = status(home.store, home.host)
        runs = _runs(home)
    line = (
        f"{home.host.name} is running."
        if runs
        else f"{home.host.name} is not running. Start it: governor run"
    )
    return Answer(
        [line, answers.of_status(links)], {"running": runs, "links": [_link(link) for link in links]}
    )


def _runs(home: Home) -> bool:
    try:
        return bool(ask(Credential("", "", place_of(home)), "GET", "/healthz").get("ok"))
    except Failure:
        return False


def _link(link: LinkNow) -> dict[str, Any]:
    watched = link.watched_for.total_seconds() if link.watched_for is not None else None
    return {**asdict(link), "watched_for": watched}
