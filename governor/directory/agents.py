"""The agents of this host: added and removed by the operator, recognised by their token.

A token is `bgt_` + 43 base64url characters (256 bits); only its SHA-256 is stored. A grant
(`bgg_`, once, 1 h) lets the agent's own OS user fetch its token through the local API.
"""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.errors import CredentialError, LocalError, NotYoursError
from governor.message import RESERVED_NAMES, is_name
from governor.store.tables import Agent, Grant
from governor.store.unit_of_work import UnitOfWork

GRANT_FOR = timedelta(hours=1)

NewSecret = Callable[[], str]


def new_secret() -> str:
    """Return 256 random bits as 43 base64url characters."""
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """Return the form in which a token or a grant is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def check_name(name: str, what: str) -> None:
    """Refuse a name outside the grammar or a reserved one; raises LocalError."""
    if name in RESERVED_NAMES:
        raise LocalError(f"{name!r} is reserved; no {what} may be called so. Choose another name.")
    if not is_name(name):
        raise LocalError(f"{name!r} is no name for {what}: use 1 to 32 of a-z, 0-9 and '-'.")


def find(uow: UnitOfWork, name: str) -> Agent | None:
    """Return the agent of this name, unless it was removed."""
    row = uow.get(Agent, name)
    return row if row and row.removed_at is None else None


def local_agents(uow: UnitOfWork) -> list[str]:
    """Return the names of all local agents, sorted."""
    return sorted(row.name for row in uow.all(Agent) if row.removed_at is None)


def add(uow: UnitOfWork, name: str, now: datetime) -> bool:
    """Register an agent; False when it is there already. A removed one comes back without token."""
    check_name(name, "an agent")
    row = uow.get(Agent, name)
    if row and row.removed_at is None:
        return False
    if row:
        row.removed_at, row.added_at, row.token_sha256 = None, now, None
    else:
        uow.add(Agent(name=name, added_at=now))
    append(uow, now, Entry(AuditEvent.AGENT_ADDED, agent=name))
    return True


def remove(uow: UnitOfWork, name: str, now: datetime) -> None:
    """Remove an agent: its token is dead at once. Raises NotYoursError."""
    row = _required(uow, name)
    row.removed_at, row.token_sha256 = now, None
    append(uow, now, Entry(AuditEvent.AGENT_REMOVED, agent=name))


def make_grant(uow: UnitOfWork, name: str, now: datetime, secret: NewSecret = new_secret) -> str:
    """Return a one-time grant for the agent, valid for an hour."""
    _required(uow, name)
    grant = f"bgg_{secret()}"
    uow.add(Grant(sha256=hash_of(grant), agent=name, expires_at=now + GRANT_FOR))
    return grant


def join(uow: UnitOfWork, grant: str, now: datetime, secret: NewSecret = new_secret) -> tuple[str, str]:
    """Turn a grant into (agent, token); an older token of the agent is dead. Raises CredentialError."""
    row = uow.get(Grant, hash_of(grant))
    agent = find(uow, row.agent) if row else None
    if row is None or agent is None or row.used_at or now >= row.expires_at:
        raise CredentialError(
            "This grant is unknown, used or expired. Ask for a new one: governor agent token NAME --grant"
        )
    row.used_at = now
    token = f"bgt_{secret()}"
    agent.token_sha256 = hash_of(token)
    append(uow, now, Entry(AuditEvent.AGENT_JOINED, agent=agent.name))
    return agent.name, token


def who_is(uow: UnitOfWork, token: str) -> str:
    """Return the name of the agent with this token; raises CredentialError."""
    row = uow.one(Agent, Agent.token_sha256 == hash_of(token))
    if row is None or row.removed_at is not None:
        raise CredentialError(
            "This token is not known here (any more). Ask for another: governor agent token NAME"
        )
    return row.name


def _required(uow: UnitOfWork, name: str) -> Agent:
    row = find(uow, name)
    if row is None:
        raise NotYoursError(f"There is no agent {name!r} here. See them: governor agent list")
    return row
