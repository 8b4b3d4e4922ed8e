"""`governor skills`: gives the agents of this host one skill for each remote agent."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.skill_folders import CLIENTS, Finding, inspect, installed, skills_folder, write
from governor.cli.skill_template import render_skill, skill_name
from governor.errors import GovernorError, LocalError

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

RemoteAgents = Callable[[Path], list[str]]
"""Names the agents of all confirmed peers of a home: `eva`, or `eva@eva-host` where two peers have an eva."""

_DONE = {Finding.ABSENT: "created", Finding.OUTDATED: "updated", Finding.CURRENT: "unchanged"}


def paired_agents(home: Path) -> list[str]:
    """Return the names of the agents of all confirmed peers of a home, each as short as is clear."""
    from governor.cli.opened import opened  # noqa: PLC0415 - loads the database
    from governor.directory.routes import short_names  # noqa: PLC0415 - as above

    with opened(home) as it, it.store.reading() as uow:
        return short_names(uow)


def add_parsers(subparsers: "Subparsers", remote_agents: RemoteAgents = paired_agents) -> None:
    """Register `skills install` and `skills list`; `remote_agents` is asked only when needed."""
    commands = subparsers.add_parser(
        "skills", help="give your agents a skill for each remote agent"
    ).add_subparsers(required=True, metavar="COMMAND")

    install = commands.add_parser("install", help="write the skills where a client looks for them")
    install.add_argument("--for", dest="client", choices=sorted(CLIENTS), required=True, help="the client")
    install.add_argument(
        "--peer-agent",
        dest="agents",
        action="append",
        default=[],
        type=_agent,
        metavar="NAME",
        help="a remote agent, may be repeated; default: all agents of the confirmed peers",
    )
    install.add_argument(
        "--dir", type=Path, metavar="DIR", help="another folder of skills, such as a project's"
    )
    install.set_defaults(func=answering(lambda args: _install(args, remote_agents)))

    listing = commands.add_parser("list", help="show which skills of the governor are installed")
    listing.add_argument("--for", dest="client", choices=sorted(CLIENTS), help="one client; default: all")
    listing.add_argument("--dir", type=Path, metavar="DIR", help="another folder of skills")
    listing.set_defaults(func=answering(_list))

    for parser in (install, listing):
        add_json(parser)


def _agent(value: str) -> str:
    try:
        skill_name(value)
    except GovernorError as error:
        raise argparse.ArgumentTypeError(error.message) from None
    return value


def _folder(client: str) -> Path:
    return skills_folder(client, os.environ, Path.home())


def _install(args: argparse.Namespace, remote_agents: RemoteAgents) -> Answer:
    folder: Path = args.dir or _folder(args.client)
    agents = args.agents or remote_agents(args.home)
    if not agents:
        raise LocalError(
            "No confirmed peer has an agent yet. Pair first (governor pair offer), or name one: --peer-agent NAME"
        )
    skills = {skill.name: skill for skill in map(render_skill, agents)}
    twice = [agent for agent in agents if skills[skill_name(agent)].recipient != agent]
    if twice:
        raise LocalError(
            f"Two agents would share the skill of {twice[0]}. Give each its full name: NAME@GOVERNOR"
        )
    findings = {name: inspect(folder, skill) for name, skill in skills.items()}
    foreign = [str(folder / name) for name, finding in findings.items() if finding is Finding.FOREIGN]
    if foreign:
        raise LocalError(
            f"The governor did not write {', '.join(foreign)}, so it changed nothing. "
            "Move that away, or name another folder with --dir."
        )
    for name, finding in findings.items():
        if finding is not Finding.CURRENT:
            write(folder, skills[name])
    rows = [
        {
            "name": name,
            "recipient": skills[name].recipient,
            "path": str(folder / name),
            "state": _DONE[finding],
        }
        for name, finding in findings.items()
    ]
    return Answer([f"{row['state']:<9}  {row['path']}" for row in rows], {"skills": rows})


def _list(args: argparse.Namespace) -> Answer:
    readers: dict[Path, list[str]] = {}
    if args.dir:
        readers[args.dir] = [args.client] if args.client else []
    else:
        for client in [args.client] if args.client else sorted(CLIENTS):
            readers.setdefault(_folder(client), []).append(client)
    rows: list[dict[str, Any]] = [
        {
            "name": skill.name,
            "recipient": skill.recipient,
            "path": str(folder / skill.name),
            "state": inspect(folder, skill).value,
            "clients": clients,
        }
        for folder, clients in readers.items()
        for skill in installed(folder)
    ]
    lines = [f"{row['state']:<9}  {row['path']}  {', '.join(row['clients'])}".rstrip() for row in rows]
    return Answer(
        lines or ["No skill of the governor is installed. Write them: governor skills install --for CLIENT"],
        {"skills": rows},
    )
