"""A message has one end, which its sender's side knows; nothing accepted is lost or shown twice (P4)."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from crafted import message, signed
from failing_store import FailingStore
from governor_pair import Governor, GovernorPair, until

from governor.inbound.reader_loop import ReaderLoop
from governor.inbound.reading import pick_unread
from governor.message import InboundState, OutboundState
from governor.outbox.sender import Sender
from governor.outbox.sending import pick
from governor.store.tables import Message, SeenWebhook
from governor.supervision.switching import note_activity
from governor.webhook.client import Answer, Fault, PostError
from governor.wiring import reader_rules


def watched(pair: GovernorPair, **by: float) -> None:
    """Let time pass with a human there."""
    pair.clock.advance(**by)
    for one in pair.all:
        note_activity(one.store, one.host, "tester", pair.clock.now())


async def test_a_lost_request_is_tried_again(pair: GovernorPair) -> None:
    pair.go()
    pair.max.wire.cut = True
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    row = pair.max.message(sent.id)
    assert (row.state, row.error, row.left, row.attempts) == ("queued", "connect", False, 1)
    pair.max.wire.cut = False
    watched(pair, seconds=2)
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
    watched(pair, seconds=2)
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
    pair.max.wire.deaf = True
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.max.wire.deaf = False
    with pair.max.store.begin() as uow:
        row = uow.one(Message, Message.id == sent.id)
        assert row is not None
        row.body = message(pair.max, pair.eva, "v2.0.0")
    watched(pair, seconds=2)
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
    pair.max.wire.cut = True
    never_left = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.max.wire.cut, pair.max.wire.deaf = False, True
    left = pair.max.send("eva", "v1.0.1")
    await pair.settle()
    pair.max.wire.deaf, pair.max.wire.cut = False, True
    watched(pair, seconds=2)
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
    sent = pair.max.send("eva", "v1.0.0")

    def time_passes() -> None:
        pair.clock.advance(minutes=11)
        pair.max.tick()
        assert pair.max.message(sent.id).state == OutboundState.UNCONFIRMED

    pair.max.wire.under_way = time_passes
    await pair.deliver()
    assert pair.max.message(sent.id).state == OutboundState.ACCEPTED


async def test_three_times_401_is_refused(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    pair.eva.revoke("max-host")
    for tries in (1, 2, 3):
        await pair.settle()
        row = pair.max.message(sent.id)
        assert (row.state, row.not_authenticated) == ("queued" if tries < 3 else "refused", tries)
        watched(pair, seconds=31)
    assert row.reason == "peer_not_authenticated"


async def test_a_401_from_another_time_names_the_clock(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    later = pair.clock.now() + timedelta(minutes=6)
    pair.max.wire.change = lambda _answer: Answer(401, b"", date=later)
    await pair.deliver()
    assert pair.max.message(sent.id).error == "peer_clock_differs"


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b'{"id":"x"}', b"\xff", b"[" * 900])
async def test_a_bad_receipt_is_no_receipt(pair: GovernorPair, body: bytes) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.change = lambda answer: replace(answer, body=body)
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    row = pair.max.message(sent.id)
    assert (row.state, row.error, row.receipt) == ("queued", "bad_receipt", None)
    pair.max.wire.change = None
    watched(pair, seconds=2)
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
    assert len(pair.eva.inbox()) == 1


async def test_a_receipt_for_another_message_is_no_receipt(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    answers: list[bytes] = []
    pair.max.wire.change = lambda answer: answers.append(answer.body) or replace(answer, body=answers[0])
    first, second = pair.max.send("eva", "v1.0.0"), pair.max.send("eva", "v1.0.1")
    await pair.deliver()
    states = sorted(pair.max.message(each.id).state for each in (first, second))
    assert states == ["accepted", "queued"]


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 502, 503])
async def test_any_other_answer_is_temporary(pair: GovernorPair, status: int) -> None:
    pair.go()
    pair.max.wire.change = lambda _answer: Answer(status, b"<html>", retry_after=timedelta(seconds=7))
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    row = pair.max.message(sent.id)
    assert row.state == "queued"
    assert row.next_attempt_at == pair.clock.now() + timedelta(seconds=7)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"reason":"recipient"}', "peer_recipient"),
        (b'{"reason":"<script>"}', "peer_refused"),
        (b'{"reason":["recipient"]}', "peer_refused"),
        (b"[1]", "peer_refused"),
        (b"\xff", "peer_refused"),
    ],
)
async def test_a_422_is_final_and_its_reason_is_a_word_of_ours(
    pair: GovernorPair, body: bytes, reason: str
) -> None:
    pair.go()
    pair.max.wire.change = lambda _answer: Answer(422, body)
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    row = pair.max.message(sent.id)
    assert (row.state, row.reason) == ("refused", reason)


async def test_order_holds_in_a_conversation_and_blocks_no_other(pair: GovernorPair) -> None:
    pair.go()

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
    watched(pair, seconds=2)
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [other, *in_order]


async def test_revoke_ends_every_state_at_the_senders_side(pair: GovernorPair) -> None:
    pair.go()
    accepted = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.max.wire.deaf = True
    left = pair.max.send("eva", "v1.0.1")
    await pair.settle()
    sending, held = pair.max.send("eva", "v1.0.2"), pair.max.send("eva", "v1.0.3", conversation="c_4")
    with pair.max.store.begin() as uow:
        row = uow.one(Message, Message.id == held.id)
        assert row is not None
        row.state = OutboundState.HELD
    assert [parcel.id for parcel in pick(pair.max.store, pair.max.host)] == [sending.id]
    queued = pair.max.send("eva", "v1.0.4")
    assert pair.max.revoke("eva-host")
    states = {each.id: pair.max.message(each.id).state for each in (accepted, left, sending, held, queued)}
    assert states == {
        accepted.id: "accepted",
        left.id: "unconfirmed",
        sending.id: "unconfirmed",
        held.id: "cancelled",
        queued.id: "cancelled",
    }
    seen = len(pair.max.wire.seen)
    pair.max.restart()
    await pair.settle()
    assert len(pair.max.wire.seen) in (0, seen)  # nothing more left, not even a word of the revocation
    assert not pair.max.revoke("eva-host")


async def test_revoke_ends_every_state_at_the_receivers_side(pair: GovernorPair) -> None:
    pair.go()
    sent = {name: pair.max.send("eva", "v1.0.0").id for name in ("acked", "shown", "ready", "held")}
    await pair.settle()
    for item in pair.eva.inbox():
        if item.id == sent["acked"]:
            await pair.eva.ask("POST", f"/v1/inbox/{item.id}/ack")
    sent |= {name: pair.max.send("eva", "v1.0.0").id for name in ("reading", "received")}
    await pair.deliver()
    with pair.eva.store.begin() as uow:
        for name, state in (("held", InboundState.HELD), ("reading", InboundState.READING)):
            row = uow.one(Message, Message.id == sent[name])
            assert row is not None
            row.state = state
    pair.eva.revoke("max-host")
    states = {name: pair.eva.message(each).state for name, each in sent.items()}
    assert states == dict.fromkeys(sent, "dropped") | {"acked": "acked"}
    assert pair.eva.inbox() == []
    assert await pair.read() == 0


async def test_a_read_under_way_at_revoke_comes_to_nothing(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    await pair.eva.reader.start_due()
    pair.eva.revoke("max-host")
    await pair.eva.reader.drain()
    row = pair.eva.message(sent.id)
    assert (row.state, row.clean) == ("dropped", None)


async def test_after_pairing_anew_the_name_works_and_the_old_key_does_not(pair: GovernorPair) -> None:
    from governor_pair import pair_up  # noqa: PLC0415 - only here

    pair.go()
    old = pair.max
    version = pair.eva.link("max-host").version
    pair.eva.revoke("max-host")
    assert pair.eva.go("max-host" if False else None) == []  # an ended link is none
    new = Governor(pair.folder / "max2", "max-host", "max", pair.clock, None)
    pair.all.append(new)
    pair_up(new, pair.eva)
    assert pair.eva.link("max-host").reason == "awaiting_first_go"
    assert pair.eva.link("max-host").version > version  # no old button fits
    new.go("eva-host")
    pair.eva.go("max-host")
    sent = new.send("eva", "v1.0.0")
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [sent.id]

    body = message(old, pair.eva)
    answer = await pair.eva.hook(signed(old, body), body, old.certificate)
    assert answer.status_code == 401


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


async def test_whatever_breaks_in_an_attempt_the_message_goes_on(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()

    async def break_down(_body: bytes) -> None:
        raise RuntimeError("v1.0.0 in the text of an error")

    pair.max.wire.before = break_down
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    row = pair.max.message(sent.id)
    assert (row.state, row.error) == ("queued", "internal")


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
