"""The cap, the five minutes, and what a restart, a sleep or another clock make of them (P2)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from governor_pair import BEGINNING, GovernorPair

from governor.directory import agents
from governor.errors import RefusedError
from governor.message import PauseReason, Switch
from governor.supervision.switching import note_activity

Make = Callable[..., GovernorPair]


@pytest.fixture
def small(make_pair: Make) -> GovernorPair:
    """A pair that lets five messages a direction through, warned of at the fourth."""
    pair = make_pair(limits={"messages": 5, "warn_at": 4})
    pair.go()
    return pair


def refused(pair: GovernorPair, text: str = "v1.0.0") -> str:
    with pytest.raises(RefusedError) as error:
        pair.max.send("eva", text)
    return error.value.reason


async def test_the_sixth_message_out_is_refused(small: GovernorPair) -> None:
    for number in range(5):
        small.max.send("eva", f"v1.0.{number}")
    assert refused(small) == "limit"
    assert small.max.link("eva-host").switch == Switch.RUNNING  # a gate for one direction, not a pause
    await small.settle()
    assert len(small.eva.inbox()) == 5
    small.eva.send("max", "the other way is open: v2.0.0")
    assert small.max.link("eva-host").out_used == 5


async def test_the_sixth_message_in_waits_at_its_sender_for_a_go(make_pair: Make) -> None:
    pair = make_pair()
    pair.eva.restart(limits={"messages": 5, "warn_at": 4})
    pair.go()
    for number in range(6):
        pair.max.send("eva", f"v1.0.{number}")
    await pair.settle()
    (sixth,) = [row for row in pair.max.messages() if row.state != "accepted"]
    assert (sixth.state, sixth.error) == ("queued", "peer_closed")
    assert len(pair.eva.inbox()) == 5
    for _ in range(6):  # it goes on trying, and no try is the last one
        pair.pass_time(seconds=31)
        await pair.settle()
    assert pair.max.message(sixth.id).state == "queued"
    assert pair.eva.link("max-host").in_used == 5

    pair.eva.go("max-host")
    await pair.settle()
    assert pair.max.message(sixth.id).state == "accepted"


async def test_after_go_the_unfinished_keep_their_place(small: GovernorPair) -> None:
    small.max.wire.cut = True
    small.max.send("eva", "v1.0.0")
    small.max.send("eva", "v1.0.1")
    small.eva.send("max", "v3.0.0")
    small.eva.send("max", "v3.0.1")
    await small.settle()
    link = small.max.link("eva-host")
    assert (link.out_used, link.in_used) == (2, 2)
    small.max.go("eva-host")
    link = small.max.link("eva-host")
    assert (link.out_used, link.in_used) == (2, 2)

    small.max.inbox()  # what was shown is finished, acknowledged or not
    small.max.go("eva-host")
    link = small.max.link("eva-host")
    assert (link.out_used, link.in_used) == (2, 0)


async def test_what_expired_keeps_no_place_even_before_a_tick(small: GovernorPair) -> None:
    small.max.wire.cut = True
    small.max.send("eva", "v1.0.0")
    small.clock.advance(minutes=11)
    small.max.go("eva-host")
    assert small.max.link("eva-host").out_used == 0


async def test_operators_are_warned_once_near_the_limit_and_once_at_it(small: GovernorPair) -> None:
    for number in range(5):
        small.max.send("eva", f"v1.0.{number}")
        warnings = [notice for notice in small.max.notices() if "gives a new allowance" in notice]
        assert len(warnings) == (1 if number >= 3 else 0)
    refused(small)
    assert len([notice for notice in small.max.notices() if "limit of 5 is used up" in notice]) == 1


async def test_no_refund_for_what_was_refused_or_expired(small: GovernorPair) -> None:
    small.max.wire.cut = True
    small.max.send("eva", "v1.0.0", conversation="c_1")
    await small.settle()
    for _ in range(3):
        small.pass_time(minutes=4)
    small.max.tick()
    (expired,) = small.max.messages()
    assert expired.state == "expired"
    assert small.max.link("eva-host").out_used == 1

    small.max.wire.cut = False
    with pytest.raises(RefusedError):
        small.max.send("eva", "token bgt_" + "Ab1" * 14 + "x")  # refused here: it never counted
    assert small.max.link("eva-host").out_used == 1
    small.max.go("eva-host")
    small.eva.go("max-host")
    with small.eva.store.begin() as uow:
        agents.remove(uow, "eva", small.clock.now())
    taken = small.max.send("eva", "v1.0.1")
    await small.settle()
    assert small.max.message(taken.id).state == "refused"  # 422: no such agent
    assert small.max.link("eva-host").out_used == 1  # counted when taken, never given back
    assert small.eva.link("max-host").in_used == 0


async def test_retries_and_known_ids_do_not_count(small: GovernorPair) -> None:
    small.max.wire.deaf = True
    sent = small.max.send("eva", "v1.0.0")
    for _ in range(3):
        await small.settle()
        small.clock.advance(seconds=40)
    assert len(small.max.wire.seen) >= 3
    assert small.max.message(sent.id).state == "queued"
    assert small.max.link("eva-host").out_used == 1
    assert small.eva.link("max-host").in_used == 1
    assert len(small.eva.audit("message_received")) == 1


async def test_nothing_passes_five_minutes_after_the_last_activity_without_any_tick(
    pair: GovernorPair,
) -> None:
    pair.go()
    waiting = pair.max.send("eva", "v1.0.0")
    await pair.settle()  # ready at eva's, not shown
    pair.max.wire.cut = True
    queued = pair.max.send("eva", "v1.0.1")
    await pair.settle()
    pair.max.wire.cut = False

    pair.clock.advance(minutes=4, seconds=59)
    assert pair.eva.waiting() == 1
    pair.clock.advance(seconds=1)  # the deadline itself
    assert pair.eva.waiting() == 0
    assert pair.eva.inbox() == []
    assert refused(pair) == "unwatched"
    seen = len(pair.max.wire.seen)
    await pair.settle()
    assert len(pair.max.wire.seen) == seen
    assert pair.max.message(queued.id).state == "queued"
    assert pair.eva.message(waiting.id).shown_at is None


async def test_a_peer_meets_423_at_the_deadline(pair: GovernorPair) -> None:
    pair.go()
    pair.clock.advance(minutes=4)
    pair.max.go("eva-host")
    pair.clock.advance(minutes=1)
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).error == "peer_closed"
    assert pair.eva.messages() == []
    assert pair.eva.link("max-host").reason == PauseReason.UNWATCHED  # noticed by the webhook itself


async def test_received_but_unread_waits_at_the_deadline(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    pair.clock.advance(minutes=5)
    assert await pair.read() == 0
    assert pair.eva.message(sent.id).state == "received"


async def test_operators_are_warned_once_in_the_last_minute(pair: GovernorPair) -> None:
    pair.go()
    for _ in range(299):
        pair.clock.advance(seconds=1)
        pair.max.tick()
        soon = [notice for notice in pair.max.notices() if "pauses in a minute" in notice]
        assert len(soon) == (1 if pair.clock.now() >= BEGINNING + timedelta(minutes=4) else 0)


async def test_activity_extends_an_open_link_and_opens_no_closed_one(pair: GovernorPair) -> None:
    pair.go()
    pair.clock.advance(minutes=4)
    note_activity(pair.max.store, pair.max.host, "tester", pair.clock.now())
    pair.clock.advance(minutes=4, seconds=59)
    pair.max.send("eva", "v1.0.0")

    pair.max.stop("eva-host")
    note_activity(pair.max.store, pair.max.host, "tester", pair.clock.now())
    assert pair.max.link("eva-host").switch == Switch.STOPPED
    pair.clock.advance(minutes=6)
    pair.eva.tick()
    note_activity(pair.eva.store, pair.eva.host, "tester", pair.clock.now())
    assert pair.eva.link("max-host").switch == Switch.PAUSED
    assert len(pair.eva.audit("human_acted")) == 1  # recorded all the same


async def test_activity_counts_from_its_own_date_and_never_from_the_future(pair: GovernorPair) -> None:
    pair.go()
    note_activity(pair.max.store, pair.max.host, "tester", pair.clock.now() + timedelta(hours=1))
    pair.clock.advance(minutes=4)
    note_activity(pair.max.store, pair.max.host, "tester", pair.clock.now() - timedelta(minutes=2))
    pair.clock.advance(minutes=3)
    assert refused(pair) == "unwatched"


async def test_a_sleep_pauses(pair: GovernorPair) -> None:
    pair.go()
    pair.clock.advance(seconds=1)
    pair.max.tick()
    pair.clock.sleep(seconds=31)
    pair.max.tick()
    assert pair.max.link("eva-host").reason == PauseReason.SLEPT
    assert refused(pair) == "paused"


async def test_a_clock_that_goes_back_pauses(pair: GovernorPair) -> None:
    pair.go()
    pair.clock.advance(seconds=30)
    pair.max.tick()
    pair.clock.sleep(seconds=-10)
    assert refused(pair) == "paused"
    assert pair.max.link("eva-host").reason == PauseReason.CLOCK_WENT_BACK


async def test_a_restart_keeps_counters_and_an_open_link_open(small: GovernorPair) -> None:
    small.max.send("eva", "v1.0.0")
    small.max.restart()
    link = small.max.link("eva-host")
    assert (link.switch, link.out_used) == (Switch.RUNNING, 1)
    for number in range(4):
        small.max.send("eva", f"v1.1.{number}")
    small.max.restart()
    assert refused(small) == "limit"


async def test_a_restart_keeps_what_is_closed(pair: GovernorPair) -> None:
    pair.max.restart()
    assert pair.max.link("eva-host").reason == PauseReason.AWAITING_FIRST_GO
    pair.go()
    pair.max.stop("eva-host")
    pair.max.restart()
    assert pair.max.link("eva-host").switch == Switch.STOPPED

    pair.clock.advance(minutes=5)  # eva's governor was down while the time ran out
    pair.eva.restart()
    assert pair.eva.link("max-host").reason == PauseReason.UNWATCHED


async def test_a_restart_with_the_clock_set_back_pauses(pair: GovernorPair) -> None:
    pair.go()
    pair.clock.advance(seconds=60)
    pair.max.tick()
    pair.clock.sleep(seconds=-30)
    pair.max.restart()
    assert pair.max.link("eva-host").reason == PauseReason.CLOCK_WENT_BACK
