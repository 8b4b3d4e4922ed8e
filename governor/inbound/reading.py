"""The two transactions around a read: pick a message for the reader, finish with what came of it.

`finish` is the only maker of `CleanText`.
"""

import json
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col

from governor.audit.log import append
from governor.audit.record import AuditEvent
from governor.delivery.inbox import KEEP_CLEAN
from governor.delivery.render import render
from governor.directory.host import Host
from governor.directory.links import apply, is_open
from governor.directory.notices import notify
from governor.directory.open_messages import open_in
from governor.inbound.lives import entry_of, move
from governor.inbound.model_broker import ModelCall
from governor.message import CleanText, InboundState, PauseReason, Switch, UntrustedText
from governor.policy.lives import InboundEvent
from governor.policy.state import FaultSeen, Ticked
from governor.store.tables import Link, Message
from governor.store.tables import ModelCall as ModelCallRow
from governor.store.unit_of_work import Store, UnitOfWork
from reader.contract import Rewrite

READER_DOWN_AFTER = 3
"""Failures of the model in a row after which the link pauses."""

MODEL_FAULTS = frozenset({"model_unavailable", "no_model"})


@dataclass(frozen=True, slots=True)
class Unread:
    """A message for the reader: its row, its peer (for the reader's mode) and its text."""

    n: int
    id: str
    peer: str
    text: UntrustedText


def pick_unread(store: Store, host: Host, most: int) -> list[Unread]:
    """Mark as `reading` what may be read now: of each conversation the oldest, on open links only."""
    now = host.clock.now()
    with store.reading() as uow:
        waiting = open_in(uow, Message.state == InboundState.RECEIVED)
        peers = {row.peer for row in waiting}
        if not any(is_open(host, link, now) for link in uow.all(Link, col(Link.peer).in_(peers))):
            return []
    with store.begin() as uow:
        chosen: list[Message] = []
        for link in uow.all(Link):
            apply(uow, host, link, Ticked(), now)
            if link.switch == Switch.RUNNING:
                chosen += _first_of_each(uow, link.peer)
        chosen = chosen[:most]
        for row in chosen:
            move(uow, row, InboundEvent.PICKED, now)
            row.attempts += 1
        return [Unread(row.n or 0, row.id, row.peer, UntrustedText(row.text or "")) for row in chosen]


def finish(store: Store, host: Host, unread: Unread, rewrite: Rewrite, call: ModelCall | None) -> None:
    """Keep the checked rewrite for the agent and erase the text; a message that has ended stays ended."""
    now = host.clock.now()
    with store.begin() as uow:
        row = _load(uow, unread)
        link = uow.get(Link, unread.peer)
        _note_call(uow, unread, call, "rewrite", now)
        if link is not None:
            link.reader_failures = 0
        if row is None or not move(uow, row, InboundEvent.READ, now):
            return
        clean = CleanText(
            render(
                rewrite,
                sender=row.sender,
                message_id=row.id,
                conversation=row.conversation,
                in_reply_to=row.in_reply_to,
                answer_by=None,
            )
        )
        row.clean, row.text = clean, None
        row.rewrite = json.dumps({"kind": rewrite.kind, "signals": dict(rewrite.signals)})
        row.clean_erase_at = now + KEEP_CLEAN
        append(uow, now, entry_of(AuditEvent.MESSAGE_READ, row, rewrite.kind))
        if link is not None:
            cap = host.rules(row.peer).cap
            head = f"{row.sender} -> {row.recipient}  {row.conversation}  in {link.in_used}/{cap}  {row.size} characters"
            notify(uow, now, head, peer=row.peer, foreign=clean)


def drop(store: Store, host: Host, unread: Unread, code: str, call: ModelCall | None) -> None:
    """Drop a message the reader gave nothing for: silent for both agents, loud for the operators."""
    now = host.clock.now()
    with store.begin() as uow:
        row = _load(uow, unread)
        link = uow.get(Link, unread.peer)
        _note_call(uow, unread, call, code, now)
        if link is not None:
            link.reader_failures = link.reader_failures + 1 if code in MODEL_FAULTS else 0
            if link.reader_failures >= READER_DOWN_AFTER:
                apply(uow, host, link, FaultSeen(PauseReason.READER_DOWN), now)
                link.reader_failures = 0
        if row is not None:
            move(uow, row, InboundEvent.DROPPED, now, code)


def recover(uow: UnitOfWork, now: datetime) -> int:
    """After a start: a read that was cut off is done once more; the second time it is a drop."""
    rows = open_in(uow, Message.state == InboundState.READING)
    for row in rows:
        again = row.attempts > 1
        event = InboundEvent.RESTARTED_AGAIN if again else InboundEvent.RESTARTED_FIRST
        move(uow, row, event, now, "governor_died" if again else None)
    return len(rows)


def expire_held_up(uow: UnitOfWork, host: Host, peer: str, now: datetime) -> None:
    """At a GO: what waited behind the closed link for longer than `hold_for` does not go on."""
    for row in open_in(uow, Message.peer == peer):
        if row.created_at < now - host.hold_for and row.shown_at is None and row.state != InboundState.HELD:
            move(uow, row, InboundEvent.EXPIRED, now, "held_up")


def _first_of_each(uow: UnitOfWork, peer: str) -> list[Message]:
    """Return the oldest unread message of each conversation, unless an older one is being read."""
    waiting = (InboundState.RECEIVED, InboundState.READING, InboundState.HELD)
    first: dict[str, Message] = {}
    for row in open_in(uow, Message.peer == peer, col(Message.state).in_(waiting)):
        first.setdefault(row.conversation, row)
    return [row for row in first.values() if row.state == InboundState.RECEIVED]


def _load(uow: UnitOfWork, unread: Unread) -> Message | None:
    return uow.get(Message, unread.n)


def _note_call(uow: UnitOfWork, unread: Unread, call: ModelCall | None, verdict: str, now: datetime) -> None:
    if call is None:
        return
    uow.add(
        ModelCallRow(
            at=now,
            peer=unread.peer,
            message_id=unread.id,
            model=call.model,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            seconds=call.seconds,
            stop_reason=call.stop_reason,
            verdict=verdict,
        )
    )
