"""`governor agent`: the agents of this host, added and removed by its operator."""

import argparse
from typing import TYPE_CHECKING

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.credentials import credential_file
from governor.cli.granting import give_credential, give_grant
from governor.cli.joining import add_join
from governor.cli.opened import opened
from governor.directory.agents import add, remove
from governor.store.tables import Agent
from governor.store.unit_of_work import UnitOfWork
from governor.wiring import Home

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_GRANT_HELP = "print a grant for an agent of another user instead of writing the credential here"


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `agent add`, `remove`, `list`, `token` and `join`."""
    commands = subparsers.add_parser("agent", help="the agents of this host").add_subparsers(
        required=True, metavar="COMMAND"
    )
    adding = commands.add_parser("add", help="register an agent and give it its credential")
    removing = commands.add_parser("remove", help="remove an agent; its token is dead at once")
    token = commands.add_parser("token", help="give an agent a new credential; the old token then is dead")
    listing = commands.add_parser("list", help="list the agents of this host")
    for parser, work in ((adding, _add), (removing, _remove), (token, _token), (listing, _list)):
        parser.set_defaults(func=answering(work))
        add_json(parser)
        if parser is not listing:
            parser.add_argument("name", metavar="NAME")
    for parser in (adding, token):
        parser.add_argument("--grant", action="store_true", help=_GRANT_HELP)
    add_join(commands)


def _add(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.begin() as uow:
        if not add(uow, args.name, home.host.clock.now()):
            line = (
                f"There is an agent {args.name} already. A new credential: governor agent token {args.name}"
            )
            return Answer([line], {"agent": args.name, "changed": False})
        return _given(uow, home, args, f"Added {args.name}.")


def _token(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.begin() as uow:
        return _given(
            uow,
            home,
            args,
            "The old token is dead." if not args.grant else "The old token is good until then.",
        )


def _given(uow: UnitOfWork, home: Home, args: argparse.Namespace, done: str) -> Answer:
    now, document = home.host.clock.now(), {"agent": args.name, "changed": True}
    if args.grant:
        line = give_grant(uow, home, args.name, now)
        notes = [f"{done} Good once, within an hour; run as the agent's user: governor agent join GRANT"]
        return Answer([line], {**document, "grant": line}, notes=notes)
    path = give_credential(uow, home, args.name, now)
    return Answer([f"{done} Its credential: {path}"], {**document, "credential": str(path)})


def _remove(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        with home.store.begin() as uow:
            remove(uow, args.name, home.host.clock.now())
        credential_file(home.path, args.name).unlink(missing_ok=True)
    return Answer([f"Removed {args.name}; its token is dead."], {"agent": args.name})


def _list(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home, home.store.reading() as uow:
        rows = [
            {
                "agent": row.name,
                "added_at": row.added_at.isoformat(),
                "joined": row.token_sha256 is not None,
                "credential": str(path) if (path := credential_file(home.path, row.name)).exists() else None,
            }
            for row in sorted(uow.all(Agent), key=lambda row: row.name)
            if row.removed_at is None
        ]
    lines = [
        f"{row['agent']:<32}  {'joined' if row['joined'] else 'not yet joined':<14}  {row['credential'] or ''}".rstrip()
        for row in rows
    ]
    return Answer(lines or ["No agent yet. Add one: governor agent add NAME"], {"agents": rows})
