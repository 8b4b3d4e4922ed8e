"""The two life tables, row by row, against the specification written out here a second time."""

from collections.abc import Iterable
from itertools import product

import pytest

from governor.message import InboundState, OutboundState
from governor.policy.lives import (
    INBOUND,
    INBOUND_FINAL,
    INBOUND_OPEN,
    INBOUND_STARTS,
    OUTBOUND,
    OUTBOUND_FINAL,
    OUTBOUND_LEFT,
    OUTBOUND_OPEN,
    OUTBOUND_STARTS,
    InboundEvent,
    OutboundEvent,
    next_inbound,
    next_outbound,
)

NOTHING = None
# event, then what follows for: queued, queued of which bytes left, held, sending
OUTBOUND_ROWS = (
    ("submitted", NOTHING, NOTHING, NOTHING, NOTHING),
    ("held_for_review", NOTHING, NOTHING, NOTHING, NOTHING),
    ("released", NOTHING, NOTHING, "queued", NOTHING),
    ("picked", "sending", "sending", NOTHING, NOTHING),
    ("receipt_came", NOTHING, NOTHING, NOTHING, "accepted"),
    ("closed_at_peer", NOTHING, NOTHING, NOTHING, "queued"),
    ("transport_failed", NOTHING, NOTHING, NOTHING, "queued"),
    ("not_authenticated", NOTHING, NOTHING, NOTHING, "queued"),
    ("not_authenticated_again", NOTHING, NOTHING, NOTHING, "refused"),
    ("refused_by_peer", NOTHING, NOTHING, NOTHING, "refused"),
    ("expired", "expired", "unconfirmed", "expired", "unconfirmed"),
    ("cancelled", "cancelled", "unconfirmed", "cancelled", "unconfirmed"),
    ("revoked", "cancelled", "unconfirmed", "cancelled", "unconfirmed"),
    ("restarted", NOTHING, NOTHING, NOTHING, "queued"),
)
# event, then what follows for: received, reading, held, ready
INBOUND_ROWS = (
    ("accepted", NOTHING, NOTHING, NOTHING, NOTHING),
    ("picked", "reading", NOTHING, NOTHING, NOTHING),
    ("read", NOTHING, "ready", NOTHING, NOTHING),
    ("held_for_review", NOTHING, "held", NOTHING, NOTHING),
    ("released", NOTHING, NOTHING, "ready", NOTHING),
    ("dropped", NOTHING, "dropped", "dropped", NOTHING),
    ("expired", "expired", "expired", "expired", "expired"),
    ("cancelled", "cancelled", "cancelled", "cancelled", "ready"),
    ("revoked", "dropped", "dropped", "dropped", "dropped"),
    ("restarted_first", NOTHING, "received", NOTHING, NOTHING),
    ("restarted_again", NOTHING, "dropped", NOTHING, NOTHING),
    ("acked", NOTHING, NOTHING, NOTHING, "acked"),
)


@pytest.mark.parametrize(("event", "queued", "queued_left", "held", "sending"), OUTBOUND_ROWS)
def test_each_outbound_row_is_the_specifications(
    event: str, queued: str | None, queued_left: str | None, held: str | None, sending: str | None
) -> None:
    what = OutboundEvent(event)
    assert next_outbound(OutboundState.QUEUED, what, left=False) == queued
    assert next_outbound(OutboundState.QUEUED, what, left=True) == queued_left
    for left in (False, True):
        assert next_outbound(OutboundState.HELD, what, left=left) == held
        assert next_outbound(OutboundState.SENDING, what, left=left) == sending


@pytest.mark.parametrize(("event", "received", "reading", "held", "ready"), INBOUND_ROWS)
def test_each_inbound_row_is_the_specifications(
    event: str, received: str | None, reading: str | None, held: str | None, ready: str | None
) -> None:
    what = InboundEvent(event)
    assert next_inbound(InboundState.RECEIVED, what) == received
    assert next_inbound(InboundState.READING, what) == reading
    assert next_inbound(InboundState.HELD, what) == held
    assert next_inbound(InboundState.READY, what) == ready


def test_the_rows_above_are_all_the_events_there_are() -> None:
    assert [row[0] for row in OUTBOUND_ROWS] == [event.value for event in OutboundEvent]
    assert [row[0] for row in INBOUND_ROWS] == [event.value for event in InboundEvent]


def test_a_message_of_ours_begins_queued_or_held_and_a_peers_begins_received() -> None:
    assert dict(OUTBOUND_STARTS) == {"submitted": "queued", "held_for_review": "held"}
    assert dict(INBOUND_STARTS) == {"accepted": "received"}


def test_an_end_is_an_end_but_the_peers_word_settles_what_was_unconfirmed() -> None:
    settled = {
        (state, event, left): after
        for state, event, left in product(OUTBOUND_FINAL, OutboundEvent, (False, True))
        if (after := next_outbound(state, event, left=left))
    }
    assert settled == {
        ("unconfirmed", "receipt_came", False): "accepted",
        ("unconfirmed", "receipt_came", True): "accepted",
        ("unconfirmed", "refused_by_peer", False): "refused",
        ("unconfirmed", "refused_by_peer", True): "refused",
    }
    assert not any(next_inbound(state, event) for state, event in product(INBOUND_FINAL, InboundEvent))


def test_open_and_final_states_share_out_all_states() -> None:
    assert {"queued", "held", "sending"} == OUTBOUND_OPEN
    assert {"received", "reading", "held", "ready"} == INBOUND_OPEN
    assert frozenset(OutboundState) - OUTBOUND_OPEN == OUTBOUND_FINAL
    assert frozenset(InboundState) - INBOUND_OPEN == INBOUND_FINAL


def test_every_state_can_be_reached_and_every_open_one_can_end() -> None:
    outbound = [(before, after) for (before, _), after in {**OUTBOUND, **OUTBOUND_LEFT}.items()]
    inbound = [(before, after) for (before, _), after in INBOUND.items()]
    assert _reached(OUTBOUND_STARTS.values(), outbound) == set(OutboundState)
    assert _reached(INBOUND_STARTS.values(), inbound) == set(InboundState)
    for state in OUTBOUND_OPEN:
        assert _reached([state], outbound) & OUTBOUND_FINAL
    for other in INBOUND_OPEN:
        assert _reached([other], inbound) & INBOUND_FINAL


def test_only_a_held_message_is_released() -> None:
    for state in set(OutboundState) - {OutboundState.HELD}:
        assert next_outbound(state, OutboundEvent.RELEASED, left=False) is None
    for other in set(InboundState) - {InboundState.HELD}:
        assert next_inbound(other, InboundEvent.RELEASED) is None


def test_nothing_becomes_ready_but_what_was_read_and_passed_or_was_released() -> None:
    ways = {key for key, after in INBOUND.items() if after is InboundState.READY and key[0] is not after}
    assert ways == {("reading", "read"), ("held", "released")}


def _reached(starts: Iterable[str], steps: Iterable[tuple[str, str]]) -> set[str]:
    reached = set(starts)
    for _ in range(len(OutboundState)):
        reached |= {after for before, after in steps if before in reached}
    return reached
