"""Sums the log up: what crossed, how fast, what was refused, and who opened and closed the links."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from governor.audit.record import AuditEvent
from governor.message import Direction
from governor.store.tables import AuditRecord


@dataclass(slots=True)
class Crossed:
    """Figures of one direction.

    `messages` were taken, with `characters` in all. `refused` were not taken. `ended` left the outbox or
    waited here without arriving: refused by the peer, expired, cancelled or unconfirmed. `dropped` failed
    a check of the reader. The median runs from submitted to accepted by the peer's governor, or from
    received to ready for the agent, in seconds.
    """

    messages: int = 0
    characters: int = 0
    refused: int = 0
    ended: int = 0
    dropped: int = 0
    median_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Switched:
    """One line of the STOP and GO history; `reason` is the cause of a pause, or who acted."""

    at: datetime
    event: str
    peer: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Statistics:
    """The sums, by direction. `webhooks_refused` were not authenticated, or came again and again."""

    crossed: dict[str, Crossed]
    webhooks_refused: int
    switched: list[Switched]


_COUNTED: dict[str, str] = {
    AuditEvent.MESSAGE_SUBMITTED: "messages",
    AuditEvent.MESSAGE_RECEIVED: "messages",
    AuditEvent.MESSAGE_REFUSED: "refused",
    AuditEvent.MESSAGE_REFUSED_IN: "refused",
    AuditEvent.MESSAGE_ENDED: "ended",
    AuditEvent.MESSAGE_DROPPED: "dropped",
}
_BEGINS: frozenset[str] = frozenset({AuditEvent.MESSAGE_SUBMITTED, AuditEvent.MESSAGE_RECEIVED})
_ARRIVES: frozenset[str] = frozenset({AuditEvent.MESSAGE_ACCEPTED, AuditEvent.MESSAGE_READ})
_SWITCHES: frozenset[str] = frozenset(
    {AuditEvent.GO, AuditEvent.GO_REFUSED, AuditEvent.STOP, AuditEvent.PAUSED}
)


def statistics(records: Iterable[AuditRecord]) -> Statistics:
    """Sum the records up; they come oldest first."""
    crossed = {str(direction): Crossed() for direction in Direction}
    taken_for: dict[str, list[float]] = {str(direction): [] for direction in Direction}
    begun: dict[tuple[str | None, ...], datetime] = {}
    switched: list[Switched] = []
    webhooks_refused = 0
    for row in records:
        if row.event in _SWITCHES:
            switched.append(Switched(row.at, row.event, row.peer, row.reason))
        elif row.event == AuditEvent.WEBHOOK_REFUSED:
            webhooks_refused += int((row.detail or {}).get("count", 1))
        elif row.direction in crossed:
            _count(crossed[row.direction], row)
            _time(begun, taken_for[row.direction], row)
    for direction, figures in crossed.items():
        figures.median_seconds = median(taken_for[direction]) if taken_for[direction] else None
    return Statistics(crossed, webhooks_refused, switched)


def _count(figures: Crossed, row: AuditRecord) -> None:
    name = _COUNTED.get(row.event)
    if name is not None:
        setattr(figures, name, getattr(figures, name) + 1)
    if name == "messages":
        figures.characters += row.size or 0


def _time(begun: dict[tuple[str | None, ...], datetime], taken_for: list[float], row: AuditRecord) -> None:
    message = (row.direction, row.peer, row.message_id)
    if row.event in _BEGINS:
        begun[message] = row.at
    elif row.event in _ARRIVES and message in begun:
        taken_for.append((row.at - begun.pop(message)).total_seconds())
