"""REVOKE ends a link at once, also for what is in flight, and the peer is told nothing (P3, P4)."""

from crafted import message, signed
from governor_pair import Governor, GovernorPair, pair_up

from governor.message import InboundState, OutboundState
from governor.outbox.sending import pick
from governor.store.tables import Message


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
    pair.go()
    old = pair.max
    version = pair.eva.link("max-host").version
    pair.eva.revoke("max-host")
    assert pair.eva.go() == []  # an ended link is none
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
