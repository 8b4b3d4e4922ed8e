"""STOP in the middle of everything: what is under way finishes, nothing new passes, GO goes on in order (P2, P3)."""

import asyncio
from collections.abc import Callable

import pytest
from governor_pair import GovernorPair, until

from governor.errors import LocalError, NotYoursError
from governor.message import InboundState, OutboundState, Switch
from governor.store.tables import ControlWebhook, Peer


def one_conversation(pair: GovernorPair, count: int) -> list[str]:
    return [pair.max.send("eva", f"v1.0.{number}", conversation="c_1").id for number in range(count)]


async def test_queued_messages_wait_and_go_on_in_order(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.cut = True
    sent = one_conversation(pair, 3)
    await pair.settle()
    pair.max.wire.cut = False
    pair.max.stop("eva-host")
    await pair.settle()  # the stop leaves, the messages do not
    pair.clock.advance(seconds=60)
    await pair.settle()
    assert [pair.max.message(each).state for each in sent] == ["queued"] * 3
    assert pair.eva.messages() == []
    assert pair.eva.link("max-host").switch == Switch.STOPPED

    pair.go()
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == sent


async def test_a_request_under_way_finishes_and_counts(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    sent = one_conversation(pair, 2)
    pair.max.wire.under_way = lambda: pair.max.stop("eva-host")
    await pair.max.sender.start_due()
    await pair.max.sender.drain()
    assert pair.max.message(sent[0]).state == OutboundState.ACCEPTED
    assert pair.max.message(sent[0]).receipt
    await pair.max.sender.start_due()
    await pair.max.sender.drain()
    assert pair.max.message(sent[1]).state == OutboundState.QUEUED


async def test_a_request_that_fails_under_a_stop_is_not_retried(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    (sent,) = one_conversation(pair, 1)
    pair.max.wire.deaf = True
    pair.max.wire.under_way = lambda: pair.max.stop("eva-host")
    await pair.settle()
    pair.clock.advance(seconds=40)
    await pair.settle()
    assert pair.max.message(sent).state == OutboundState.QUEUED
    messages = [headers for headers, _body in pair.max.wire.seen if headers["webhook-id"] == sent]
    assert len(messages) == 1


async def test_a_picked_message_does_not_leave_once_stop_is_committed(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    (sent,) = one_conversation(pair, 1)
    started = await pair.max.sender.start_due()  # picked, its request not begun: no task has run yet
    pair.max.stop("eva-host")
    await pair.max.sender.drain()
    assert started > 0
    row = pair.max.message(sent)
    assert (row.state, row.error, row.left) == (OutboundState.QUEUED, "closed_here", False)
    assert sent not in [headers["webhook-id"] for headers, _body in pair.max.wire.seen]
    pair.go()
    pair.clock.advance(seconds=2)
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [sent]


async def test_what_was_received_waits_unread(pair: GovernorPair) -> None:
    pair.go()
    sent = one_conversation(pair, 3)
    for _ in sent:
        await pair.deliver()
    pair.eva.stop("max-host")
    assert await pair.read() == 0
    assert {pair.eva.message(each).state for each in sent} == {InboundState.RECEIVED}
    pair.go()
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == sent


async def test_a_read_under_way_finishes_and_stays_hidden(pair: GovernorPair) -> None:
    pair.go()
    (sent,) = one_conversation(pair, 1)
    await pair.deliver()
    assert await pair.eva.reader.start_due() == 1
    pair.eva.stop("max-host")
    await pair.eva.reader.drain()
    assert pair.eva.message(sent).state == InboundState.READY
    assert pair.eva.waiting() == 0
    assert pair.eva.inbox() == []
    pair.go()
    assert [item.id for item in pair.eva.inbox()] == [sent]


async def test_what_is_ready_is_hidden_from_every_question_of_its_agent(pair: GovernorPair) -> None:
    pair.go()
    (sent,) = one_conversation(pair, 1)
    await pair.settle()
    pair.eva.stop("max-host")
    assert (await pair.eva.ask("GET", "/v1/inbox")).json() == {"messages": []}
    assert (await pair.eva.ask("GET", "/v1/waiting")).json() == {"waiting": 0}
    assert (await pair.eva.ask("GET", f"/v1/messages/{sent}")).status_code == 404
    assert (await pair.eva.ask("POST", f"/v1/inbox/{sent}/ack")).status_code == 404
    assert pair.eva.message(sent).shown_at is None


async def test_go_within_hold_for_shows_in_order(pair: GovernorPair) -> None:
    pair.go()
    sent = one_conversation(pair, 3)
    await pair.settle()
    pair.eva.stop("max-host")
    pair.clock.advance(minutes=9, seconds=59)
    pair.eva.go("max-host")
    assert [item.id for item in pair.eva.inbox()] == sent


async def test_after_eleven_minutes_both_sides_have_let_go(pair: GovernorPair) -> None:
    pair.go()
    read = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    unread = pair.max.send("eva", "v1.0.1")
    await pair.deliver()
    pair.max.wire.cut = True
    unsent = pair.max.send("eva", "v1.0.2")
    await pair.settle()
    pair.max.stop("eva-host")
    pair.eva.stop("max-host")
    pair.clock.advance(minutes=11)
    for one in pair.all:
        one.tick()
    pair.go()
    await pair.settle()
    assert pair.eva.inbox() == []
    assert pair.eva.message(read.id).state == InboundState.EXPIRED
    assert pair.eva.message(unread.id).state == InboundState.EXPIRED
    assert pair.max.message(unsent.id).state == OutboundState.EXPIRED
    assert pair.eva.link("max-host").in_used == 0


async def test_a_go_that_comes_before_any_tick_lets_go_as_well(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.clock.advance(minutes=11)  # eva's governor was down: nobody noted that the link closed
    pair.eva.go("max-host")
    assert pair.eva.inbox() == []
    assert pair.eva.message(sent.id).state == InboundState.EXPIRED


async def test_what_was_shown_before_the_stop_is_not_taken_away_by_go(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert len(pair.eva.inbox()) == 1
    pair.eva.stop("max-host")
    pair.clock.advance(minutes=11)
    pair.eva.go("max-host")
    (item,) = pair.eva.inbox()
    assert (item.id, item.shown_before) == (sent.id, True)


async def test_stop_is_honoured_before_a_backlog_of_200(make_pair: Callable[..., GovernorPair]) -> None:
    pair = make_pair(limits={"messages": 500, "warn_at": 500})
    pair.go()
    await pair.settle()
    for number in range(200):
        pair.max.send("eva", f"v1.0.{number}")
    pair.max.stop("eva-host")
    await pair.settle()
    sent = [body for _headers, body in pair.max.wire.seen]
    assert not any(b'"type":"message"' in body for body in sent)
    assert any(b'"type":"stop"' in body for body in sent)
    assert {row.state for row in pair.max.messages()} == {OutboundState.QUEUED}


async def test_the_stop_webhook_waits_for_no_message_under_way(pair: GovernorPair) -> None:
    pair.third()
    pair.go()
    await pair.settle()
    blocked, release = asyncio.Event(), asyncio.Event()

    async def slow(body: bytes) -> None:
        if b'"type":"message"' in body:
            blocked.set()
            await release.wait()

    pair.max.wire.before = slow
    for number in range(40):
        pair.max.send("eva", f"v1.0.{number}")
        pair.max.send("zoe", f"v1.0.{number}")
    await pair.max.sender.start_due()
    async with asyncio.timeout(10):
        await blocked.wait()
    pair.max.stop()
    assert await pair.max.sender.start_due() == 2  # two stops, although the client is full of messages
    await until(
        lambda: {row.state for row in pair.max.rows(ControlWebhook) if row.type == "stop"} == {"done"}
    )
    assert pair.eva.link("max-host").switch == Switch.STOPPED
    release.set()
    await pair.max.sender.drain()


async def test_a_slow_peer_keeps_no_other_waiting(pair: GovernorPair) -> None:
    zoe = pair.third()
    pair.go()
    for number in range(40):
        pair.max.send("eva", f"v1.0.{number}")
    pair.max.send("zoe", "v9.0.0")
    await pair.max.sender.start_due()
    await pair.max.sender.drain()
    await pair.read()
    assert len(zoe.inbox()) == 1


async def test_stop_of_one_link_leaves_another_alone(pair: GovernorPair) -> None:
    zoe = pair.third()
    pair.go()
    waiting = pair.max.send("eva", "v1.0.0")
    pair.max.send("zoe", "v1.0.0")
    pair.max.stop("eva-host")
    await pair.settle()
    assert len(zoe.inbox()) == 1
    assert pair.max.message(waiting.id).attempts == 0  # not even picked
    assert pair.max.link("zoe-host").switch == Switch.RUNNING
    pair.max.stop()
    assert pair.max.link("zoe-host").switch == Switch.STOPPED
    with pytest.raises(NotYoursError, match="Paired: eva-host, zoe-host"):
        pair.max.stop("nobody")


async def test_a_short_name_at_two_peers_is_not_guessed(pair: GovernorPair) -> None:
    zoe = pair.third()
    with pair.max.store.begin() as uow:
        peer = uow.get(Peer, "zoe-host")
        assert peer is not None
        peer.agents = ["zoe", "eva"]
    pair.go()
    with pytest.raises(LocalError, match="eva@eva-host or eva@zoe-host"):
        pair.max.send("eva", "v1.0.0")
    pair.max.send("zoe", "v1.0.0")
    await pair.settle()
    assert len(zoe.inbox()) == 1
