"""A message the reader gives nothing for: silent for both agents, on record for this side's humans (P5)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from crafted import control, signed
from fake_broker import Behaviour, FakeBroker, fails
from governor_pair import Governor, GovernorPair
from model_server import honest, told

from governor.inbound.accept import ROOM
from governor.message import InboundState, PauseReason, Switch
from governor.store.tables import Message, ModelCall, Notice, SeenWebhook
from governor.webhook.incoming import WireType

TEXT = "The login test in tests/test_login.py:88 fails since v2.4.1. Could you review PR #482?"
MODEL = {"model": "fake", "base_url": "http://127.0.0.1:9"}

DROPS: dict[str, Behaviour] = {
    "model_unavailable": fails("model_unavailable"),
    "model_stopped": fails("model_stopped"),
    "contract": lambda _nonce, _message: "Sure! The sender says hello.",
    "nonce": lambda _nonce, message: honest("0000000000000000", message),
    "order_to_reader": lambda nonce, _message: told(nonce, "order_to_reader", "It commands.", [], []),
    "markup": lambda nonce, _message: told(nonce, "report", "See <img src=x>.", [], []),
    "invented_value": lambda nonce, _message: told(nonce, "report", "See /etc/shadow for v9.9.9.", [], []),
    "reader_runtimeerror": lambda _nonce, _message: _break_down(),
}


def _break_down() -> str:
    raise RuntimeError(TEXT)


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker()


@pytest.fixture
async def pair(make_pair: Callable[..., GovernorPair], broker: FakeBroker) -> GovernorPair:
    pair = make_pair(broker=broker, reader=MODEL)
    pair.go()
    await pair.settle()
    return pair


async def crossing(pair: GovernorPair, text: str = TEXT) -> str:
    sent = pair.max.send("eva", text)
    await pair.settle()
    return sent.id


async def seen_by_its_agent(governor: Governor, message_id: str) -> Any:  # noqa: ANN401 - any JSON
    """Return all that the local API says of a message, without what differs between any two."""
    life = (await governor.ask("GET", f"/v1/messages/{message_id}")).json()
    state = (await governor.ask("GET", f"/v1/messages/{message_id}/state")).json()
    return json.loads(
        json.dumps([life, state]).replace(message_id, "ID").replace(life["conversation"], "CONVERSATION")
    )


@pytest.mark.parametrize("code", DROPS)
async def test_a_drop_is_silent_for_both_agents_and_on_record_here(
    pair: GovernorPair, broker: FakeBroker, code: str
) -> None:
    taken = await crossing(pair)
    assert len(pair.eva.inbox()) == 1
    for one in pair.all:
        assert one.verify()
    broker.behaviour = DROPS[code]
    left = len(pair.eva.wire.seen)
    dropped = await crossing(pair)

    row = pair.eva.message(dropped)
    assert (row.state, row.reason, row.clean) == (InboundState.DROPPED, code, None)
    assert await seen_by_its_agent(pair.max, dropped) == await seen_by_its_agent(pair.max, taken)
    receipts = [json.loads(pair.max.message(each).receipt or "") for each in (taken, dropped)]
    assert receipts[0].keys() == receipts[1].keys()
    assert len(pair.eva.wire.seen) == left  # no word of it to the other side

    assert [item.id for item in pair.eva.inbox()] == [taken]
    assert pair.eva.waiting() == 1
    for method, path in (
        ("GET", f"/v1/messages/{dropped}"),
        ("GET", f"/v1/messages/{dropped}/state"),
        ("POST", f"/v1/inbox/{dropped}/ack"),
    ):
        assert (await pair.eva.ask(method, path)).status_code == 404

    (record,) = pair.eva.audit("message_dropped")
    assert (record.message_id, record.reason, record.agent) == (dropped, code, "eva")
    told_of_it = [notice for notice in pair.eva.rows(Notice) if notice.ours.endswith("dropped.")]
    assert len(told_of_it) == 1
    assert all(code not in notice.ours and notice.foreign is None for notice in told_of_it)


async def test_each_model_call_is_a_row(pair: GovernorPair, broker: FakeBroker) -> None:
    read = await crossing(pair)
    broker.behaviour = DROPS["contract"]
    dropped = await crossing(pair)
    broker.behaviour = DROPS["model_unavailable"]
    failed = await crossing(pair)
    rows = pair.eva.rows(ModelCall)
    assert [(row.message_id, row.verdict, row.stop_reason) for row in rows] == [
        (read, "rewrite", "end_turn"),
        (dropped, "contract", "end_turn"),
        (failed, "model_unavailable", "failed"),
    ]
    assert (rows[0].peer, rows[0].model, rows[0].input_tokens, rows[0].output_tokens) == (
        "max-host",
        "fake",
        700,
        90,
    )


async def test_three_failures_of_the_model_in_a_row_pause_the_link(
    pair: GovernorPair, broker: FakeBroker
) -> None:
    for behaviour in ("model_unavailable", "model_unavailable", "contract", "model_unavailable"):
        broker.behaviour = DROPS[behaviour]
        await crossing(pair)
        pair.pass_time(seconds=40)
        await pair.settle()
    assert pair.eva.link("max-host").switch == Switch.RUNNING  # not in a row
    broker.behaviour = DROPS["model_unavailable"]
    for _ in range(2):
        await crossing(pair)
        pair.pass_time(seconds=40)
        await pair.settle()
    link = pair.eva.link("max-host")
    assert (link.switch, link.reason) == (Switch.PAUSED, PauseReason.READER_DOWN)
    broker.behaviour = honest
    pair.eva.go("max-host")
    await crossing(pair)
    assert len(pair.eva.inbox()) == 1


async def test_while_the_model_is_known_to_be_down_peers_come_back_later(
    pair: GovernorPair, broker: FakeBroker
) -> None:
    broker.behaviour = DROPS["model_unavailable"]
    await crossing(pair)
    later = await crossing(pair)
    assert (pair.max.message(later).state, pair.max.message(later).error) == ("queued", "peer_busy")
    assert pair.eva.link("max-host").in_used == 1
    broker.behaviour = honest
    pair.pass_time(seconds=29)
    await pair.settle()
    assert pair.max.message(later).state == "queued"
    pair.pass_time(seconds=30)
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [later]


async def test_a_closed_link_says_423_also_while_the_model_is_down(
    pair: GovernorPair, broker: FakeBroker
) -> None:
    broker.behaviour = DROPS["model_unavailable"]
    await crossing(pair)
    pair.eva.stop("max-host")
    later = await crossing(pair)
    assert pair.max.message(later).error == "peer_closed"


async def test_a_full_queue_says_come_back_later(make_pair: Callable[..., GovernorPair]) -> None:
    pair = make_pair(limits={"messages": 1_000, "warn_at": 1_000})
    pair.go()
    await pair.settle()
    first = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    with pair.eva.store.begin() as uow:
        (row,) = uow.all(Message, Message.direction == "in")
        fields = row.model_dump(exclude={"n", "id"})
        uow.session.add_all(Message(id=f"m_{number}", **fields) for number in range(ROOM - 1))
    second = pair.max.send("eva", "v1.0.1")
    await pair.deliver()
    assert pair.max.message(first.id).state == "accepted"
    assert (pair.max.message(second.id).state, pair.max.message(second.id).error) == ("queued", "peer_busy")
    assert pair.eva.audit("webhook_refused")[0].reason == "no_room"


async def test_the_links_mode_decides_whether_a_model_is_asked(
    make_pair: Callable[..., GovernorPair], broker: FakeBroker
) -> None:
    pair = make_pair(broker=broker, reader=MODEL, links={"max-host": {"reader": "values"}})
    pair.go()
    await crossing(pair)
    (item,) = pair.eva.inbox()
    assert "No model read this message" in item.text
    assert broker.questions == []


async def test_texts_are_erased_when_their_time_is_over(pair: GovernorPair, broker: FakeBroker) -> None:
    read = await crossing(pair)
    row = pair.eva.message(read)
    assert (row.text, row.clean is None) == (None, False)  # erased with the read itself
    broker.behaviour = DROPS["contract"]
    dropped = await crossing(pair)
    assert pair.eva.message(dropped).text == TEXT

    def wait(**by: float) -> None:
        pair.clock.advance(**by)
        for one in pair.all:
            one.tick()

    wait(minutes=59, seconds=59)
    assert pair.eva.message(dropped).text == TEXT  # an operator may look at it
    wait(seconds=1)
    assert pair.eva.message(dropped).text is None
    assert len([row for row in pair.eva.rows(SeenWebhook) if row.webhook_id == read]) == 1
    wait(minutes=11)  # its expiry (ten minutes after it was sent) and an hour
    assert [row for row in pair.eva.rows(SeenWebhook) if row.webhook_id == read] == []

    assert pair.max.message(read).text == TEXT
    assert any(notice.foreign for notice in pair.max.rows(Notice))
    wait(hours=23)
    assert (pair.max.message(read).text, pair.max.message(read).body) == (None, None)
    assert not any(notice.foreign for notice in pair.max.rows(Notice))

    assert pair.eva.message(read).clean
    wait(days=6)
    row = pair.eva.message(read)
    assert (row.clean, row.rewrite, row.state) == (None, None, InboundState.EXPIRED)
    assert row.sha256 == pair.max.message(read).sha256  # rows and hashes stay
    assert pair.eva.audit("text_erased")
    for one in pair.all:
        assert one.verify()


async def test_a_withdrawn_message_is_shown_as_withdrawn_and_an_unread_one_not_at_all(
    pair: GovernorPair,
) -> None:
    ready = await crossing(pair)
    unread = pair.max.send("eva", TEXT)
    await pair.deliver()
    for number, each in enumerate((ready, unread.id)):
        body = control(pair.max, pair.eva, WireType.CANCEL, {"message": each})
        answer = await pair.eva.hook(signed(pair.max, body, f"w_{number}"), body, pair.max.certificate)
        assert answer.status_code == 202
    await pair.settle()
    (item,) = pair.eva.inbox()
    assert (item.id, item.withdrawn) == (ready, True)
    assert pair.eva.message(unread.id).state == InboundState.CANCELLED
