"""`governor peers`, `revoke` and `rotate`: the governors this one knows, and the keys between them."""

import argparse
from typing import TYPE_CHECKING, Any

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.opened import opened
from governor.directory.identity import peer_fingerprint
from governor.directory.links import Actor
from governor.directory.own_keys import start_rotation
from governor.directory.pairing import peer_phrase
from governor.store.tables import Peer
from governor.store.unit_of_work import UnitOfWork
from governor.supervision.revoking import revoke

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

BY_CLI = "cli"
"""Who acted, in the audit log and in notices: somebody who may write to this home."""


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `peers`, `revoke` and `rotate`."""
    listing = subparsers.add_parser("peers", help="list the governors this one knows")
    listing.set_defaults(func=answering(_peers))
    revoking = subparsers.add_parser("revoke", help="end the link to a peer, at once; it is told nothing")
    revoking.add_argument("peer", metavar="PEER")
    revoking.set_defaults(func=answering(_revoke))
    rotating = subparsers.add_parser("rotate", help="change this governor's keys and certificate")
    rotating.set_defaults(func=answering(_rotate))
    for parser in (listing, revoking, rotating):
        add_json(parser)


def _peers(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.reading() as uow:
        rows = [_row(uow, peer) for peer in sorted(uow.all(Peer), key=lambda peer: peer.name)]
    lines = []
    for row in rows:
        agents = ", ".join(row["agents"])
        lines.append(f"{row['peer']}: {row['state']}; agents: {agents}; {row['url']}")
        if row["phrase"]:
            lines.append(f"  phrase: {row['phrase']}")
    return Answer(lines or ["No peer yet. Pair with one: governor pair offer"], {"peers": rows})


def _row(uow: UnitOfWork, peer: Peer) -> dict[str, Any]:
    known = peer.state != "revoked"
    return {
        "peer": peer.name,
        "state": peer.state,
        "agents": peer.agents,
        "url": peer.url,
        "phrase": peer_phrase(uow, peer.name) if known else None,
        "key": peer_fingerprint(uow, peer.name) if known else None,
        "paired_at": peer.paired_at.isoformat(),
    }


def _revoke(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        changed = revoke(home.store, home.host, args.peer, Actor(BY_CLI))
    line = f"Revoked {args.peer}: the link has ended." if changed else f"{args.peer} was revoked before."
    return Answer([line], {"peer": args.peer, "changed": changed})


def _rotate(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        now = home.host.clock.now()
        keys = home.keyring.make(home.host.name, home.hosts, now)
        try:
            with home.store.begin() as uow:
                peers = start_rotation(uow, home.host, home.keyring, keys, now)
        except Exception:  # not an interruption: that may come after the commit
            home.keyring.forget(keys.fingerprint)
            raise
    told = f"It is announced to: {', '.join(peers)}." if peers else "There is no peer to tell."
    lines = [
        f"Made a new key: {keys.fingerprint}. {told}",
        "A running governor changes over when every peer has taken it, at the latest in a day.",
        "At each peer the link pauses (key_changed) until its operator says GO.",
    ]
    return Answer(lines[: 3 if peers else 2], {"key": keys.fingerprint, "peers": peers})
