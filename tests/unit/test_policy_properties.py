"""What holds whatever happens: random events and clocks, judged by a count of this file's own (P2, P3)."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from governor.message import Direction, LinkDirection, PauseReason, Switch
from governor.policy.decide import decide
from governor.policy.state import (
    Decision,
    Event,
    FaultSeen,
    GoGiven,
    HumanActed,
    LinkState,
    Offered,
    PeerRevoked,
    Rules,
    StopGiven,
    Ticked,
)

UNTIMED = settings(deadline=None)  # a busy machine is no fault
CAP = 3
WATCH = timedelta(minutes=5)
RULES = Rules(cap=CAP, warn_at=2, watch_for=WATCH)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TOLERATED = timedelta(seconds=1)

# Mostly small steps forward, as life goes; jumps to and over the deadline; steps back, tolerated and not.
SMALL = [0.0, 0.4, 1.0, 5.0]
JUMPS = [20.0, 60.0, 200.0, 299.0, 299.999, 300.0, 301.0, 4000.0]
BACK = [-0.4, -0.9, -1.0, -1.001, -2.0, -30.0, -300.0, -4000.0]
SECONDS = st.sampled_from([*SMALL * 5, *JUMPS * 2, *BACK])

OFFERS = [Offered(direction, 5, hops=hops) for direction in Direction for hops in (4, 4, 4, 4, 4, 4, 0, -1)]
CLOSERS: list[Event] = [StopGiven(), StopGiven(by_peer=True), *map(FaultSeen, PauseReason), PeerRevoked()]
# Activities, by their lag behind the event's own time; negative: dated in the future.
LAGS = [timedelta(seconds=lag) for lag in (0, 1, 100, 299, 300, 5000, -100, -10000)]
SIMPLE_GOS = [
    *(GoGiven(*pending) for pending in [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (0, 2), (3, 4)]),
    GoGiven(0, 0, causes=(PauseReason.RIVAL_POLLER,)),
]
GOS = [
    *SIMPLE_GOS * 2,
    GoGiven(0, 0, bare=True),
    *(GoGiven(0, 1, version=version) for version in range(1, 6)),
]

Drawn = Event | timedelta
Step = tuple[float, Drawn, int]
"""Seconds since the one before, what happens, and how often at that moment."""


def steps(gos: list[GoGiven]) -> st.SearchStrategy[list[Step]]:
    pool: list[Drawn] = [*OFFERS * 3, *gos, *LAGS * 3, Ticked(), *CLOSERS]
    repeats = st.sampled_from([1, 1, 2, CAP + 2])
    return st.lists(st.tuples(SECONDS, st.sampled_from(pool), repeats), min_size=20, max_size=50)


def play(sequence: list[Step], *, honest: bool = False) -> list[tuple[datetime, Event, LinkState, Decision]]:
    """Run the events on a new link; `honest` holds the clock where a step back would set it back."""
    state, clock, latest, story = LinkState(), START, START, []
    for step, drawn, times in sequence:
        clock += timedelta(seconds=step)
        latest = max(latest, clock)
        now = latest if honest else clock
        event = HumanActed(clock - drawn) if isinstance(drawn, timedelta) else drawn
        for _ in range(times):
            decision = decide(state, event, RULES, now)
            story.append((now, event, state, decision))
            state = decision.state
    return story


@dataclass
class Watcher:
    """What a human with a notebook would know of a link: the last GO, what passed since, who was there."""

    open: bool = False
    ended: bool = False
    last_human: datetime = START
    latest: datetime | None = None
    used: dict[Direction, int] = field(default_factory=dict)

    def see(self, now: datetime, event: Event, decision: Decision) -> None:
        if self.latest is not None and now < self.latest - TOLERATED:
            self.open, self.latest = False, now
        self.latest = max(self.latest or now, now)
        if self.latest >= self.last_human + WATCH:
            self.open = False

        taken = decision.refusal is None
        if isinstance(event, Offered) and taken:
            self.judge_passing(now, event)
        if isinstance(event, GoGiven) and taken:
            assert not event.causes
            assert not self.ended
            self.open, self.last_human = True, now
            self.used = {Direction.OUT: event.pending_out, Direction.IN: event.pending_in}
        if isinstance(event, HumanActed) and self.open:
            self.last_human = max(self.last_human, min(event.at, now))
        if isinstance(event, StopGiven | FaultSeen | PeerRevoked):
            self.open = False
        self.ended = self.ended or isinstance(event, PeerRevoked)

    def judge_passing(self, now: datetime, event: Offered) -> None:
        assert self.open, "passed while closed"
        assert not self.ended, "passed after the end"
        assert now < self.last_human + WATCH, "passed unwatched"
        assert event.hops >= 0
        self.used[event.direction] += 1
        assert self.used[event.direction] <= CAP, "one too many between two GOs"


@UNTIMED
@given(steps(GOS))
def test_nothing_passes_that_a_watcher_would_not_let_pass(sequence: list[Step]) -> None:
    watcher = Watcher()
    for now, event, _, decision in play(sequence):
        watcher.see(now, event, decision)
        assert (decision.state.switch is Switch.RUNNING) == watcher.open
        assert (decision.state.switch is Switch.REVOKED) == watcher.ended


@UNTIMED
@given(steps(GOS))
def test_what_a_watcher_would_let_pass_does_pass(sequence: list[Step]) -> None:
    watcher = Watcher()
    for now, event, _, decision in play(sequence):
        used = dict(watcher.used)
        watcher.see(now, event, decision)
        if isinstance(event, Offered) and watcher.open and event.hops >= 0 and used[event.direction] < CAP:
            assert decision.refusal is None


@UNTIMED
@given(steps(GOS))
def test_only_a_go_opens_and_each_change_counts_one_version(sequence: list[Step]) -> None:
    for now, event, before, decision in play(sequence):
        judge_step(now, event, before, decision)


@UNTIMED
@given(steps(SIMPLE_GOS))
def test_a_clock_set_back_lets_no_more_pass_than_an_honest_one(sequence: list[Step]) -> None:
    assert all(
        crooked <= honest
        for crooked, honest in zip(
            passed_between_gos(play(sequence)), passed_between_gos(play(sequence, honest=True)), strict=True
        )
    )


def passed_between_gos(story: list[tuple[datetime, Event, LinkState, Decision]]) -> list[int]:
    """Count what passed in each direction since each GO, whether it was taken or not."""
    counts = [0, 0]
    for _, event, _, decision in story:
        if isinstance(event, GoGiven) and decision.refusal is None:
            counts += [0, 0]
        if isinstance(event, Offered) and decision.refusal is None:
            counts[-1 if event.direction is Direction.OUT else -2] += 1
    return counts


def judge_step(now: datetime, event: Event, before: LinkState, decision: Decision) -> None:
    """Judge one step from any state to the next."""
    after = decision.state
    timed_out = before.watched_until is None or now >= before.watched_until
    if before.seen_at is not None:
        timed_out = (
            timed_out or (before.watched_until or now) <= before.seen_at or before.seen_at - now > TOLERATED
        )
    was_open = before.switch is Switch.RUNNING
    closed_by_time = was_open and timed_out
    before_event = Switch.PAUSED if closed_by_time else before.switch

    if after.switch is Switch.RUNNING and before_event is not Switch.RUNNING:
        assert isinstance(event, GoGiven)
        assert decision.refusal is None
    if before.switch is Switch.REVOKED:
        assert after.switch is Switch.REVOKED
    assert after.version == before.version + closed_by_time + (after.switch is not before_event)
    if not isinstance(event, GoGiven):
        assert after.out_used - before.out_used in {0, 1}
        assert after.in_used - before.in_used in {0, 1}
    if isinstance(event, Offered):
        taken = after.out_used + after.in_used - before.out_used - before.in_used
        assert taken == (decision.refusal is None)
        assert not taken or before_event is Switch.RUNNING
    assert len(set(decision.effects)) == len(decision.effects)


# Anything at all: states no honest history leads to, rules nobody would set, any time of any year.

ANY_TIME = st.datetimes(timezones=st.just(UTC))
NEARBY = st.builds(lambda offset: START + timedelta(seconds=offset), st.floats(-400, 400))
TIMES = ANY_TIME | NEARBY
ANY_STATE = st.builds(
    LinkState,
    st.sampled_from(Switch),
    st.none() | st.sampled_from(PauseReason),
    st.integers(1, 9),
    st.none() | TIMES,
    st.integers(0, 60),
    st.integers(0, 60),
    st.none() | TIMES,
    st.none() | TIMES,
)
ANY_RULES = st.builds(
    Rules,
    st.integers(0, 60),
    st.integers(0, 60),
    st.timedeltas(),
    st.timedeltas(),
    st.integers(),
    st.sampled_from(LinkDirection),
)
ANY_EVENT = st.one_of(
    st.builds(
        Offered,
        st.sampled_from(Direction),
        st.integers(),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.integers(),
        st.booleans(),
    ),
    st.builds(
        GoGiven,
        st.integers(0, 60),
        st.integers(0, 60),
        st.lists(st.sampled_from(PauseReason), max_size=2).map(tuple),
        st.none() | st.integers(1, 9),
        st.booleans(),
    ),
    st.builds(HumanActed, TIMES),
    st.builds(StopGiven, st.booleans()),
    st.builds(FaultSeen, st.sampled_from(PauseReason)),
    st.builds(Ticked),
    st.builds(PeerRevoked),
)


@UNTIMED
@given(ANY_STATE, ANY_EVENT, ANY_RULES, TIMES)
def test_any_event_on_any_state_gets_an_answer_that_keeps_the_promises(
    state: LinkState, event: Event, rules: Rules, now: datetime
) -> None:
    decision = decide(state, event, rules, now)
    assert decision == decide(state, event, rules, now)
    judge_step(now, event, state, decision)
    if not isinstance(event, Offered | GoGiven):
        assert decision.refusal is None


@UNTIMED
@given(ANY_STATE, ANY_EVENT, TIMES)
def test_an_event_after_a_tick_at_the_same_time_is_answered_as_without_it(
    state: LinkState, event: Event, now: datetime
) -> None:
    ticked = decide(state, Ticked(), RULES, now).state
    alone, after = decide(state, event, RULES, now), decide(ticked, event, RULES, now)
    assert after.state == alone.state
    assert after.refusal == alone.refusal


def test_a_new_link_is_closed() -> None:
    new = LinkState()
    assert (new.switch, new.reason) == (Switch.PAUSED, PauseReason.AWAITING_FIRST_GO)
    assert decide(new, Offered(Direction.OUT, 5), RULES, START) == Decision(
        replace(new, seen_at=START), refusal=decide(new, Offered(Direction.IN, 5), RULES, START).refusal
    )
