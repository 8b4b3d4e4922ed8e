"""A peer, or somebody without a key, that never stops: counted, not recorded one by one, and told once (P9)."""

import pytest
from crafted import control, message, own_key, signed
from governor_pair import GovernorPair, pair_up

from governor.directory.refusals import FLOOD
from governor.message import Switch
from governor.store.tables import AuditRecord
from governor.webhook.incoming import WireType
from governor.webhook.signing import SigningKey

MALLORY = SigningKey(b"m" * 32)


@pytest.fixture
async def open_pair(pair: GovernorPair) -> GovernorPair:
    pair.go()
    await pair.settle()
    return pair


async def test_a_flood_of_forgeries_is_one_record_a_minute_and_one_notice(open_pair: GovernorPair) -> None:
    before = len(open_pair.eva.rows(AuditRecord))
    for _ in range(2):
        for _ in range(300):
            body = message(open_pair.max, open_pair.eva)
            headers = signed(open_pair.max, body, key=MALLORY)
            await open_pair.eva.hook(headers, body, open_pair.max.certificate)
        open_pair.clock.advance(minutes=1)
        open_pair.eva.tick()
    records = open_pair.eva.audit("webhook_refused")
    assert [(row.reason, row.detail["count"]) for row in records if row.detail] == [("signature", 300)] * 2
    assert len(open_pair.eva.rows(AuditRecord)) == before + 2
    assert len([notice for notice in open_pair.eva.notices() if notice.startswith("Flood")]) == 2
    assert FLOOD <= 300


async def test_a_peer_that_knocks_at_a_closed_link_floods_no_log(open_pair: GovernorPair) -> None:
    open_pair.eva.stop("max-host")
    before = len(open_pair.eva.rows(AuditRecord))
    for number in range(150):
        body = message(open_pair.max, open_pair.eva)
        headers = signed(open_pair.max, body, f"m_{number}")
        answer = await open_pair.eva.hook(headers, body, open_pair.max.certificate)
        assert (answer.status_code, answer.content) == (423, b'{"error":"closed"}')
    assert len(open_pair.eva.rows(AuditRecord)) == before + 1
    (first,) = open_pair.eva.audit("message_refused_in")
    assert (first.reason, first.message_id, first.peer) == ("stopped", "m_0", "max-host")
    open_pair.clock.advance(minutes=1)
    open_pair.eva.tick()
    (total,) = open_pair.eva.audit("webhook_refused")
    assert (total.peer, total.reason, total.detail["count"]) == ("max-host", "stopped", 149)
    assert len([notice for notice in open_pair.eva.notices() if "149 of them of max-host" in notice]) == 1
    assert open_pair.eva.verify()


async def test_a_refusal_of_the_next_minute_is_on_record_again(open_pair: GovernorPair) -> None:
    open_pair.eva.stop("max-host")
    for number in range(3):
        body = message(open_pair.max, open_pair.eva)
        await open_pair.eva.hook(signed(open_pair.max, body, f"m_{number}"), body, open_pair.max.certificate)
        open_pair.clock.advance(minutes=1)
    assert len(open_pair.eva.audit("message_refused_in")) == 3


async def control_webhook(pair: GovernorPair, kind: WireType, number: int) -> int:
    body = control(pair.max, pair.eva, kind, {"open": True} if kind is WireType.HELLO else None)
    headers = signed(pair.max, body, f"w_{number}")
    return (await pair.eva.hook(headers, body, pair.max.certificate)).status_code


async def test_control_webhooks_have_a_limit_that_a_closing_stop_has_not(open_pair: GovernorPair) -> None:
    open_pair.clock.advance(minutes=2)  # the hello of the beginning counts no more
    open_pair.eva.go("max-host")
    statuses = [await control_webhook(open_pair, WireType.HELLO, number) for number in range(25)]
    assert statuses == [202] * 20 + [503] * 5
    assert len(open_pair.eva.audit("control_taken")) == 21
    assert await control_webhook(open_pair, WireType.STOP, 100) == 202
    assert open_pair.eva.link("max-host").switch == Switch.STOPPED
    assert await control_webhook(open_pair, WireType.STOP, 101) == 503  # closes nothing any more
    open_pair.clock.advance(minutes=1)
    assert await control_webhook(open_pair, WireType.STOP, 102) == 202


async def test_what_a_peer_is_told_of_a_closed_link_is_always_the_same(open_pair: GovernorPair) -> None:
    answers = []
    zoe = open_pair.third()
    pair_up(open_pair.eva, zoe)  # awaits its first GO
    body = message(zoe, open_pair.eva)
    answers.append(await open_pair.eva.hook(signed(zoe, body), body, zoe.certificate))
    open_pair.eva.restart(limits={"messages": 1, "warn_at": 1})
    open_pair.eva.go("max-host")
    for number in range(2):  # the second meets the cap
        body = message(open_pair.max, open_pair.eva)
        headers = signed(open_pair.max, body, f"m_{number}")
        answer = await open_pair.eva.hook(headers, body, open_pair.max.certificate)
    answers.append(answer)
    open_pair.eva.stop("max-host")
    for number, closed in enumerate((lambda: None, lambda: open_pair.clock.advance(minutes=6))):
        closed()
        body = message(open_pair.max, open_pair.eva)
        headers = signed(open_pair.max, body, f"n_{number}")
        answers.append(await open_pair.eva.hook(headers, body, open_pair.max.certificate))
    assert {answer.status_code for answer in answers} == {423}
    assert len({(answer.content, str(answer.headers.multi_items())) for answer in answers}) == 1


async def test_ids_of_two_peers_do_not_meet(open_pair: GovernorPair) -> None:
    zoe = open_pair.third()
    pair_up(open_pair.eva, zoe)
    open_pair.eva.go("zoe-host")
    for sender in (open_pair.max, zoe):
        body = message(sender, open_pair.eva, conversation=f"c_{sender.host.name[:3]}")
        answer = await open_pair.eva.hook(signed(sender, body, "m_same"), body, sender.certificate)
        assert answer.status_code == 202
    assert len(open_pair.eva.messages()) == 2
    assert own_key(zoe) != own_key(open_pair.max)
