"""A canary was touched: an agent of this host gives away what it holds."""

from datetime import datetime, timedelta
from typing import Final

from sqlmodel import col

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.links import apply
from governor.directory.notices import notify
from governor.message import Direction, PauseReason
from governor.policy.secrets import Found
from governor.policy.state import FaultSeen
from governor.store.tables import AuditRecord, Link
from governor.store.unit_of_work import UnitOfWork

TELL_EVERY: Final = timedelta(minutes=1)
"""How often at most the operators are told of one agent: it could offer its bait without end."""


def give_alarm(uow: UnitOfWork, host: Host, agent: str, found: Found, now: datetime) -> None:
    """Record it, tell the operators, and pause every link.

    Every link, for it is the agent that is in doubt, not the peer it happened to write to.
    """
    told = uow.all(
        AuditRecord,
        AuditRecord.event == AuditEvent.CANARY_TOUCHED,
        AuditRecord.agent == agent,
        col(AuditRecord.at) > now - TELL_EVERY,
    )
    entry = Entry(
        AuditEvent.CANARY_TOUCHED,
        direction=Direction.OUT,
        agent=agent,
        reason=found.canary,
        detail={"where": found.where},
    )
    append(uow, now, entry)
    if not told:
        text = (
            f"CANARY TOUCHED: {host.address(agent)} offered {found.canary} to send ({found.where}). It gives"
            " away what it holds. Nothing left, and every link is closed. Think STOP; GO only when you know why."
        )
        notify(uow, now, text, lane="answer")
    for link in uow.all(Link):
        apply(uow, host, link, FaultSeen(PauseReason.CANARY_TOUCHED), now)
