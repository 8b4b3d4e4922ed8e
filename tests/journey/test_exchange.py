import pytest
from governor_pair import GovernorPair

from governor.errors import RefusedError
from governor.message import Switch


async def test_a_message_crosses_and_is_answered(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "Please review src/app.py:88 of PR #482, 3 of 120 tests fail.")
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
    (item,) = pair.eva.inbox()
    assert item.sender == "max@max-host"
    assert "src/app.py:88" in item.text
    assert "Please review" not in item.text  # values mode: no prose of the peer's

    answer = pair.eva.send("max", "Merged in v1.2.3.", reply_to=item.id)
    await pair.settle()
    (reply,) = pair.max.inbox()
    assert reply.in_reply_to == sent.id
    assert reply.conversation == sent.conversation == answer.conversation
    assert "1.2.3" in reply.text
    assert pair.eva.message(item.id).state == "acked"
    assert pair.max.verify()
    assert pair.eva.verify()


async def test_nothing_passes_before_go(pair: GovernorPair) -> None:
    with pytest.raises(RefusedError, match="awaiting_first_go"):
        pair.max.send("eva", "hello v1.0.0")
    pair.max.go("eva-host")
    sent = pair.max.send("eva", "hello v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).state == "queued"  # eva's side is closed: 423
    assert pair.eva.messages() == []
    assert pair.eva.link("max-host").switch == Switch.PAUSED
    pair.eva.go("max-host")
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"  # the hello was the hint
    assert len(pair.eva.inbox()) == 1
