"""The credentials of the agents that speak from here: one 0600 file each, in `credentials/` of the home.

`<agent>.json` holds `agent`, `token`, and where its governor is: `socket` (a path) and `tcp` (a
loopback address with port).
"""

import json
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from governor.cli.failure import Failure
from governor.cli.whole_file import write_whole

_NAME: Final = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)  # it becomes a header: no line ends
_LOOPBACK: Final = re.compile(r"(127(?:\.\d{1,3}){3}|localhost|\[::1\]):(\d{1,5})", re.ASCII)
_SIZE_LIMIT: Final = 10_000
_READABLE_BY_OTHERS: Final = 0o077


class Place(NamedTuple):
    """Where a governor of this host answers its agents."""

    socket: str
    tcp: str


class Credential(NamedTuple):
    """Who speaks, the token that proves it, and where the governor is."""

    agent: str
    token: str
    place: Place


def credential_file(home: Path, agent: str) -> Path:
    """Return where an agent's credential lies."""
    return home / "credentials" / f"{agent}.json"


def load_credential(home: Path, who: str | None) -> Credential:
    """Return the credential of `who`, of $GOVERNOR_AGENT, or the only one; raises Failure."""
    wanted = who or os.environ.get("GOVERNOR_AGENT")
    names = _names(home)
    if wanted is None and len(names) == 1:
        return _read(credential_file(home, names[0]))
    if not names:
        raise Failure(
            "config",
            f"No agent has a credential in {home}. An operator makes one: governor agent add NAME"
            " (or, for another user: governor agent add NAME --grant)",
        )
    if wanted is None:
        raise Failure(
            "config", f"Which agent speaks? Say --as NAME or set GOVERNOR_AGENT: {', '.join(names)}"
        )
    if wanted not in names:
        raise Failure(
            "config", f"No agent {wanted!r} has a credential in {home}. There are: {', '.join(names)}"
        )
    return _read(credential_file(home, wanted))


def save_credential(home: Path, credential: Credential) -> Path:
    """Write a credential and return its file; folders that are missing are made for the owner only."""
    path = credential_file(home, credential.agent)
    if not home.exists():
        make_private(home)
    make_private(path.parent)
    document = {"agent": credential.agent, "token": credential.token, **credential.place._asdict()}
    write_whole(path, json.dumps(document, indent=1).encode() + b"\n", 0o600)
    return path


def make_private(folder: Path) -> None:
    """Make a folder, or close the one that is there, to all but its owner, whatever the umask."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def is_agent_name(value: object) -> bool:
    """Tell whether a value is a permitted name of an agent, so also of its file."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def checked_place(socket: object, tcp: object) -> Place | None:
    """Return a place if both parts are well formed: a token is for a governor of this machine only."""
    if not (isinstance(socket, str) and isinstance(tcp, str)):
        return None
    sound = (not socket or socket.startswith("/")) and (not tcp or _LOOPBACK.fullmatch(tcp) is not None)
    return Place(socket, tcp) if sound and (socket or tcp) else None


def checked_token(value: object) -> str | None:
    """Return a token or grant if it is well formed."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def _names(home: Path) -> list[str]:
    try:
        files = list(credential_file(home, "").parent.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(file.stem for file in files if file.suffix == ".json" and is_agent_name(file.stem))


def _read(path: Path) -> Credential:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & _READABLE_BY_OTHERS:
            raise Failure(
                "config", f"{path} can be read by others, so it is not used. Close it: chmod 600 {path}"
            )
        raw = file.read(_SIZE_LIMIT)
    try:
        found = json.loads(raw)
        token, place = checked_token(found["token"]), checked_place(found["socket"], found["tcp"])
    except (ValueError, KeyError, TypeError, RecursionError):
        token = place = None
    if token is None or place is None:
        raise Failure(
            "config",
            f"{path} is no credential. An operator makes a new one: governor agent token {path.stem}",
        )
    return Credential(path.stem, token, place)
