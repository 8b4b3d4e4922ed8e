"""The start: what a crash or a stop left is put in order, and said."""

import json
from datetime import datetime

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.links import apply
from governor.directory.notices import notify
from governor.inbound.reading import recover as recover_reading
from governor.message import PauseReason
from governor.outbox.control_sending import recover_control
from governor.outbox.sending import recover as recover_sending
from governor.policy.state import FaultSeen, Ticked
from governor.store.tables import Link
from governor.store.unit_of_work import Store, UnitOfWork
from governor.supervision.seeing import telegram_begins
from governor.supervision.status import describe, links_now

LIMITS = "limits"
"""The fact under which the limits of the last start are remembered."""

Limits = dict[str, float | list[str]]
"""Limits by name: a larger number is looser, and so is a new member of a list. What can be absent are the
flags of a link that has settings of its own: one that is gone counts as 1, the loosest."""


def start(store: Store, host: Host, limits: Limits, chat_id: int) -> str:
    """Recover from whatever ended the last run and return one line on what was found."""
    now = host.clock.now()
    with store.begin() as uow:
        sending, reading = recover_sending(uow, now), recover_reading(uow, now)
        recover_control(uow, now)
        telegram_begins(uow, chat_id, now)
        looser = _loosened(uow, limits)
        for link in uow.all(Link):
            apply(uow, host, link, Ticked(), now)
            if looser:
                apply(uow, host, link, FaultSeen(PauseReason.SETTINGS_LOOSENED), now)
        if looser:
            append(
                uow, now, Entry(AuditEvent.SETTINGS_CHANGED, reason="loosened", detail={"first": looser[0]})
            )
        append(uow, now, Entry(AuditEvent.STARTED, detail={"sending": sending, "reading": reading}))
        found = f"{host.name} started: {sending} message(s) to send again, {reading} to read again."
        links = "; ".join(describe(link) for link in links_now(uow, host, now))
        notify(uow, now, f"{found} {links or 'No peer yet.'}", lane="answer")
    return found


def stopped(store: Store, at: datetime, entries: list[Entry]) -> None:
    """Write the last records of an orderly end."""
    with store.begin() as uow:
        for entry in entries:
            append(uow, at, entry)
        append(uow, at, Entry(AuditEvent.STOPPED_RUNNING))


def _loosened(uow: UnitOfWork, limits: Limits) -> list[str]:
    """Return the names of limits that are looser than at the last start, and remember the new ones."""
    known = uow.fact(LIMITS)
    before: Limits = json.loads(known) if known else limits
    uow.set_fact(LIMITS, json.dumps(limits, sort_keys=True))
    return sorted(name for name, old in before.items() if _is_looser(old, limits.get(name, 1.0)))


def _is_looser(old: float | list[str], new: float | list[str]) -> bool:
    if isinstance(old, list) or isinstance(new, list):
        return not (isinstance(old, list) and isinstance(new, list) and set(new) <= set(old))
    return new > old
