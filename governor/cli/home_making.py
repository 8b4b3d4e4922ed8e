"""Makes a home, or completes one whose making was cut short.

The settings file comes first and names the home; all rows are one transaction. So a crash leaves a
home that the next run completes, and at most a key file that nothing names.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from governor.audit.log import genesis
from governor.audit.record import AuditEvent
from governor.cli.credentials import make_private
from governor.cli.granting import give_credential
from governor.cli.opened import check_owner
from governor.clock import Clock
from governor.config import Settings, load_settings, settings_file
from governor.directory.agents import add, check_name
from governor.directory.keyring import NewKeys
from governor.directory.own_keys import add_key
from governor.errors import LocalError
from governor.listen_address import Address
from governor.private_file import write_private
from governor.store.tables import AuditRecord, HostKey
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.peer_url import read_peer_url
from governor.wiring import Home, home_of

_OURS = ("governor.", "credentials", "keys", "STOP")
"""How the names of what may lie in a home begin."""

PORT_MOST = 65_535


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the operator asks for; an empty `listen` or `url` leaves the setting at its default."""

    name: str
    agents: tuple[str, ...] = ()
    listen: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """What was made: whether the host is new, and the credential file of each new agent."""

    host: bool
    credentials: dict[str, Path]


def make_home(path: Path, wanted: Wanted, clock: Clock) -> Made:
    """Make a home, complete it, or change nothing; raises LocalError, ConfigError or StoreError."""
    check_name(wanted.name, "a governor")
    for agent in wanted.agents:
        check_name(agent, "an agent")
    _check_addresses(wanted)
    check_owner(path)
    _refuse_foreign(path)
    make_private(path)
    with _alone(path):
        settings = _settings(path, wanted)
        home = home_of(path, settings, clock)
        try:
            return _fill(home, wanted)
        finally:
            home.store.close()


def _check_addresses(wanted: Wanted) -> None:
    """Refuse what the settings would refuse, before it is written there."""
    if wanted.listen and not _is_address(wanted.listen):
        raise LocalError(
            f"{wanted.listen!r} is no address to listen on. Give IP address and port: --listen 100.64.0.7:18802"
        )
    try:
        if wanted.url:
            read_peer_url(wanted.url, allow_loopback=True)
    except LocalError:
        raise LocalError(
            f"{wanted.url!r} is no URL for peers. Give https, host and port: --url https://max-host.example:18802"
        ) from None


def _is_address(value: str) -> bool:
    try:
        TypeAdapter(Address).validate_python(value)
    except ValidationError:
        return False
    return int(value.rpartition(":")[2]) <= PORT_MOST


def _fill(home: Home, wanted: Wanted) -> Made:
    now, keys = home.host.clock.now(), None
    try:
        with home.store.begin() as uow:
            keys = _make_host(uow, home)
            added = [agent for agent in wanted.agents if add(uow, agent, now)]
            credentials = {agent: give_credential(uow, home, agent, now) for agent in added}
    except Exception:  # not an interruption: that may come after the commit, and the keys are in use then
        if keys is not None:
            home.keyring.forget(keys.fingerprint)
        raise
    return Made(keys is not None, credentials)


def _make_host(uow: UnitOfWork, home: Home) -> NewKeys | None:
    """Make the host's keys and begin its log; None if that was done before."""
    if uow.one(HostKey, HostKey.state == "active") is not None:
        first = uow.one(AuditRecord, AuditRecord.event == AuditEvent.HOST_MADE)
        made = (first.detail or {}).get("name") if first else None
        if made != home.settings.name:
            raise LocalError(
                f"The database in {home.path} is of {made}, its governor.toml of {home.settings.name}. Set the name right."
            )
        return None
    now = home.host.clock.now()
    make_private(home.keyring.folder)
    keys = home.keyring.make(home.settings.name, home.hosts, now)
    add_key(uow, keys, "active", now)
    genesis(uow, now, home.settings.name, keys.fingerprint)
    return keys


def _settings(path: Path, wanted: Wanted) -> Settings:
    """Return the settings of the home, written first if there are none."""
    chosen = {"listen": wanted.listen, "url": wanted.url}
    file = path / "governor.toml"
    if not file.exists():
        text = settings_file(wanted.name, **{key: value for key, value in chosen.items() if value})
        write_private(file, text.encode())
    settings = load_settings(path)
    if settings.name != wanted.name:
        raise LocalError(
            f"{path} is the home of {settings.name!r}. A governor of another name needs another one: "
            f"governor --home DIR init --name {wanted.name}"
        )
    for key, value in chosen.items():
        if value and getattr(settings, key) != value:
            raise LocalError(f"{key} is {getattr(settings, key)!r} here already. To change it, edit {file}.")
    return settings


def _refuse_foreign(path: Path) -> None:
    """Refuse a folder that holds other things: it would be closed to everybody else."""
    if not path.exists():
        return
    names = sorted(entry.name for entry in path.iterdir())
    foreign = next((name for name in names if not name.startswith(_OURS)), None)
    if foreign and not (path / "governor.toml").exists():
        raise LocalError(
            f"{path} holds other things ({foreign}) and is no governor's home. Name a new folder: governor --home DIR init"
        )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time make this home."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
