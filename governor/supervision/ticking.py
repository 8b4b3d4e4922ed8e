"""The tick: what time alone brings about. Deadlines are wall-clock instants in rows, looked at here.

A machine that slept, or whose clock was set, was not watched meanwhile: its links pause.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlmodel import col, delete

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.keyring import Keyring
from governor.directory.links import Actor, apply
from governor.directory.own_keys import carry_on_rotation
from governor.directory.refusals import write_counts
from governor.inbound.lives import move
from governor.message import PauseReason
from governor.outbox.sending import expire_late
from governor.outbox.submit import KEEP_SENT
from governor.policy.lives import InboundEvent
from governor.policy.state import FaultSeen, StopGiven, Ticked
from governor.store.tables import Link, Message, Notice, SeenWebhook
from governor.store.unit_of_work import Store, UnitOfWork
from governor.supervision.seeing import stop_file, watch_telegram

JUMP = timedelta(seconds=30)
"""A difference between the wall and the monotonic clock that counts as sleep."""


@dataclass(frozen=True, slots=True)
class Instant:
    """One look at both clocks; `monotonic` in seconds."""

    wall: datetime
    monotonic: float


def slept(before: Instant, after: Instant) -> bool:
    """Tell whether the machine slept, or its clock was set, between two looks."""
    wall = after.wall - before.wall
    return abs(wall - timedelta(seconds=after.monotonic - before.monotonic)) > JUMP


def tick(
    store: Store,
    host: Host,
    keyring: Keyring,
    home: Path,
    counted: list[Entry],
    *,
    after_sleep: bool,
    telegram: bool,
) -> bool:
    """Do what is due now; True when keys changed and TLS has to be set up anew.

    `counted` are the refusals of minutes that are over (`Refusals.take`).
    """
    now = host.clock.now()
    with store.begin() as uow:
        for link in uow.all(Link):
            if after_sleep:
                apply(uow, host, link, FaultSeen(PauseReason.SLEPT), now)
            apply(uow, host, link, Ticked(), now)
            if stop_file(home):
                apply(uow, host, link, StopGiven(), now, Actor("file STOP"))
        if telegram:
            watch_telegram(uow, host, now)
        expire_late(uow, now)
        _erase(uow, now)
        write_counts(uow, now, counted)
        return carry_on_rotation(uow, host, keyring, now)


def _erase(uow: UnitOfWork, now: datetime) -> None:
    """Erase texts whose time is over; rows, hashes and audit records stay."""
    erased = 0
    for row in uow.all(Message, col(Message.text_erase_at) <= now):
        row.text, row.body, row.text_erase_at = None, None, None
        erased += 1
    for row in uow.all(Message, col(Message.clean_erase_at) <= now):
        move(uow, row, InboundEvent.EXPIRED, now, "not_acknowledged")  # if its agent never did
        row.clean, row.rewrite, row.clean_erase_at = None, None, None
        erased += 1
    for notice in uow.all(
        Notice, col(Notice.created_at) <= now - KEEP_SENT, col(Notice.foreign).is_not(None)
    ):
        notice.foreign = None
        erased += 1
    if erased:
        append(uow, now, Entry(AuditEvent.TEXT_ERASED, detail={"count": erased}))
    uow.session.exec(delete(SeenWebhook).where(col(SeenWebhook.keep_until) < now))
