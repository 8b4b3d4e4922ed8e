"""GO, STOP and human activity: one use case each, whoever asks (Telegram, CLI, signal, file).

Each reports what *is* after the decision, not what was asked.
"""

from dataclasses import dataclass
from datetime import datetime

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.host import Host
from governor.directory.links import Actor, apply, is_open, pending, state_of
from governor.errors import NotYoursError
from governor.inbound.reading import expire_held_up
from governor.message import PauseReason, Switch
from governor.outbox.sending import expire_late
from governor.policy.decide import decide
from governor.policy.state import GoGiven, HumanActed, StopGiven, Ticked
from governor.store.tables import Link, Peer
from governor.store.unit_of_work import Store, UnitOfWork
from governor.supervision.freshness import typed_go


@dataclass(frozen=True, slots=True)
class Go:
    """A GO of a human with authority: by whom, for which link (None: all that had one before).

    `version` is the link's version that a button was made for; `said_at` is when it was typed: one
    typed before the closing opens nothing. `causes` still hold on this host.
    """

    by: str
    peer: str | None = None
    version: int | None = None
    said_at: datetime | None = None
    causes: tuple[PauseReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Switched:
    """What came of it for one link: its name, its switch now, and why nothing changed if so."""

    peer: str
    switch: Switch
    refusal: str | None = None


def check_link(store: Store, peer: str | None) -> None:
    """Raise NotYoursError if a peer is named that there is no link to."""
    with store.reading() as uow:
        _chosen(uow, peer)


def give_go(store: Store, host: Host, go: Go) -> list[Switched]:
    """Open one link or all; raises NotYoursError for an unknown peer."""
    now = host.clock.now()
    with store.begin() as uow:
        links = _chosen(uow, go.peer)
        expire_late(uow, now)  # what is over keeps no place in the new allowance
        return [_go(uow, host, link, go, now) for link in links]


def give_stop(store: Store, host: Host, by: Actor, peer: str | None = None) -> list[Switched]:
    """Stop one link or all, at once; raises NotYoursError for an unknown peer."""
    now = host.clock.now()
    with store.begin() as uow:
        links = _chosen(uow, peer)
        for link in links:
            apply(uow, host, link, StopGiven(), now, by)
        return [Switched(link.peer, Switch(link.switch)) for link in links]


def note_activity(store: Store, host: Host, by: str, at: datetime) -> None:
    """Extend the human deadline of every open link; opens nothing."""
    now = host.clock.now()
    with store.begin() as uow:
        for link in uow.all(Link):
            apply(uow, host, link, HumanActed(at), now, Actor(by, human=True))
        append(uow, now, Entry(AuditEvent.HUMAN_ACTED, reason=by))


def _go(uow: UnitOfWork, host: Host, link: Link, go: Go, now: datetime) -> Switched:
    apply(uow, host, link, Ticked(), now)  # a closing that nobody has noticed yet counts as one
    refusal = _refusal(uow, host, link, go, now)
    if refusal is not None:
        detail = {"by": go.by} | {f"cause{n}": str(cause) for n, cause in enumerate(go.causes, 1)}
        append(uow, now, Entry(AuditEvent.GO_REFUSED, peer=link.peer, reason=refusal, detail=detail))
        return Switched(link.peer, Switch(link.switch), refusal)
    if not is_open(host, link, now):
        expire_held_up(uow, host, link.peer, now)
    out, into = pending(uow, link.peer)
    event = GoGiven(out, into, causes=go.causes, version=go.version, bare=go.peer is None)
    apply(uow, host, link, event, now, Actor(go.by, human=True))
    return Switched(link.peer, Switch(link.switch))


def _refusal(uow: UnitOfWork, host: Host, link: Link, go: Go, now: datetime) -> str | None:
    """Return why this GO opens nothing, in the order in which it is told."""
    peer = uow.get(Peer, link.peer)
    if peer is None or peer.state != "confirmed":
        return "unconfirmed"
    event = GoGiven(0, 0, causes=go.causes, version=go.version, bare=go.peer is None)
    refusal = decide(state_of(link), event, host.rules(link.peer), now).refusal
    if refusal is None and go.said_at is not None:
        return typed_go(go.said_at, now, link.closed_at)
    return refusal


def _chosen(uow: UnitOfWork, peer: str | None) -> list[Link]:
    links = [link for link in uow.all(Link) if link.switch != Switch.REVOKED]
    if peer is None:
        return links
    chosen = [link for link in links if link.peer == peer]
    if not chosen:
        known = ", ".join(link.peer for link in links) or "none yet (governor pair offer)"
        raise NotYoursError(f"There is no peer {peer!r}. Paired: {known}")
    return chosen
