"""The inbox: what an agent may read now. Pull always works; a closed link hides its messages."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.links import is_open
from governor.errors import NotYoursError
from governor.message import CleanText, InboundState
from governor.policy.lives import InboundEvent, next_inbound
from governor.store.tables import Link, Message
from governor.store.unit_of_work import Store, UnitOfWork

KEEP_CLEAN = timedelta(days=7)

WITHDRAWN = "withdrawn"
"""The reason of a message that its sender took back."""


@dataclass(frozen=True, slots=True)
class InboxItem:
    """One message as its agent sees it.

    `shown_before` says that it is not new, `withdrawn` that its sender took it back.
    """

    id: str
    sender: str
    conversation: str
    in_reply_to: str | None
    text: CleanText
    received_at: datetime
    shown_before: bool
    withdrawn: bool


def read_inbox(store: Store, host: Host, agent: str) -> list[InboxItem]:
    """Return the agent's messages that wait to be acknowledged, oldest first, and mark them as shown.

    The switch is asked in the same transaction: what this returns was readable when it committed.
    """
    now = host.clock.now()
    with store.begin() as uow:
        rows = _readable(uow, host, agent, now)
        items = [
            InboxItem(
                id=row.id,
                sender=row.sender,
                conversation=row.conversation,
                in_reply_to=row.in_reply_to,
                # What `inbound.reading.finish` made: nobody else writes that column.
                text=cast("CleanText", row.clean),
                received_at=row.created_at,
                shown_before=row.shown_at is not None,
                withdrawn=row.reason == WITHDRAWN,
            )
            for row in rows
        ]
        for row in rows:
            if row.shown_at is None:
                row.shown_at = now
                append(uow, now, _entry(AuditEvent.MESSAGE_SHOWN, row))
    return items


def waiting(store: Store, host: Host, agent: str) -> int:
    """Return how many messages the agent could read now."""
    with store.reading() as uow:
        return len(_readable(uow, host, agent, host.clock.now()))


def ack(store: Store, host: Host, agent: str, message_id: str) -> bool:
    """Note that the agent is done with a message; False when it was before.

    Raises NotYoursError for a message that was never shown to this agent.
    """
    now = host.clock.now()
    with store.begin() as uow:
        rows = uow.all(
            Message,
            Message.id == message_id,
            Message.direction == "in",
            Message.recipient == host.address(agent),
        )
        row = next((row for row in rows if row.shown_at is not None), None)
        if row is None:
            raise NotYoursError(f"You were shown no message {message_id!r}. See yours: governor inbox")
        return acknowledge(uow, row, now)


def acknowledge(uow: UnitOfWork, row: Message, now: datetime) -> bool:
    """Mark a shown message as done, by `ack` or by answering it; False when it was before."""
    after = next_inbound(InboundState(row.state), InboundEvent.ACKED)
    if after is None:
        return False
    row.state, row.acked_at, row.finished_at = after, now, now
    append(uow, now, _entry(AuditEvent.MESSAGE_ACKED, row))
    return True


def _readable(uow: UnitOfWork, host: Host, agent: str, now: datetime) -> list[Message]:
    open_peers = {row.peer for row in uow.all(Link) if is_open(host, row, now)}
    rows = uow.all(
        Message,
        Message.direction == "in",
        Message.state == InboundState.READY,
        Message.recipient == host.address(agent),
    )
    return sorted((row for row in rows if row.peer in open_peers), key=lambda row: row.n or 0)


def _entry(event: AuditEvent, row: Message) -> Entry:
    return Entry(
        event,
        direction="in",
        peer=row.peer,
        agent=row.recipient.partition("@")[0],
        message_id=row.id,
        conversation=row.conversation,
        size=row.size,
        sha256=row.sha256,
    )
