"""The rows of a link, carried to policy and back: load, decide, save, and the rows for the effects.

This is the one place where a decision of policy becomes database rows, so no use case can forget
the audit record, the notice or the webhook that follows from it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.control import cancel_pending, queue_control
from governor.directory.host import Host
from governor.directory.notices import notify
from governor.directory.open_messages import open_out, unread
from governor.message import PauseReason, Switch
from governor.policy.decide import decide
from governor.policy.state import Decision, Effect, Event, LinkState, Rules, Ticked
from governor.store.tables import Link, Message, Peer
from governor.store.unit_of_work import UnitOfWork

SEEN_EVERY = timedelta(seconds=5)
"""How precisely a link remembers when it was last looked at, so that an idle host rarely commits."""

_FIELDS = (
    "version",
    "watched_until",
    "out_used",
    "in_used",
    "closed_at",
    "seen_at",
)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who caused an event, for `acted_by`, the audit log and the notice."""

    who: str
    human: bool = False


GOVERNOR = Actor("governor")


def state_of(row: Link) -> LinkState:
    """Return a link's row as policy sees it."""
    return LinkState(
        switch=Switch(row.switch),
        reason=PauseReason(row.reason) if row.reason else None,
        version=row.version,
        watched_until=row.watched_until,
        out_used=row.out_used,
        in_used=row.in_used,
        closed_at=row.closed_at,
        seen_at=row.seen_at,
    )


def is_open(host: Host, row: Link, now: datetime) -> bool:
    """Tell whether messages pass at this instant, by policy itself, even before a tick has noticed."""
    return decide(state_of(row), Ticked(), host.rules(row.peer), now).state.switch is Switch.RUNNING


def pending(uow: UnitOfWork, peer: str) -> tuple[int, int]:
    """Return how many messages (out, in) are unfinished on a link and keep their place at a GO."""
    return len(open_out(uow, Message.peer == peer)), unread(uow, Message.peer == peer)


def apply(
    uow: UnitOfWork, host: Host, row: Link, event: Event, now: datetime, by: Actor = GOVERNOR
) -> Decision:
    """Let policy decide on an event of this link and write all that follows."""
    before = state_of(row)
    rules = host.rules(row.peer)
    decision = decide(before, event, rules, now)
    after = decision.state
    if decision == Decision(replace(before, seen_at=after.seen_at)) and _seen_lately(before, now):
        return decision  # nothing but the time has changed: not worth a commit
    row.switch, row.reason = str(after.switch), str(after.reason) if after.reason else None
    for name in _FIELDS:
        setattr(row, name, getattr(after, name))
    if after.version != before.version or by.human:
        row.acted_by, row.acted_at = by.who, now
    for effect in decision.effects:
        _EFFECTS[effect](uow, host, row, rules, now, by)
    return decision


def _seen_lately(state: LinkState, now: datetime) -> bool:
    return state.seen_at is not None and timedelta(0) <= now - state.seen_at < SEEN_EVERY


Do = Callable[[UnitOfWork, Host, Link, Rules, datetime, Actor], None]


def _opened(uow: UnitOfWork, _host: Host, row: Link, rules: Rules, now: datetime, by: Actor) -> None:
    append(uow, now, Entry(AuditEvent.GO, peer=row.peer, reason=by.who, detail={"version": row.version}))
    notify(
        uow,
        now,
        f"GO for {row.peer} by {by.who}: open for {int(rules.watch_for.total_seconds() // 60)} min, "
        f"out {row.out_used}/{rules.cap}, in {row.in_used}/{rules.cap}.",
        peer=row.peer,
        lane="answer",
    )


_CLOSED: dict[str, tuple[AuditEvent, str]] = {
    Switch.STOPPED: (AuditEvent.STOP, "STOP for {peer} by {who}. Nothing passes until GO."),
    Switch.PAUSED: (AuditEvent.PAUSED, "Paused {peer}: {reason}. Nothing passes until GO."),
    Switch.REVOKED: (AuditEvent.PEER_REVOKED, "Revoked {peer} by {who}. The link has ended."),
}


def _closed(uow: UnitOfWork, _host: Host, row: Link, _rules: Rules, now: datetime, by: Actor) -> None:
    event, text = _CLOSED[row.switch]
    reason = row.reason if event is AuditEvent.PAUSED else by.who
    append(uow, now, Entry(event, peer=row.peer, reason=reason, detail={"version": row.version}))
    button = None if event is AuditEvent.PEER_REVOKED else row.version
    notify(
        uow,
        now,
        text.format(peer=row.peer, who=by.who, reason=row.reason),
        peer=row.peer,
        lane="answer",
        version=button,
    )


def _limit_near(uow: UnitOfWork, _host: Host, row: Link, rules: Rules, now: datetime, _by: Actor) -> None:
    counts = f"out {row.out_used}/{rules.cap}, in {row.in_used}/{rules.cap}"
    notify(uow, now, f"{row.peer}: {counts}. GO gives a new allowance.", peer=row.peer, version=row.version)


def _limit(uow: UnitOfWork, _host: Host, row: Link, rules: Rules, now: datetime, _by: Actor) -> None:
    full = " and ".join(
        way for way, used in (("out", row.out_used), ("in", row.in_used)) if used >= rules.cap
    )
    text = f"{row.peer}: the limit of {rules.cap} is used up ({full}). No more pass until GO."
    notify(uow, now, text, peer=row.peer, lane="answer", version=row.version)


def _unwatched_soon(
    uow: UnitOfWork, _host: Host, row: Link, _rules: Rules, now: datetime, _by: Actor
) -> None:
    notify(
        uow,
        now,
        f"{row.peer} pauses in a minute unless somebody is here.",
        peer=row.peer,
        lane="answer",
        version=row.version,
    )


def _send_stop(uow: UnitOfWork, host: Host, row: Link, _rules: Rules, now: datetime, _by: Actor) -> None:
    if _confirmed(uow, row.peer):
        queue_control(uow, host, row.peer, "stop", now, keep_for=timedelta(minutes=1))


def _send_hello(uow: UnitOfWork, host: Host, row: Link, _rules: Rules, now: datetime, _by: Actor) -> None:
    if _confirmed(uow, row.peer):
        queue_control(uow, host, row.peer, "hello", now, keep_for=timedelta(minutes=1), data={"open": True})


def _cancel_stop(uow: UnitOfWork, _host: Host, row: Link, _rules: Rules, _now: datetime, _by: Actor) -> None:
    cancel_pending(uow, row.peer, "stop")


def _confirmed(uow: UnitOfWork, peer: str) -> bool:
    row = uow.get(Peer, peer)
    return row is not None and row.state == "confirmed"


_EFFECTS: dict[Effect, Do] = {
    Effect.TELL_OPENED: _opened,
    Effect.TELL_CLOSED: _closed,
    Effect.TELL_LIMIT_NEAR: _limit_near,
    Effect.TELL_LIMIT: _limit,
    Effect.TELL_UNWATCHED_SOON: _unwatched_soon,
    Effect.SEND_STOP: _send_stop,
    Effect.SEND_HELLO: _send_hello,
    Effect.CANCEL_STOP: _cancel_stop,
}
