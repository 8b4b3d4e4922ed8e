"""`governor pair`: lines are exchanged, phrases compared by voice, then an operator confirms."""

import argparse
import sys
from typing import TYPE_CHECKING, Final

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_code, add_json
from governor.cli.opened import opened
from governor.cli.proving import prove
from governor.directory.pairing import (
    Pairing,
    accept_offer,
    confirm,
    make_offer,
    own_phrase,
    peer_phrase,
    unconfirmed,
)
from governor.errors import LocalError
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.peer_url import read_peer_url
from governor.wiring import Home

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_READ_MOST: Final = 100_000


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `pair offer`, `pair accept` and `pair confirm`."""
    commands = subparsers.add_parser("pair", help="get to know another governor").add_subparsers(
        required=True, metavar="COMMAND"
    )
    offer = commands.add_parser("offer", help="print the line that introduces this governor; good for a day")
    offer.set_defaults(func=answering(_offer))
    accept = commands.add_parser("accept", help="store the governor of a line; it is not trusted yet")
    accept.add_argument("line", metavar="LINE", help="what `pair offer` printed there; -: standard input")
    accept.set_defaults(func=answering(_accept))
    confirming = commands.add_parser("confirm", help="trust a governor, after the phrases were compared")
    confirming.add_argument("peer", metavar="PEER", help="its name")
    add_code(confirming, "which proves that a human compared")
    confirming.set_defaults(func=answering(_confirm))
    for parser in (offer, accept, confirming):
        add_json(parser)


def _offer(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.reading() as uow:
        line = _line(uow, home)
    notes = [
        "Give this line to the operator of the other governor, by any channel. There: governor pair accept LINE"
    ]
    return Answer([line], {"line": line}, notes=notes)


def _accept(args: argparse.Namespace) -> Answer:
    line = sys.stdin.buffer.read(_READ_MOST).decode("ascii", "replace") if args.line == "-" else args.line
    with opened(args.home) as home:
        loopback = home.settings.loopback_peers
        with home.store.begin() as uow:
            pairing = accept_offer(uow, home.host, line, home.host.clock.now(), loopback=loopback)
            ours = _line(uow, home)
    document = {
        "peer": pairing.peer,
        "new": pairing.new,
        "ours": pairing.ours,
        "theirs": pairing.theirs,
        "line": ours,
    }
    return Answer(_to_compare(pairing, home.host.name, ours), document)


def _to_compare(pairing: Pairing, own_name: str, line: str) -> list[str]:
    peer = pairing.peer
    return [
        f"{'Stored' if pairing.new else 'Stored before:'} {peer}. It is not trusted yet.",
        "",
        f"1. Unless {peer} has it already, give its operator this line:",
        line,
        "",
        "2. Call its operator. Both read both phrases aloud; each must be the same word for word.",
        f"   phrase of {own_name}, this governor:  {pairing.ours}",
        f"   phrase of {peer}, the other one:  {pairing.theirs}",
        "",
        f"3. The same: governor pair confirm {peer} --code N",
        f"   Not the same, somebody is in between: governor revoke {peer}",
    ]


def _confirm(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        with home.store.reading() as uow:
            waits = unconfirmed(uow, args.peer) is not None  # asked before a code is used up
        if not waits:
            return Answer([f"{args.peer} was confirmed before."], {"peer": args.peer, "changed": False})
        prove(home, args)
        with home.store.begin() as uow:
            confirm(uow, args.peer, home.host.clock.now())
            document = {
                "peer": args.peer,
                "changed": True,
                "ours": own_phrase(uow),
                "theirs": peer_phrase(uow, args.peer),
            }
    lines = [f"{args.peer} is confirmed. The link is still closed; open it: governor go {args.peer} --code N"]
    return Answer(lines, document)


def _line(uow: UnitOfWork, home: Home) -> str:
    """Return this governor's line; raises LocalError when no other machine could reach its URL."""
    try:
        read_peer_url(home.url, allow_loopback=home.settings.loopback_peers)
    except LocalError:
        raise LocalError(
            f"No peer can reach {home.url}. Set url, or listen, in {home.path / 'governor.toml'};"
            " for two governors on one machine: loopback_peers = true"
        ) from None
    public_tls = home.settings.tls == "proxy"
    return make_offer(uow, home.host, home.keyring, home.url, home.host.clock.now(), public_tls=public_tls)
