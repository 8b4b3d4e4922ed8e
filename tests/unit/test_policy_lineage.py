"""Hops and lineage: what costs a hop, what is inherited, and that every storm ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governor.message import HOPS
from governor.policy.lineage import (
    THROUGH_LIMIT,
    Lineage,
    clamp,
    fresh,
    inherit,
    of_reply,
    received,
)

UNTIMED = settings(deadline=None)  # a busy machine is no fault
A, B, C, D = "a@a-host", "b@b-host", "c@c-host", "d@d-host"
CROWD = tuple(f"agent-{number}@host-{number}" for number in range(40))


@pytest.mark.parametrize(
    ("said", "counts"), [(-(10**9), 0), (-1, 0), (0, 0), (3, 3), (4, 4), (5, 4), (10**9, 4)]
)
def test_a_peers_figure_is_clamped(said: int, counts: int) -> None:
    assert clamp(said) == counts


def test_what_was_not_read_elsewhere_begins_afresh() -> None:
    assert inherit([], A, B) == fresh(A) == Lineage(HOPS, (A,))


def test_passing_on_to_somebody_new_costs_nothing_but_is_remembered() -> None:
    assert inherit([Lineage(4, (A,))], B, C) == Lineage(4, (A, B))


def test_passing_on_to_somebody_the_content_was_with_costs_a_hop() -> None:
    assert inherit([Lineage(4, (A, B))], C, A) == Lineage(3, (A, B, C))
    assert inherit([Lineage(0, (A, B))], C, A) == Lineage(-1, (A, B, C))


def test_all_that_was_read_counts_in_order_with_the_fewest_hops() -> None:
    read = [Lineage(4, (A, B)), Lineage(2, (B, D))]
    assert inherit(read, C, "e@e-host") == Lineage(2, (A, B, D, C))
    assert inherit(read, C, D) == Lineage(1, (A, B, D, C))


def test_a_reply_costs_nothing_and_remembers_who_replied() -> None:
    assert of_reply(Lineage(2, (A, C)), B) == Lineage(2, (A, C, B))
    assert of_reply(Lineage(2, (A, B, C)), A) == Lineage(2, (B, C, A))


def test_a_peers_lineage_is_bounded_and_ends_with_who_the_credential_names() -> None:
    assert received(99, (), B) == Lineage(4, (B,))
    assert received(-1, (B, A), B) == Lineage(0, (A, B))
    many = received(4, CROWD, A)
    assert many.through == (*CROWD[-15:], A)


def test_a_full_lineage_may_have_lost_a_name_so_everybody_counts_as_visited() -> None:
    nearly = Lineage(4, CROWD[: THROUGH_LIMIT - 1])
    assert inherit([nearly], A, B).hops == 4
    full = Lineage(4, CROWD[:THROUGH_LIMIT])
    assert inherit([full], A, B).hops == 3
    halves = [Lineage(4, CROWD[:10]), Lineage(4, CROWD[10:20])]
    assert inherit(halves, A, B).hops == 3


@pytest.mark.parametrize("ring", [CROWD[:2], CROWD[:3], CROWD[:15], CROWD[:17], CROWD])
def test_a_ring_of_forwards_ends(ring: tuple[str, ...]) -> None:
    read: list[Lineage] = []
    for sends in range(LONGEST + 1):
        sender, recipient = ring[sends % len(ring)], ring[(sends + 1) % len(ring)]
        sent = inherit(read, sender, recipient)
        if sent.hops < 0:
            assert sends > HOPS
            return
        read = [received(sent.hops, sent.through, sender)]
    pytest.fail("a ring of forwards went on for ever")


# Before a lineage is full each send either adds a name or costs a hop, and one send after each
# forward may add none; full, each send costs a hop.
LONGEST = THROUGH_LIMIT + 2 * HOPS


LINEAGES = st.builds(
    Lineage, st.integers(0, HOPS), st.lists(st.sampled_from(CROWD), min_size=1, max_size=20).map(tuple)
)


@UNTIMED
@given(st.data(), st.integers(2, len(CROWD)))
def test_no_storm_of_forwards_outlives_its_bound(data: st.DataObject, agents: int) -> None:
    crowd = CROWD[:agents]
    holder, sent = crowd[0], fresh(D)
    for _ in range(LONGEST):
        # Whoever got it passes it on to anybody, having read other things as well.
        others = data.draw(st.lists(LINEAGES, max_size=2))
        recipient = data.draw(st.sampled_from([name for name in crowd if name != holder]))
        sent = inherit([*others, sent], holder, recipient)
        if sent.hops < 0:
            return
        sent = received(sent.hops, sent.through, holder)
        holder = recipient
    pytest.fail("a storm went on for ever")


@UNTIMED
@given(st.lists(LINEAGES, max_size=5), st.sampled_from(CROWD), st.sampled_from(CROWD))
def test_whatever_was_read_the_result_is_bounded_names_the_sender_last_and_gains_no_hops(
    read: list[Lineage], sender: str, recipient: str
) -> None:
    result = inherit(read, sender, recipient)
    assert result.hops <= min((lineage.hops for lineage in read), default=HOPS)
    assert result.through[-1] == sender
    assert len(set(result.through)) == len(result.through) <= THROUGH_LIMIT
    names = {name for lineage in read for name in lineage.through}
    if recipient in names:
        assert result.hops == min(lineage.hops for lineage in read) - 1
