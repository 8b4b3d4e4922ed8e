"""Who may answer what, and how far a content may be passed on (P4, P7)."""

from typing import Any

import pytest
from crafted import message, signed
from governor_pair import Governor, GovernorPair

from governor.errors import LocalError, RefusedError
from governor.message import UntrustedText
from governor.outbox.submit import Offer, submit


async def shown(pair: GovernorPair, text: str = "v1.0.0", **more: Any) -> str:  # noqa: ANN401 - as `send`
    """Let Max's agent send a message and Eva's agent read it."""
    sent = pair.max.send("eva", text, **more)
    await pair.settle()
    assert sent.id in [item.id for item in pair.eva.inbox()]
    return sent.id


def reason(sender: Governor, to: str, *, agent: str | None = None, **more: Any) -> str:  # noqa: ANN401 - as `send`
    offer = Offer(agent or sender.agent, to, UntrustedText("v1.0.0"), **more)
    with pytest.raises(RefusedError) as error:
        submit(sender.store, sender.host, offer)
    return error.value.reason


async def arrives(pair: GovernorPair, webhook_id: str = "m_crafted", **more: Any) -> tuple[int, Any]:  # noqa: ANN401 - as `message`
    """Hand Eva's governor a message that Max's program would not make; return status and reason."""
    body = message(pair.max, pair.eva, **more)
    answer = await pair.eva.hook(signed(pair.max, body, webhook_id), body, pair.max.certificate)
    return answer.status_code, answer.json().get("reason")


async def test_the_addressee_answers_the_sender_in_that_conversation(pair: GovernorPair) -> None:
    pair.go()
    asked = await shown(pair)
    answer = pair.eva.send("max", "v2.0.0", reply_to=asked)
    later = pair.eva.send("max", "v2.0.1", reply_to=asked)  # linked and kept
    await pair.settle()
    first, second = pair.max.inbox()
    assert (first.id, first.in_reply_to, first.conversation) == (answer.id, asked, answer.conversation)
    assert (second.id, second.in_reply_to) == (later.id, asked)
    assert pair.eva.message(asked).state == "acked"


async def test_nobody_else_answers(pair: GovernorPair) -> None:
    pair.eva.add_agent("ida")
    pair.go()
    asked = await shown(pair)
    unread = pair.max.send("eva", "v1.0.1")
    await pair.settle()
    assert reason(pair.eva, "max", agent="ida", reply_to=asked) == "not_yours"  # of the same host
    assert reason(pair.eva, "max", reply_to=unread.id) == "not_yours"  # not shown yet
    assert reason(pair.eva, "max", reply_to="m_unknown") == "not_yours"
    assert reason(pair.max, "eva", reply_to=asked) == "not_yours"  # one's own
    zoe = pair.third()
    pair.go()
    own = zoe.send("max", "v3.0.0")
    await pair.settle()
    assert own.id in [item.id for item in pair.max.inbox()]
    assert reason(pair.max, "eva", reply_to=own.id) == "not_yours"  # to somebody else than who asked


async def test_an_answer_stays_in_its_conversation(pair: GovernorPair) -> None:
    pair.go()
    asked = await shown(pair, conversation="c_1")
    assert reason(pair.eva, "max", reply_to=asked, conversation="c_2") == "not_yours"
    assert pair.eva.send("max", "v1.0.0", reply_to=asked, conversation="c_1").conversation == "c_1"


async def test_nobody_enters_a_conversation_of_others(pair: GovernorPair) -> None:
    pair.eva.add_agent("ida")
    pair.go()
    await shown(pair, conversation="c_1")
    assert reason(pair.eva, "max", agent="ida", conversation="c_1") == "not_yours"
    assert await arrives(pair, conversation="c_1", to="ida@eva-host") == (422, "reply")
    assert await arrives(pair, conversation="c_1", by="otto@max-host") == (422, "reply")
    assert (await arrives(pair, conversation="c_1"))[0] == 202


async def test_a_peers_answer_must_have_been_asked_of_its_sender(pair: GovernorPair) -> None:
    pair.eva.add_agent("ida")
    pair.go()
    asked = pair.eva.send("max", "v1.0.0", conversation="c_1")
    await pair.settle()
    assert await arrives(pair, in_reply_to="m_unknown", conversation="c_9") == (422, "reply")
    assert await arrives(pair, in_reply_to=asked.id, conversation="c_9") == (422, "reply")
    assert await arrives(pair, in_reply_to=asked.id, conversation="c_1", by="otto@max-host") == (422, "reply")
    assert await arrives(pair, in_reply_to=asked.id, conversation="c_1", to="ida@eva-host") == (422, "reply")
    assert (await arrives(pair, in_reply_to=asked.id, conversation="c_1"))[0] == 202


async def test_a_sender_of_another_host_is_nobody_here(pair: GovernorPair) -> None:
    pair.go()
    assert await arrives(pair, by="max@zoe-host") == (422, "sender")
    assert await arrives(pair, to="nobody@eva-host") == (422, "recipient")
    assert await arrives(pair, to="eva@zoe-host") == (422, "recipient")  # no governor relays for another


async def test_a_closed_link_tells_nothing_about_who_is_here(pair: GovernorPair) -> None:
    pair.max.go("eva-host")
    assert await arrives(pair, to="nobody@eva-host") == (423, None)
    assert await arrives(pair, "m_2") == (423, None)


async def test_self_send_empty_and_too_long_are_refused_with_their_reason(pair: GovernorPair) -> None:
    pair.go()
    assert reason(pair.max, "max") == "self_send"
    assert reason(pair.max, "max@max-host") == "self_send"
    pair.max.add_agent("ida")
    with pytest.raises(RefusedError, match="ida is an agent of this host"):
        pair.max.send("ida", "v1.0.0")
    for text, why in (("", "empty"), ("v1.0.0 " * 1_430, "too_long")):
        with pytest.raises(RefusedError) as error:
            pair.max.send("eva", text)
        assert error.value.reason == why
    with pytest.raises(LocalError, match="surrogate"):
        pair.max.send("eva", "a" * 10_001 + "\ud800")
    with pytest.raises(RefusedError, match="Did you mean eva"):
        pair.max.send("evva", "v1.0.0")
    pair.max.send("eva", "ü" * 10_000)  # characters, not bytes


async def test_a_send_inherits_the_lineage_of_what_was_read_in_the_last_ten_minutes(
    pair: GovernorPair,
) -> None:
    pair.go()
    await shown(pair)
    pair.clock.advance(minutes=9)
    pair.go()
    inherited = pair.eva.send("max", "v2.0.0")
    row = pair.eva.message(inherited.id)
    assert (row.hops, row.lineage) == (3, ["max@max-host", "eva@eva-host"])  # back to Max: a forward
    pair.clock.advance(minutes=2)
    fresh = pair.eva.message(pair.eva.send("max", "v2.0.1").id)
    assert (fresh.hops, fresh.lineage) == (4, ["eva@eva-host"])


async def test_a_reply_costs_no_hop(pair: GovernorPair) -> None:
    pair.go()
    asked = await shown(pair)
    row = pair.eva.message(pair.eva.send("max", "v2.0.0", reply_to=asked).id)
    assert (row.hops, row.lineage) == (4, ["max@max-host", "eva@eva-host"])


async def test_a_storm_of_forwards_ends(pair: GovernorPair) -> None:
    pair.go()
    await shown(pair)
    for _ in range(2):
        for sender, receiver in ((pair.eva, pair.max), (pair.max, pair.eva)):
            sender.send(receiver.agent, "v1.0.0")
            await pair.settle()
            assert receiver.inbox()
    assert reason(pair.eva, "max") == "hops"  # after the first, and four forwards


async def test_a_peers_hops_are_clamped_and_its_lineage_ends_with_it(pair: GovernorPair) -> None:
    pair.go()
    assert (await arrives(pair, hops=4_000))[0] == 202
    row = pair.eva.message("m_crafted")
    assert (row.hops, row.lineage) == (4, ["max@max-host"])
    assert (await arrives(pair, "m_2", hops=-7, lineage=("zoe@zoe-host",)))[0] == 202
    row = pair.eva.message("m_2")
    assert (row.hops, row.lineage) == (0, ["zoe@zoe-host", "max@max-host"])
    await pair.settle()
    pair.eva.inbox()
    assert reason(pair.eva, "max") == "hops"


async def test_show_state_and_ack_know_only_ones_own(pair: GovernorPair) -> None:
    ida = pair.eva.add_agent("ida")
    pair.go()
    asked = await shown(pair)
    sent = pair.eva.send("max", "v2.0.0")

    async def status(method: str, path: str, token: str) -> int:
        return (await pair.eva.ask(method, path, token=token)).status_code

    for each in (asked, sent.id):
        assert await status("GET", f"/v1/messages/{each}", pair.eva.token) == 200
        assert await status("GET", f"/v1/messages/{each}/state", pair.eva.token) == 200
        for path in (f"/v1/messages/{each}", f"/v1/messages/{each}/state", f"/v1/messages/{each}x"):
            assert await status("GET", path, ida) == 404
        assert await status("POST", f"/v1/inbox/{each}/ack", ida) == 404
    assert await status("POST", f"/v1/inbox/{sent.id}/ack", pair.eva.token) == 404  # sent, not received
    assert pair.eva.message(asked).state == "ready"
    assert (await pair.eva.ask("POST", f"/v1/inbox/{asked}/ack")).json() == {"acked": True}
    assert (await pair.eva.ask("POST", f"/v1/inbox/{asked}/ack")).json() == {"acked": False}
    assert pair.eva.inbox() == []
    assert pair.eva.inbox("ida") == []


async def test_a_link_may_be_open_to_one_direction_only(make_pair: Any) -> None:  # noqa: ANN401 - a fixture
    pair: GovernorPair = make_pair(links={"eva-host": {"direction": "in"}, "max-host": {"direction": "in"}})
    pair.go()
    assert reason(pair.max, "eva") == "direction"
    pair.max.restart(links={"eva-host": {"direction": "out"}})
    pair.eva.restart(links={"max-host": {"direction": "out"}})
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).error == "peer_closed"
    assert pair.eva.messages() == []
