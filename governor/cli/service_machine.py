"""The machine a service is installed on, and whether a service of its own user would be safe there."""

import os
import pwd
import shutil
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import governor
from governor.cli.service_managers import CommandRunner, Runner
from governor.errors import LocalError

_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin"
"""Where root's commands come from: never from a PATH that somebody else has set."""

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Machine:
    """What the `service` commands see of the machine; tests describe another one.

    `program` is the `governor` command, `code` all that a service would execute of ours, `root` the
    top of the file system, `trusted` the uids that may write what another user's service executes.
    """

    platform: str
    uid: int
    user_home: Path
    program: Path
    code: tuple[Path, ...]
    run: Runner
    sleep: Callable[[float], None] = time.sleep
    root: Path = Path("/")
    trusted: frozenset[int] = frozenset({0})

    @classmethod
    def here(cls) -> "Machine":
        """Describe this machine."""
        beside = Path(sysconfig.get_path("scripts")) / "governor"
        found = shutil.which("governor")
        program = beside if beside.exists() or not found else Path(found)
        return cls(
            platform=sys.platform,
            uid=os.getuid(),
            user_home=Path.home(),
            program=program.absolute(),
            code=(program.absolute(), Path(sys.executable), Path(governor.__file__).parent),
            run=CommandRunner({**os.environ, "PATH": _SYSTEM_PATH}),
        )


def check_code(machine: Machine) -> None:
    """Refuse a system service whose code somebody else may change; raises LocalError.

    The service has a user of its own so that no agent can act as the governor. An agent that can
    write the program, its interpreter, its package or a folder above them could all the same.
    """
    for path in machine.code:
        for part in _parts(path):
            about = part.stat()
            sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
            if about.st_uid not in machine.trusted or (about.st_mode & _WRITABLE_BY_OTHERS and not sticky):
                raise LocalError(
                    f"{part} can be changed by others than root, and the service would execute {path}. "
                    "Install bridge-governor where only root writes (deploy/README.md tells how) and run that one."
                )


def check_home(home: Path, user: str) -> None:
    """Refuse a home that no governor lives in, or that is not the service user's; raises LocalError."""
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise LocalError(
            f"There is no user {user} on this system. Create it (deploy/README.md tells how), or name another: --user"
        ) from None
    check_initialised(home)
    if home.stat().st_uid != uid:
        raise LocalError(f"{home} does not belong to {user}. Give it: chown -R {user} {home}")


def check_initialised(home: Path) -> None:
    """Refuse a home that no governor lives in; raises LocalError."""
    if not (home / "governor.toml").is_file():
        raise LocalError(
            f"No governor lives in {home}. Make one there as the service's user: "
            f"GOVERNOR_HOME={home} governor init --name NAME --agent AGENT"
        )


def _parts(path: Path) -> Iterator[Path]:
    """Yield path, the links it leads over and the file it ends at, each with the folders above."""
    spellings = [path]
    while spellings[-1].is_symlink():
        spellings.append(spellings[-1].parent / spellings[-1].readlink())
    for spelling in (*spellings, path.resolve()):
        yield spelling
        yield from spelling.parents
