"""Gives an agent its credential: at once for an agent of this user, by a grant for one of another."""

from datetime import datetime
from pathlib import Path

from governor.cli.credentials import Credential, Place, save_credential
from governor.cli.joining import join_line
from governor.directory.agents import join, make_grant
from governor.store.unit_of_work import UnitOfWork
from governor.wiring import Home


def place_of(home: Home) -> Place:
    """Return where agents find the governor of a home."""
    return Place(str(home.socket), home.settings.local_api.listen)


def give_credential(uow: UnitOfWork, home: Home, agent: str, now: datetime) -> Path:
    """Write a new credential of an agent into the home and return its file; an older token is dead.

    The file comes first: should the transaction fail, it holds a token that nobody knows.
    """
    name, token = join(uow, make_grant(uow, agent, now), now)
    return save_credential(home.path, Credential(name, token, place_of(home)))


def give_grant(uow: UnitOfWork, home: Home, agent: str, now: datetime) -> str:
    """Return the line with which the agent's own user fetches its credential, once, within an hour."""
    return join_line(make_grant(uow, agent, now), place_of(home))
