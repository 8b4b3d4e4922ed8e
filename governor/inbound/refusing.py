"""How the webhook of an authenticated peer is refused: on record once a minute, then only counted."""

from dataclasses import replace
from datetime import datetime

from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.refusals import note_refusal
from governor.inbound.answers import Answer, unprocessable
from governor.message import Direction
from governor.store.unit_of_work import Store, UnitOfWork
from governor.webhook.incoming import WireReason


def refused(uow: UnitOfWork, now: datetime, entry: Entry, answer: Answer) -> Answer:
    """Note the refusal and return the answer, which says whether the refusal is still to be counted."""
    return answer if note_refusal(uow, now, entry) else replace(answer, repeated=entry.reason)


def webhook_refused(peer: str, reason: str) -> Entry:
    """Return the entry for a webhook that is refused whatever it says."""
    return Entry(AuditEvent.WEBHOOK_REFUSED, direction=Direction.IN, peer=peer, reason=reason)


def refuse_body(store: Store, host: Host, peer: str, reason: WireReason) -> Answer:
    """Refuse a webhook whose body makes no sense; nothing else becomes of it."""
    now = host.clock.now()
    with store.begin() as uow:
        return refused(uow, now, webhook_refused(peer, reason), unprocessable(reason))
