"""What each answer of a peer means for the message that was sent (P4)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from governor_pair import GovernorPair

from governor.webhook.client import Answer


async def test_three_times_401_is_refused(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    sent = pair.max.send("eva", "v1.0.0")
    pair.eva.revoke("max-host")
    for tries in (1, 2, 3):
        await pair.settle()
        row = pair.max.message(sent.id)
        assert (row.state, row.not_authenticated) == ("queued" if tries < 3 else "refused", tries)
        pair.pass_time(seconds=31)
    assert row.reason == "peer_not_authenticated"


async def test_a_401_from_another_time_names_the_clock(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
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
    pair.pass_time(seconds=2)
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
    await pair.settle()
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
    await pair.settle()
    pair.max.wire.change = lambda _answer: Answer(422, body)
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    row = pair.max.message(sent.id)
    assert (row.state, row.reason) == ("refused", reason)


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
