"""A message has one end, which its sender's side knows; nothing accepted is lost or shown twice (P4)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from crafted import message, signed
from failing_store import FailingStore
from governor_pair import Governor, GovernorPair, until

from governor.inbound.reader_loop import ReaderLoop
from governor.inbound.reading import pick_unread
from governor.message import InboundState, OutboundState
from governor.outbox.sender import Sender
from governor.outbox.sending import pick
from governor.store.tables import Message, SeenWebhook
from governor.webhook.client import Fault, PostError
from governor.wiring import reader_rules


async def test_a_lost_request_is_tried_again(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.cut = True
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    row = pair.max.message(sent.id)
    assert (row.state, row.error, row.left, row.attempts) == ("queued", "connect", False, 1)
    pair.max.wire.cut = False
    pair.pass_time(seconds=2)
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
    assert [item.id for item in pair.eva.inbox()] == [sent.id]


async def test_a_lost_answer_brings_the_same_id_and_bytes_with_a_new_signature(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.deaf = True
    pair.max.wire.seen.clear()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).left
    pair.max.wire.deaf = False
    pair.pass_time(seconds=2)
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
    (first, body), (second, again) = pair.max.wire.seen
    assert body == again
    assert first["webhook-id"] == second["webhook-id"] == sent.id
    assert first["webhook-timestamp"] != second["webhook-timestamp"]
    assert first["webhook-signature"] != second["webhook-signature"]
    assert [item.id for item in pair.eva.inbox()] == [sent.id]
    assert pair.eva.link("max-host").in_used == pair.max.link("eva-host").out_used == 1
    assert len(pair.eva.audit("message_received")) == 1


async def test_a_known_id_gets_its_stored_answer_even_while_closed(pair: GovernorPair) -> None:
    pair.go()
    body = message(pair.max, pair.eva)
    first = await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    pair.eva.stop("max-host")
    pair.clock.advance(seconds=10)
    again = await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    assert first.status_code == again.status_code == 202
    assert first.content == again.content


async def test_the_same_id_with_another_body_is_a_conflict(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.deaf = True
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.max.wire.deaf = False
    with pair.max.store.begin() as uow:
        row = uow.one(Message, Message.id == sent.id)
        assert row is not None
        row.body = message(pair.max, pair.eva, "v2.0.0")
    pair.pass_time(seconds=2)
    await pair.settle()
    row = pair.max.message(sent.id)
    assert (row.state, row.reason) == (OutboundState.REFUSED, "peer_id_conflict")
    (item,) = pair.eva.inbox()
    assert "1.0.0" in item.text
    assert pair.eva.audit("webhook_refused")[0].reason == "conflict"


async def test_an_id_is_known_for_an_hour_after_its_expiry_and_never_shown_twice(pair: GovernorPair) -> None:
    pair.go()
    body = message(pair.max, pair.eva)
    await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    pair.clock.advance(minutes=69)
    pair.eva.tick()
    assert len([row for row in pair.eva.rows(SeenWebhook) if row.webhook_id == "m_crafted"]) == 1
    pair.clock.advance(minutes=2)
    pair.eva.tick()
    assert [row for row in pair.eva.rows(SeenWebhook) if row.webhook_id == "m_crafted"] == []
    pair.eva.go("max-host")
    body = message(pair.max, pair.eva)
    answer = await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    assert answer.status_code == 409
    assert len(pair.eva.messages()) == 1


async def test_a_crash_while_sending_sends_the_same_again(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    (parcel,) = pick(pair.max.store, pair.max.host)
    assert pair.max.message(sent.id).state == "sending"
    pair.max.restart()
    assert pair.max.message(sent.id).state == "queued"
    await pair.settle()
    bodies = {headers["webhook-id"]: body for headers, body in pair.max.wire.seen}
    assert bodies[sent.id] == parcel.body
    assert pair.max.message(sent.id).state == "accepted"
    assert [item.id for item in pair.eva.inbox()] == [sent.id]


async def test_a_crash_after_the_request_left_shows_it_once(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    (parcel,) = pick(pair.max.store, pair.max.host)
    answer = await pair.eva.hook(signed(pair.max, parcel.body, sent.id), parcel.body, pair.max.certificate)
    assert answer.status_code == 202  # nobody was left to hear it
    pair.max.restart()
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
    assert [item.id for item in pair.eva.inbox()] == [sent.id]
    assert pair.eva.link("max-host").in_used == 1


async def test_a_crash_while_reading_reads_once_more_and_then_drops(pair: GovernorPair) -> None:
    pair.go()
    once = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    assert len(pick_unread(pair.eva.store, pair.eva.host, 9)) == 1
    pair.eva.restart()
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [once.id]

    twice = pair.max.send("eva", "v2.0.0")
    await pair.deliver()
    for _ in range(2):
        assert len(pick_unread(pair.eva.store, pair.eva.host, 9)) == 1
        pair.eva.restart()
    row = pair.eva.message(twice.id)
    assert (row.state, row.reason) == (InboundState.DROPPED, "governor_died")
    assert pair.max.message(twice.id).state == "accepted"


async def test_expiry_is_expired_or_unconfirmed_where_bytes_ever_left(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.cut = True
    never_left = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.max.wire.cut, pair.max.wire.deaf = False, True
    left = pair.max.send("eva", "v1.0.1")
    await pair.settle()
    pair.max.wire.deaf, pair.max.wire.cut = False, True
    pair.pass_time(seconds=2)
    await pair.settle()  # a later try that never left takes nothing back
    pair.clock.advance(minutes=10)
    pair.max.tick()
    assert pair.max.message(never_left.id).state == OutboundState.EXPIRED
    assert pair.max.message(left.id).state == OutboundState.UNCONFIRMED
    assert {row.reason for row in pair.max.audit("message_ended")} == {
        "expired:expired",
        "unconfirmed:expired",
    }


async def test_a_late_receipt_settles_what_was_unconfirmed(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    sent = pair.max.send("eva", "v1.0.0")

    def time_passes() -> None:
        pair.clock.advance(minutes=11)
        pair.max.tick()
        assert pair.max.message(sent.id).state == OutboundState.UNCONFIRMED

    pair.max.wire.under_way = time_passes
    await pair.deliver()
    assert pair.max.message(sent.id).state == OutboundState.ACCEPTED


async def test_order_holds_in_a_conversation_and_blocks_no_other(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()

    async def lose(body: bytes) -> None:
        if lost and b"v1.0.0" in body:
            raise PostError(Fault.TIMEOUT, "eva-host", left=True)

    lost = True
    pair.max.wire.before = lose
    in_order = [pair.max.send("eva", f"v1.0.{number}", conversation="c_1").id for number in range(3)]
    other = pair.max.send("eva", "v2.0.0", conversation="c_2").id
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [other]
    lost = False
    pair.pass_time(seconds=2)
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [other, *in_order]


@contextmanager
def failing(governor: Governor) -> Iterator[FailingStore]:
    """Give the governor's loops a database that can fail."""
    store = FailingStore(governor.home.store.path)
    governor.sender = Sender(
        store,
        governor.host,
        governor.home.keyring,
        governor.wire,  # type: ignore[arg-type]
        governor.bell,
        lambda: 0.5,
    )
    governor.reader = ReaderLoop(store, governor.host, reader_rules(governor.home), None, governor.bell)
    yield store
    store.close()


async def test_an_outcome_that_cannot_be_stored_is_stored_later(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    with failing(pair.max) as store:
        sent = pair.max.send("eva", "v1.0.0")
        pair.max.wire.under_way = lambda: setattr(store, "broken", True)
        await pair.max.sender.start_due()
        await until(lambda: store.refused > 1)
        assert pair.max.message(sent.id).state == "sending"
        store.broken, pair.max.wire.under_way = False, None
        await pair.max.sender.drain()
        assert pair.max.message(sent.id).state == "accepted"


async def test_a_verdict_that_cannot_be_stored_is_stored_later(pair: GovernorPair) -> None:
    pair.go()
    with failing(pair.eva) as store:
        sent = pair.max.send("eva", "v1.0.0")
        await pair.max.sender.start_due()
        await pair.max.sender.drain()
        await pair.eva.reader.start_due()
        store.broken = True
        await until(lambda: store.refused > 1)
        assert pair.eva.message(sent.id).state == "reading"
        store.broken = False
        await pair.eva.reader.drain()
        assert pair.eva.message(sent.id).state == "ready"
        assert len(pair.eva.inbox()) == 1


async def test_a_webhook_is_refused_for_the_time_being_when_nothing_can_be_stored(pair: GovernorPair) -> None:
    pair.go()
    store = FailingStore(pair.eva.home.store.path)
    pair.eva.peer_app = pair.eva.app_over(store)
    body = message(pair.max, pair.eva)
    store.broken = True
    answer = await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    assert (answer.status_code, json.loads(answer.content)) == (503, {"error": "busy"})
    store.broken = False
    answer = await pair.eva.hook(signed(pair.max, body), body, pair.max.certificate)
    assert answer.status_code == 202
    store.close()
