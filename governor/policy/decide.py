"""The decision whether a message may pass, and what becomes of the link.

`decide` is total and pure: it reads no clock, touches nothing and raises nothing. All that it needs
stands in its arguments and all that it wants done stands in its answer.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from governor.message import Direction, LinkDirection, PauseReason, Refusal, Switch
from governor.policy.state import (
    Decision,
    Effect,
    Event,
    FaultSeen,
    GoGiven,
    GoRefusal,
    HumanActed,
    LinkState,
    Offered,
    PeerRevoked,
    Rules,
    StopGiven,
)
from governor.policy.switch import SwitchEvent, turn

CLOCK_TOLERANCE: Final = timedelta(seconds=1)
"""How far the wall clock may step back unpunished (an NTP correction); for so long time stands still."""


def decide(state: LinkState, event: Event, rules: Rules, now: datetime) -> Decision:
    """Answer an event on a link: its new state, what must be done, and the refusal if there is one.

    `now` is the wall clock (aware, UTC). The time is looked at first, whatever the event: a link
    whose deadline has passed, or whose clock went back, closes before the event is answered, and the
    answer carries that closing too. A refused event may therefore still change the state: the
    caller saves it in every case. It also saves the effects, of which each stands there at most once.
    """
    went_back = state.seen_at is not None and state.seen_at - now > CLOCK_TOLERANCE
    # After a step back the new time counts; the old one would call every later event a step back.
    moment = now if state.seen_at is None or went_back else max(state.seen_at, now)

    timed = _recheck(state, now, moment, went_back=went_back)
    answer = _answer(timed.state, event, rules, now)

    # A GO overtakes a closing found in the same breath: people are told where the link stands now.
    closing = () if answer.state.switch is Switch.RUNNING else timed.effects
    effects = closing + answer.effects + _warning(answer.state, rules, moment)
    return Decision(
        replace(answer.state, seen_at=moment), effects=tuple(dict.fromkeys(effects)), refusal=answer.refusal
    )


def _recheck(state: LinkState, now: datetime, moment: datetime, *, went_back: bool) -> Decision:
    """Close a running link whose time is over or unsure."""
    if went_back:
        return turn(state, SwitchEvent.SUPERVISION_LOST, now, reason=PauseReason.CLOCK_WENT_BACK)
    if state.watched_until is None or moment >= state.watched_until:
        return turn(state, SwitchEvent.SUPERVISION_LOST, now, reason=PauseReason.UNWATCHED)
    return Decision(state)


def _answer(state: LinkState, event: Event, rules: Rules, now: datetime) -> Decision:
    """Answer the event itself; the state has been checked against the clock."""
    reason = None
    match event:
        case Offered():
            return _offered(state, event, rules)
        case GoGiven():
            return _go_given(state, event, rules, now)
        case HumanActed():
            return _human_acted(state, event, rules, now)
        case StopGiven():
            name = SwitchEvent.PEER_STOPPED if event.by_peer else SwitchEvent.STOP_GIVEN
        case FaultSeen():
            name, reason = SwitchEvent.SUPERVISION_LOST, event.reason
        case PeerRevoked():
            name = SwitchEvent.PEER_REVOKED
        case _:
            name = SwitchEvent.TICKED
    return turn(state, name, now, reason=reason)


Question = Callable[[LinkState, Offered, Rules], bool]
"""Tells whether a message must be refused."""

QUESTIONS: Final[tuple[tuple[Question, Refusal], ...]] = (
    (lambda _state, offer, _rules: not offer.sender_known, Refusal.UNKNOWN_SENDER),
    (lambda _state, offer, _rules: not offer.recipient_known, Refusal.UNKNOWN_RECIPIENT),
    (lambda _state, offer, _rules: offer.same, Refusal.SELF_SEND),
    (lambda _state, offer, _rules: offer.size < 1, Refusal.EMPTY),
    (lambda _state, offer, rules: offer.size > rules.text_limit, Refusal.TOO_LONG),
    (lambda _state, offer, rules: not _open_to(rules.direction, offer.direction), Refusal.DIRECTION),
    (lambda state, _offer, _rules: state.switch is Switch.REVOKED, Refusal.REVOKED),
    (lambda state, _offer, _rules: state.switch is Switch.STOPPED, Refusal.STOPPED),
    (
        lambda state, _offer, _rules: state.switch is Switch.PAUSED and state.reason is PauseReason.UNWATCHED,
        Refusal.UNWATCHED,
    ),
    (lambda state, _offer, _rules: state.switch is not Switch.RUNNING, Refusal.PAUSED),
    (lambda state, offer, rules: _used(state, offer.direction) >= rules.cap, Refusal.LIMIT),
    (lambda _state, offer, _rules: offer.hops < 0, Refusal.HOPS),
    (lambda _state, offer, _rules: offer.theirs, Refusal.NOT_YOURS),
    (lambda _state, offer, _rules: offer.secret, Refusal.SECRET),
)
"""What an offered message is asked, in this order; the first "yes" is the reason to refuse it."""


def _offered(state: LinkState, offer: Offered, rules: Rules) -> Decision:
    """Ask the questions; a message that passes them all takes one of its direction's allowance."""
    for must_refuse, refusal in QUESTIONS:
        if must_refuse(state, offer, rules):
            return Decision(state, refusal=refusal)
    used = _used(state, offer.direction) + 1
    near = (Effect.TELL_LIMIT_NEAR,) if used == rules.warn_at else ()
    full = (Effect.TELL_LIMIT,) if used == rules.cap else ()
    if offer.direction is Direction.OUT:
        return Decision(replace(state, out_used=used), near + full)
    return Decision(replace(state, in_used=used), near + full)


def _open_to(link: LinkDirection, message: Direction) -> bool:
    return link is LinkDirection.BOTH or link.value == message.value


def _used(state: LinkState, direction: Direction) -> int:
    return state.out_used if direction is Direction.OUT else state.in_used


Objection = Callable[[LinkState, GoGiven], bool]
"""Tells whether a GO must be refused."""

OBJECTIONS: Final[tuple[tuple[Objection, GoRefusal], ...]] = (
    (lambda state, _go: state.switch is Switch.REVOKED, GoRefusal.REVOKED),
    (lambda _state, go: bool(go.causes), GoRefusal.CAUSE_PERSISTS),
    (lambda state, go: go.version is not None and go.version != state.version, GoRefusal.OLD_VERSION),
    (
        lambda state, go: go.bare and state.reason is PauseReason.AWAITING_FIRST_GO,
        GoRefusal.AWAITS_FIRST_GO,
    ),
)
"""What a GO is asked, in this order; the one that no second GO can mend comes first."""


def _go_given(state: LinkState, go: GoGiven, rules: Rules, now: datetime) -> Decision:
    """Open the link, or say why not; unfinished messages keep their place in the new allowance."""
    for objects, refusal in OBJECTIONS:
        if objects(state, go):
            return replace(turn(state, SwitchEvent.GO_REFUSED, now), refusal=refusal)
    # A peer that met a shut gate is waiting for the hint, even if the switch never moved.
    shut = max(state.out_used, state.in_used) >= rules.cap
    recounted = replace(state, out_used=go.pending_out, in_used=go.pending_in)
    opened = turn(recounted, SwitchEvent.GO_GIVEN, now, until=_later(now, rules.watch_for))
    return replace(opened, effects=opened.effects + ((Effect.SEND_HELLO,) if shut else ()))


def _human_acted(state: LinkState, act: HumanActed, rules: Rules, now: datetime) -> Decision:
    """Move the deadline of a running link to five minutes after the act, if that is later."""
    # Never later than now: a date from the future would hold the link open unwatched.
    until = _later(min(act.at, now), rules.watch_for)
    return turn(state, SwitchEvent.HUMAN_ACTED, now, until=max(state.watched_until or until, until))


def _warning(state: LinkState, rules: Rules, moment: datetime) -> tuple[Effect, ...]:
    """Warn when the last minute began since the state was last seen, so once for each deadline."""
    deadline = state.watched_until
    if state.switch is not Switch.RUNNING or deadline is None or deadline - moment > rules.warn_before:
        return ()
    told = state.seen_at is not None and deadline - state.seen_at <= rules.warn_before
    return () if told else (Effect.TELL_UNWATCHED_SOON,)


def _later(instant: datetime, span: timedelta) -> datetime:
    """Add, and at the end of the calendar give no time at all rather than an error."""
    try:
        return instant + span
    except OverflowError:
        return instant
