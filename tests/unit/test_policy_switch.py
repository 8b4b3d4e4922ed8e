"""The switch's table, row by row, against the specification written out here a second time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from governor.message import PauseReason, Switch
from governor.policy.state import Effect, LinkState
from governor.policy.switch import SWITCH, SwitchEvent, turn

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
UNTIL = NOW + timedelta(minutes=5)
EARLIER = NOW - timedelta(minutes=1)

STATES = {
    "running": LinkState(Switch.RUNNING, None, 7, watched_until=NOW),
    "paused": LinkState(Switch.PAUSED, PauseReason.SLEPT, 7, watched_until=NOW, closed_at=EARLIER),
    "stopped": LinkState(Switch.STOPPED, None, 7, watched_until=NOW, closed_at=EARLIER),
    "revoked": LinkState(Switch.REVOKED, None, 7, watched_until=NOW, closed_at=EARLIER),
}

KEEPS = None
# event, then what becomes of: running, paused, stopped, revoked
ROWS = (
    ("go_given", KEEPS, "running", "running", KEEPS),
    ("go_refused", KEEPS, KEEPS, KEEPS, KEEPS),
    ("human_acted", KEEPS, KEEPS, KEEPS, KEEPS),
    ("stop_given", "stopped", "stopped", KEEPS, KEEPS),
    ("peer_stopped", "stopped", "stopped", KEEPS, KEEPS),
    ("supervision_lost", "paused", KEEPS, KEEPS, KEEPS),
    ("ticked", KEEPS, KEEPS, KEEPS, KEEPS),
    ("peer_revoked", "revoked", "revoked", "revoked", KEEPS),
)
CELLS = [(row[0], state, to) for row in ROWS for state, to in zip(STATES, row[1:], strict=True)]

EFFECTS = {
    ("go_given", "running"): {Effect.TELL_OPENED},
    ("go_given", "paused"): {Effect.TELL_OPENED, Effect.SEND_HELLO, Effect.CANCEL_STOP},
    ("go_given", "stopped"): {Effect.TELL_OPENED, Effect.SEND_HELLO, Effect.CANCEL_STOP},
    ("stop_given", "running"): {Effect.SEND_STOP, Effect.TELL_CLOSED},
    ("stop_given", "paused"): {Effect.SEND_STOP, Effect.TELL_CLOSED},
    ("peer_stopped", "running"): {Effect.TELL_CLOSED},
    ("peer_stopped", "paused"): {Effect.TELL_CLOSED},
    ("supervision_lost", "running"): {Effect.TELL_CLOSED},
    ("peer_revoked", "running"): {Effect.TELL_CLOSED},
    ("peer_revoked", "paused"): {Effect.TELL_CLOSED},
    ("peer_revoked", "stopped"): {Effect.TELL_CLOSED},
}
DEADLINE_ANEW = {
    ("go_given", "running"),
    ("go_given", "paused"),
    ("go_given", "stopped"),
    ("human_acted", "running"),
}
REASONS = {"running": None, "paused": PauseReason.UNSEEN}


@pytest.mark.parametrize(("event", "before", "after"), CELLS)
def test_each_cell_does_what_the_specification_says(event: str, before: str, after: str | None) -> None:
    state = STATES[before]
    decision = turn(state, SwitchEvent(event), NOW, reason=PauseReason.UNSEEN, until=UNTIL)

    expected = state
    if after is not None:
        expected = replace(
            expected,
            switch=Switch(after),
            version=8,
            reason=REASONS.get(after, state.reason),
            closed_at=None if after == "running" else NOW,
        )
    if (event, before) in DEADLINE_ANEW:
        expected = replace(expected, watched_until=UNTIL)
    assert decision.state == expected
    assert decision.refusal is None
    assert set(decision.effects) == EFFECTS.get((event, before), set())
    assert len(decision.effects) == len(set(decision.effects))


def test_the_table_answers_every_event_in_every_state() -> None:
    assert {event.value for event in SWITCH} == {row[0] for row in ROWS} == {e.value for e in SwitchEvent}
    assert all(set(row) == set(Switch) for row in SWITCH.values())


def test_a_link_stopped_before_its_first_go_still_knows_that_it_awaits_one() -> None:
    stopped = turn(LinkState(), SwitchEvent.STOP_GIVEN, NOW).state
    assert stopped.switch is Switch.STOPPED
    assert stopped.reason is PauseReason.AWAITING_FIRST_GO
