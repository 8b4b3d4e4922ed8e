"""`governor service`: hands the governor to launchd or systemd, which keep it running."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.failure import Exit
from governor.cli.service_machine import Machine, check_code, check_home, check_initialised
from governor.cli.service_managers import Launchd, Manager, Systemd
from governor.cli.service_template import Service, read_template, render_plist, render_unit
from governor.cli.whole_file import write_whole
from governor.errors import LocalError

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

GROUP = "governor-agents"
"""The group whose members may reach the socket of a system service."""


@dataclass(frozen=True, slots=True)
class Place:
    """How one kind of service is kept: its template, its file, the defaults of a system service.

    `file` is below the user's home for a user's service; it and `home` are below `/` for the system's.
    """

    template: str
    file: str
    home: str | None = None
    user: str | None = None


PLACES = {
    ("darwin", False): Place(
        "launchd/local.bridge-governor.agent.plist",
        "Library/LaunchAgents/local.bridge-governor.agent.plist",
    ),
    ("darwin", True): Place(
        "launchd/local.bridge-governor.daemon.plist",
        "Library/LaunchDaemons/local.bridge-governor.daemon.plist",
        "var/db/bridge-governor",
        "_governor",
    ),
    ("linux", False): Place("systemd/governor-user.service", ".config/systemd/user/governor.service"),
    ("linux", True): Place(
        "systemd/governor.service",
        "etc/systemd/system/governor.service",
        "var/lib/bridge-governor",
        "governor",
    ),
}

_USUAL_HOME = ".bridge-governor"
"""Where a user's governor lives unless another home is named."""

_HIDDEN_FROM_UNIT = ("home", "root", "run/user")
"""What ProtectHome=yes in the system unit hides."""


def add_parsers(subparsers: "Subparsers", machine: Callable[[], Machine] = Machine.here) -> None:
    """Register `service install`, `service uninstall` and `service status`."""
    commands = subparsers.add_parser(
        "service", help="have launchd or systemd run the governor"
    ).add_subparsers(required=True, metavar="COMMAND")
    install = commands.add_parser("install", help="write the service file and start the service")
    install.add_argument(
        "--user", help="the system service's user; default: _governor on macOS, else governor"
    )
    install.add_argument("--group", help=f"the agents' group of a system service; default: {GROUP}")
    uninstall = commands.add_parser("uninstall", help="stop the service and remove its file; the home stays")
    status = commands.add_parser("status", help="tell whether the service is installed and runs")
    for parser, work in ((install, _install), (uninstall, _uninstall), (status, _status)):
        parser.set_defaults(func=_on(machine, work))
        parser.add_argument(
            "--system", action="store_true", help="a service of the system, with a user of its own"
        )
        if parser is not status:
            parser.add_argument("--dry-run", action="store_true", help="show what would be done, do nothing")
        add_json(parser)


def _on(
    machine: Callable[[], Machine], work: Callable[[argparse.Namespace, Machine], Answer]
) -> Callable[[argparse.Namespace], int]:
    return answering(lambda args: work(args, machine()))


def _install(args: argparse.Namespace, machine: Machine) -> Answer:
    place, file, manager = _kept(machine, system=args.system)
    service = _service(args, machine, place)
    template = read_template(place.template)
    if machine.platform == "darwin":
        content = render_plist(template, service)
    else:
        content = render_unit(template, service).encode()
    if args.dry_run:
        return _rehearsal(f"write {file}", content.decode(), manager.starting())
    _check_account(machine, system=args.system)
    _check_service(service, machine)

    before = _read(file)
    if before == content and manager.status().running:
        state = "unchanged"
    else:
        try:
            write_whole(file, content, 0o644)
        except OSError as error:
            raise LocalError(
                f"{file} cannot be written: {error.strerror}. Mend that and try again."
            ) from None
        manager.start()
        state = {None: "installed", content: "started"}.get(before, "updated")
    return Answer(
        [f"{state}: {file}", f"Output: {manager.log()}. How it is: governor service status{_flag(args)}"],
        {"state": state, "file": str(file)},
    )


def _uninstall(args: argparse.Namespace, machine: Machine) -> Answer:
    _, file, manager = _kept(machine, system=args.system)
    if args.dry_run:
        return _rehearsal(f"remove {file}", "", manager.stopping())
    _check_account(machine, system=args.system)
    manager.stop()
    state = "absent" if _read(file) is None else "removed"
    file.unlink(missing_ok=True)
    manager.forget()
    return Answer(
        [f"{state}: {file}", "The governor's home is untouched."], {"state": state, "file": str(file)}
    )


def _status(args: argparse.Namespace, machine: Machine) -> Answer:
    _, file, manager = _kept(machine, system=args.system)
    status = manager.status()
    installed = _read(file) is not None
    lines = [
        f"{status.detail}{f', pid {status.pid}' if status.pid else ''}",
        f"{'file' if installed else 'no file'}: {file}",
    ]
    if not installed:
        lines.append(f"Install it: governor service install{_flag(args)}")
    elif not status.running:
        lines.append(f"Output: {manager.log()}. Start it: governor service install{_flag(args)}")
    return Answer(
        lines,
        {
            "installed": installed,
            "running": status.running,
            "pid": status.pid,
            "detail": status.detail,
            "file": str(file),
        },
        code=Exit.OK if status.running else Exit.FAILED,
    )


def _kept(machine: Machine, *, system: bool) -> tuple[Place, Path, Manager]:
    place = PLACES.get((machine.platform, system))
    if place is None:
        raise LocalError(
            f"No service manager is known for {machine.platform}. Start `governor run` by the means of this system."
        )
    file = (machine.root if system else machine.user_home) / place.file
    if machine.platform == "darwin":
        domain = "system" if system else f"gui/{machine.uid}"
        return place, file, Launchd(domain, file.stem, file, machine.run, machine.sleep)
    return place, file, Systemd(() if system else ("--user",), file.name, machine.run)


def _service(args: argparse.Namespace, machine: Machine, place: Place) -> Service:
    usual = args.home == machine.user_home / _USUAL_HOME
    return Service(
        program=machine.program,
        home=(machine.root / place.home if place.home and usual else args.home).absolute(),
        user=(args.user or place.user) if args.system else None,
        group=(args.group or GROUP) if args.system else None,
    )


def _check_account(machine: Machine, *, system: bool) -> None:
    if system and machine.uid != 0:
        raise LocalError("A system service is root's to change. Run this with sudo.")
    if not system and machine.uid == 0:
        raise LocalError("root runs no governor of its own. Add --system, or run this without sudo.")


def _check_service(service: Service, machine: Machine) -> None:
    if not service.program.is_file():
        raise LocalError(
            f"The governor command is not at {service.program}. Install bridge-governor as a tool (deploy/README.md)."
        )
    if service.user is None:
        check_initialised(service.home)
        return
    check_code(machine)
    check_home(service.home, service.user)
    if machine.platform == "linux" and any(
        service.home.is_relative_to(machine.root / hidden) for hidden in _HIDDEN_FROM_UNIT
    ):
        raise LocalError(
            f"The system service cannot see {service.home}. Use a home outside people's homes, such as "
            f"/{PLACES['linux', True].home}"
        )


def _read(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _flag(args: argparse.Namespace) -> str:
    return " --system" if args.system else ""


def _rehearsal(act: str, content: str, commands: list[tuple[str, ...]]) -> Answer:
    return Answer(
        [
            f"would {act}",
            *([content] if content else []),
            *(f"would run {' '.join(command)}" for command in commands),
        ],
        {
            "dry_run": True,
            "act": act,
            "content": content,
            "commands": [list(command) for command in commands],
        },
    )
