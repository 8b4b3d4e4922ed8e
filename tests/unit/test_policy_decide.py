"""What `decide` answers: the order of questions, GO and its objections, time, counters."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from governor.message import Direction, LinkDirection, PauseReason, Refusal, Switch
from governor.policy.decide import decide
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
    Ticked,
)

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
RULES = Rules(cap=3, warn_at=2, text_limit=100)
OUT = Offered(Direction.OUT, size=5)
IN = Offered(Direction.IN, size=5)
GO = GoGiven(pending_out=0, pending_in=0)

RUNNING = LinkState(Switch.RUNNING, None, 7, watched_until=NOW + 3 * MINUTE, seen_at=NOW - SECOND)
PAUSED = LinkState(Switch.PAUSED, PauseReason.SLEPT, 7, watched_until=NOW, closed_at=NOW, seen_at=NOW)
UNWATCHED = replace(PAUSED, reason=PauseReason.UNWATCHED)
STOPPED = replace(PAUSED, switch=Switch.STOPPED, reason=None)
REVOKED = replace(PAUSED, switch=Switch.REVOKED, reason=None)
NEW = LinkState()

EVENTS: tuple[Event, ...] = (
    OUT,
    IN,
    GO,
    StopGiven(),
    StopGiven(by_peer=True),
    HumanActed(NOW),
    Ticked(),
    FaultSeen(PauseReason.UNSEEN),
    PeerRevoked(),
)


def at(state: LinkState, event: Event, now: datetime = NOW, rules: Rules = RULES) -> Decision:
    return decide(state, event, rules, now)


# What an offered message is asked, in order: each case says yes to its own question and to all
# after it, so that a swapped pair would answer with the wrong reason.

WORST = Offered(
    Direction.OUT,
    size=0,
    sender_known=False,
    recipient_known=False,
    same=True,
    theirs=True,
    hops=-1,
    secret=True,
)
SHUT = replace(RUNNING, out_used=3)
ORDER = [
    (WORST, REVOKED, LinkDirection.IN, Refusal.UNKNOWN_SENDER),
    (replace(WORST, sender_known=True), REVOKED, LinkDirection.IN, Refusal.UNKNOWN_RECIPIENT),
    (replace(WORST, sender_known=True, recipient_known=True), REVOKED, LinkDirection.IN, Refusal.SELF_SEND),
    (Offered(Direction.OUT, 0, theirs=True, hops=-1, secret=True), REVOKED, LinkDirection.IN, Refusal.EMPTY),
    (
        Offered(Direction.OUT, 101, theirs=True, hops=-1, secret=True),
        REVOKED,
        LinkDirection.IN,
        Refusal.TOO_LONG,
    ),
    (
        Offered(Direction.OUT, 100, theirs=True, hops=-1, secret=True),
        REVOKED,
        LinkDirection.IN,
        Refusal.DIRECTION,
    ),
    (
        Offered(Direction.IN, 1, theirs=True, hops=-1, secret=True),
        REVOKED,
        LinkDirection.OUT,
        Refusal.DIRECTION,
    ),
    (
        Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True),
        REVOKED,
        LinkDirection.BOTH,
        Refusal.REVOKED,
    ),
    (
        Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True),
        STOPPED,
        LinkDirection.OUT,
        Refusal.STOPPED,
    ),
    (
        Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True),
        UNWATCHED,
        LinkDirection.OUT,
        Refusal.UNWATCHED,
    ),
    (Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True), PAUSED, LinkDirection.OUT, Refusal.PAUSED),
    (Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True), NEW, LinkDirection.OUT, Refusal.PAUSED),
    (Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True), SHUT, LinkDirection.OUT, Refusal.LIMIT),
    (Offered(Direction.OUT, 1, theirs=True, hops=-1, secret=True), RUNNING, LinkDirection.OUT, Refusal.HOPS),
    (
        Offered(Direction.OUT, 1, theirs=True, hops=0, secret=True),
        RUNNING,
        LinkDirection.OUT,
        Refusal.NOT_YOURS,
    ),
    (Offered(Direction.OUT, 1, hops=0, secret=True), RUNNING, LinkDirection.OUT, Refusal.SECRET),
]


@pytest.mark.parametrize(("offer", "state", "direction", "refusal"), ORDER)
def test_the_first_no_is_the_reason(
    offer: Offered, state: LinkState, direction: LinkDirection, refusal: Refusal
) -> None:
    full = replace(state, out_used=max(state.out_used, 3)) if state is not RUNNING else state
    decision = at(full, offer, rules=replace(RULES, direction=direction))
    assert decision == Decision(replace(full, seen_at=NOW), (), refusal)


def test_every_refusal_is_reached_by_some_case() -> None:
    assert {case[3] for case in ORDER} == set(Refusal)


@pytest.mark.parametrize(
    ("offer", "link"), [(OUT, LinkDirection.OUT), (IN, LinkDirection.IN), (OUT, LinkDirection.BOTH)]
)
def test_a_link_of_one_direction_lets_that_direction_pass(offer: Offered, link: LinkDirection) -> None:
    assert at(RUNNING, offer, rules=replace(RULES, direction=link)).refusal is None


@pytest.mark.parametrize("size", [1, 100])
def test_both_ends_of_the_permitted_length_pass(size: int) -> None:
    assert at(RUNNING, replace(OUT, size=size)).refusal is None


# The allowance.


def test_each_direction_has_its_own_counter_and_its_own_gate() -> None:
    state = RUNNING
    told = []
    for _ in range(3):
        decision = at(state, OUT)
        assert decision.refusal is None
        told.append(decision.effects)
        state = decision.state
    assert told == [(), (Effect.TELL_LIMIT_NEAR,), (Effect.TELL_LIMIT,)]
    assert (state.out_used, state.in_used, state.switch) == (3, 0, Switch.RUNNING)
    assert at(state, OUT) == Decision(state, (), Refusal.LIMIT)

    taken = at(state, IN)
    assert taken.refusal is None
    assert (taken.state.out_used, taken.state.in_used) == (3, 1)


def test_an_allowance_of_one_message_tells_both_warnings_with_it() -> None:
    taken = at(RUNNING, IN, rules=Rules(cap=1, warn_at=1))
    assert taken.effects == (Effect.TELL_LIMIT_NEAR, Effect.TELL_LIMIT)


# GO.


@pytest.mark.parametrize(
    "state", [PAUSED, UNWATCHED, STOPPED, NEW], ids=["paused", "unwatched", "stopped", "new"]
)
def test_go_opens_a_closed_link(state: LinkState) -> None:
    decision = at(state, GoGiven(pending_out=2, pending_in=1, version=state.version))
    assert decision.refusal is None
    assert decision.state == LinkState(
        Switch.RUNNING,
        None,
        state.version + 1,
        watched_until=NOW + 5 * MINUTE,
        out_used=2,
        in_used=1,
        closed_at=None,
        seen_at=NOW,
    )
    assert set(decision.effects) == {Effect.TELL_OPENED, Effect.SEND_HELLO, Effect.CANCEL_STOP}


def test_go_on_a_running_link_renews_its_allowance_and_its_deadline_only() -> None:
    decision = at(replace(RUNNING, out_used=2, in_used=2), GoGiven(pending_out=1, pending_in=0))
    expected = replace(RUNNING, out_used=1, in_used=0, watched_until=NOW + 5 * MINUTE, seen_at=NOW)
    assert decision == Decision(expected, (Effect.TELL_OPENED,))


@pytest.mark.parametrize("used", [{"out_used": 3}, {"in_used": 3}])
def test_go_on_a_running_link_with_a_shut_gate_gives_the_peer_the_hint(used: dict[str, int]) -> None:
    decision = at(replace(RUNNING, **used), GO)  # type: ignore[arg-type]
    assert decision.effects == (Effect.TELL_OPENED, Effect.SEND_HELLO)
    assert decision.state.version == RUNNING.version


ANY_CAUSE = (PauseReason.RIVAL_POLLER,)
OBJECTIONS = [
    (REVOKED, GoGiven(0, 0, causes=ANY_CAUSE, version=1, bare=True), GoRefusal.REVOKED),
    (REVOKED, GO, GoRefusal.REVOKED),
    (NEW, GoGiven(0, 0, causes=ANY_CAUSE, version=9, bare=True), GoRefusal.CAUSE_PERSISTS),
    (RUNNING, GoGiven(0, 0, causes=ANY_CAUSE), GoRefusal.CAUSE_PERSISTS),
    (NEW, GoGiven(0, 0, version=9, bare=True), GoRefusal.OLD_VERSION),
    (PAUSED, GoGiven(0, 0, version=6), GoRefusal.OLD_VERSION),
    (PAUSED, GoGiven(0, 0, version=8), GoRefusal.OLD_VERSION),
    (NEW, GoGiven(0, 0, bare=True), GoRefusal.AWAITS_FIRST_GO),
]


@pytest.mark.parametrize(("state", "go", "refusal"), OBJECTIONS)
def test_a_go_that_is_refused_changes_nothing(state: LinkState, go: GoGiven, refusal: GoRefusal) -> None:
    assert at(state, go) == Decision(replace(state, seen_at=NOW), (), refusal)


def test_every_objection_is_reached_by_some_case() -> None:
    assert {case[2] for case in OBJECTIONS} == set(GoRefusal)


def test_a_bare_go_opens_a_link_that_had_its_first_go() -> None:
    assert at(PAUSED, GoGiven(0, 0, bare=True)).state.switch is Switch.RUNNING


def test_a_bare_go_does_not_open_a_new_link_that_somebody_stopped_meanwhile() -> None:
    stopped = at(NEW, StopGiven()).state
    assert at(stopped, GoGiven(0, 0, bare=True)).refusal is GoRefusal.AWAITS_FIRST_GO
    assert at(stopped, GO).state.switch is Switch.RUNNING


def test_a_button_made_before_the_deadline_passed_is_too_old_even_if_nobody_noticed_yet() -> None:
    late = NOW + 3 * MINUTE
    decision = at(RUNNING, GoGiven(0, 0, version=RUNNING.version), now=late)
    assert decision.refusal is GoRefusal.OLD_VERSION
    assert (decision.state.switch, decision.state.reason) == (Switch.PAUSED, PauseReason.UNWATCHED)
    assert decision.effects == (Effect.TELL_CLOSED,)


def test_a_typed_go_after_the_deadline_closes_and_opens_and_tells_the_opening_only() -> None:
    decision = at(RUNNING, GO, now=NOW + 3 * MINUTE)
    assert decision.state.switch is Switch.RUNNING
    assert decision.state.version == RUNNING.version + 2
    assert set(decision.effects) == {Effect.TELL_OPENED, Effect.SEND_HELLO, Effect.CANCEL_STOP}


# STOP, faults, revoke.


def test_stop_closes_and_goes_to_the_peer_unless_it_came_from_there() -> None:
    ours, theirs = at(RUNNING, StopGiven()), at(RUNNING, StopGiven(by_peer=True))
    assert ours.state == theirs.state
    assert ours.state == replace(RUNNING, switch=Switch.STOPPED, version=8, closed_at=NOW, seen_at=NOW)
    assert set(ours.effects) == {Effect.SEND_STOP, Effect.TELL_CLOSED}
    assert theirs.effects == (Effect.TELL_CLOSED,)


def test_stop_in_the_same_breath_as_a_passed_deadline_tells_the_closing_once() -> None:
    decision = at(RUNNING, StopGiven(), now=NOW + 3 * MINUTE)
    assert decision.state.switch is Switch.STOPPED
    assert decision.state.version == RUNNING.version + 2
    assert sorted(decision.effects) == [Effect.SEND_STOP, Effect.TELL_CLOSED]


def test_a_fault_pauses_a_running_link_and_leaves_the_first_reason_of_a_closed_one() -> None:
    fault = FaultSeen(PauseReason.KEY_CHANGED)
    paused = at(RUNNING, fault)
    assert paused.effects == (Effect.TELL_CLOSED,)
    assert paused.state == replace(
        RUNNING, switch=Switch.PAUSED, reason=PauseReason.KEY_CHANGED, version=8, closed_at=NOW, seen_at=NOW
    )
    for closed in (PAUSED, STOPPED, REVOKED):
        assert at(closed, fault) == Decision(closed)


@pytest.mark.parametrize("event", EVENTS)
def test_nothing_leaves_revoked(event: Event) -> None:
    assert at(REVOKED, event).state == REVOKED


@pytest.mark.parametrize("state", [RUNNING, PAUSED, STOPPED, NEW])
def test_revoking_ends_a_link_and_tells_the_peer_nothing(state: LinkState) -> None:
    decision = at(state, PeerRevoked())
    assert decision.state.switch is Switch.REVOKED
    assert decision.effects == (Effect.TELL_CLOSED,)


# Human activity.


@pytest.mark.parametrize(
    ("acted", "until"),
    [
        (NOW, NOW + 5 * MINUTE),
        (NOW - MINUTE, NOW + 4 * MINUTE),
        (NOW - 2 * MINUTE, NOW + 3 * MINUTE),
        (NOW - 90 * MINUTE, NOW + 3 * MINUTE),  # long ago: the deadline never moves nearer
        (NOW + 60 * MINUTE, NOW + 5 * MINUTE),  # a date from the future counts as now
    ],
)
def test_activity_counts_from_its_own_date_and_never_from_later_than_now(
    acted: datetime, until: datetime
) -> None:
    assert at(RUNNING, HumanActed(acted)) == Decision(replace(RUNNING, watched_until=until, seen_at=NOW))


@pytest.mark.parametrize("state", [PAUSED, UNWATCHED, STOPPED, REVOKED, NEW])
def test_activity_opens_nothing(state: LinkState) -> None:
    assert at(state, HumanActed(NOW)) == Decision(replace(state, seen_at=NOW))


def test_activity_that_comes_after_the_deadline_is_too_late() -> None:
    late = NOW + 3 * MINUTE
    assert at(RUNNING, HumanActed(late), now=late).state.reason is PauseReason.UNWATCHED


# Time.


@pytest.mark.parametrize("event", [OUT, IN, Ticked(), HumanActed(NOW)])
@pytest.mark.parametrize("after", [timedelta(0), SECOND, timedelta(days=30)])
def test_whatever_comes_at_or_after_the_deadline_finds_the_link_closed(
    event: Event, after: timedelta
) -> None:
    now = NOW + 3 * MINUTE + after
    decision = at(RUNNING, event, now=now)
    assert decision.state == replace(
        RUNNING, switch=Switch.PAUSED, reason=PauseReason.UNWATCHED, version=8, closed_at=now, seen_at=now
    )
    assert decision.effects == (Effect.TELL_CLOSED,)
    assert decision.refusal is (Refusal.UNWATCHED if isinstance(event, Offered) else None)


def test_just_before_the_deadline_a_message_passes() -> None:
    assert at(RUNNING, OUT, now=NOW + 3 * MINUTE - timedelta(microseconds=1)).refusal is None


def test_a_running_link_without_a_deadline_was_watched_by_nobody() -> None:
    assert at(replace(RUNNING, watched_until=None), OUT).refusal is Refusal.UNWATCHED


def test_a_clock_that_went_back_pauses_once_and_its_new_time_counts() -> None:
    back = NOW - 30 * MINUTE
    decision = at(RUNNING, OUT, now=back)
    assert (decision.refusal, decision.effects) == (Refusal.PAUSED, (Effect.TELL_CLOSED,))
    assert decision.state == replace(
        RUNNING,
        switch=Switch.PAUSED,
        reason=PauseReason.CLOCK_WENT_BACK,
        version=8,
        closed_at=back,
        seen_at=back,
    )
    opened = at(decision.state, GO, now=back + SECOND)
    assert opened.state.switch is Switch.RUNNING
    assert at(opened.state, OUT, now=back + 2 * SECOND).refusal is None


def test_a_clock_that_went_back_leaves_a_closed_link_its_first_reason() -> None:
    back = NOW - MINUTE
    assert at(PAUSED, Ticked(), now=back) == Decision(replace(PAUSED, seen_at=back))


def test_small_steps_back_are_no_fault_but_win_no_time_and_do_not_add_up() -> None:
    state = replace(RUNNING, seen_at=NOW)
    small = at(state, OUT, now=NOW - SECOND)
    assert small.refusal is None
    assert small.state.seen_at == NOW
    assert at(small.state, OUT, now=NOW - SECOND - timedelta(microseconds=1)).refusal is Refusal.PAUSED

    at_the_end = replace(RUNNING, watched_until=NOW, seen_at=NOW)
    assert at(at_the_end, OUT, now=NOW - SECOND).refusal is Refusal.UNWATCHED


def test_the_last_minute_is_told_once_whatever_event_meets_it() -> None:
    deadline = NOW + 3 * MINUTE
    state, told = RUNNING, []
    events: list[tuple[int, Event]] = [
        (119, Ticked()),
        (121, OUT),
        (122, Ticked()),
        (123, IN),
        (150, Ticked()),
    ]
    for seconds, event in events:
        decision = at(state, event, now=NOW + timedelta(seconds=seconds))
        state = decision.state
        told.append(Effect.TELL_UNWATCHED_SOON in decision.effects)
    assert told == [False, True, False, False, False]
    assert at(RUNNING, Ticked(), now=deadline - MINUTE).effects == (Effect.TELL_UNWATCHED_SOON,)
    assert at(replace(RUNNING, seen_at=None), Ticked(), now=deadline - MINUTE).effects


def test_a_new_deadline_gets_a_warning_of_its_own() -> None:
    warned = at(RUNNING, Ticked(), now=NOW + 2 * MINUTE).state
    renewed = at(warned, HumanActed(NOW + 2 * MINUTE), now=NOW + 2 * MINUTE)
    assert renewed.effects == ()
    assert at(renewed.state, Ticked(), now=NOW + 6 * MINUTE).effects == (Effect.TELL_UNWATCHED_SOON,)


@pytest.mark.parametrize("state", [PAUSED, STOPPED, REVOKED])
def test_a_closed_link_is_not_warned_about(state: LinkState) -> None:
    assert at(replace(state, watched_until=NOW + SECOND), Ticked()).effects == ()


def test_at_the_end_of_the_calendar_a_go_gives_no_time() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    opened = at(PAUSED, GO, now=end)
    assert opened.state.watched_until == end
    assert at(opened.state, OUT, now=end).refusal is Refusal.UNWATCHED


def test_a_new_link_is_closed() -> None:
    assert (NEW.switch, NEW.reason) == (Switch.PAUSED, PauseReason.AWAITING_FIRST_GO)
    assert at(NEW, OUT).refusal is Refusal.PAUSED
    assert at(NEW, IN).refusal is Refusal.PAUSED
