"""What the operators' group brings about in the database, and that out of sight is closed (P2, P3, P9)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from governor_pair import GovernorPair

from governor.errors import CodeError
from governor.message import PauseReason, Switch
from governor.store.tables import Notice, TelegramUpdate
from governor.supervision.operator_code import check_code, enroll
from governor.supervision.seeing import CHAT_ID
from governor.supervision.starting import start
from governor.supervision.telegram_operations import TelegramOperations
from governor.wiring import limits_of

WHO = "telegram:7"
CHAT = -1001


@pytest.fixture
def group(pair: GovernorPair) -> TelegramOperations:
    """Give Max's governor a group, and open both sides."""
    one = pair.max
    start(one.store, one.host, limits_of(one.home), CHAT)
    pair.go()
    return TelegramOperations(one.store, one.host, one.home.path, one.bell)


async def post_all(group: TelegramOperations) -> None:
    while posts := await group.next_posts(50):
        for post in posts:
            await group.posted(post.notice_id, 1)


def reason(pair: GovernorPair) -> str | None:
    pair.max.tick(telegram=True)
    return pair.max.link("eva-host").reason


async def test_an_exchange_that_is_not_shown_for_two_minutes_pauses(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    await post_all(group)
    pair.max.send("eva", "v1.0.0")
    pair.clock.advance(seconds=120)
    await group.polled(pair.clock.now())
    assert reason(pair) is None
    pair.clock.advance(seconds=1)
    assert reason(pair) == PauseReason.UNSEEN
    await group.go("eva-host", WHO, version=None, said_at=pair.clock.now())
    assert reason(pair) == PauseReason.UNSEEN  # GO does not help while it is not shown
    await post_all(group)
    await group.go("eva-host", WHO, version=None, said_at=pair.clock.now())
    assert reason(pair) is None


async def test_five_minutes_without_a_poll_pause(pair: GovernorPair, group: TelegramOperations) -> None:
    await post_all(group)
    for _ in range(2):
        pair.clock.advance(minutes=4)
        await group.polled(pair.clock.now())
        await group.acted(pair.clock.now(), WHO)
        assert reason(pair) is None
    pair.clock.advance(minutes=4)
    await group.acted(pair.clock.now(), WHO)
    pair.clock.advance(minutes=1, seconds=1)
    assert reason(pair) == PauseReason.UNSEEN


async def test_a_rival_poller_pauses_every_link_and_is_told_once(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    for _ in range(3):
        await group.rival_poller(present=True)
    assert pair.max.link("eva-host").reason == PauseReason.RIVAL_POLLER
    assert len([notice for notice in pair.max.notices() if "409" in notice]) == 1
    assert pair.max.go("eva-host")[0].refusal == "cause_persists"  # nor by the operator's code
    pair.max.restart()  # and it is not known any more who polls
    assert pair.max.go("eva-host")[0].switch == Switch.RUNNING


async def test_activity_in_the_group_keeps_the_link_open(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    pair.clock.advance(minutes=4)
    await group.acted(pair.clock.now(), WHO)
    pair.clock.advance(minutes=4)
    pair.max.send("eva", "v1.0.0")
    assert pair.max.audit("human_acted")[-1].reason == WHO


async def test_only_a_go_that_opened_lifts_the_lock_of_the_code(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    governor = pair.max
    enroll(governor.store, governor.home.path, pair.clock.now(), lambda: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP")

    def guess() -> str:
        with pytest.raises(CodeError) as error:
            check_code(governor.store, governor.home.path, pair.clock.now(), "x")
        return error.value.message

    for _ in range(5):
        assert guess() == "Wrong code."
    assert "locked" in guess()
    said_at = pair.clock.now()
    pair.clock.advance(seconds=61)
    await group.go("eva-host", WHO, version=None, said_at=said_at)  # too old
    assert "locked" in guess()
    await group.go("eva-host", WHO, version=None, said_at=pair.clock.now())
    assert guess() == "Wrong code."


async def test_what_was_shown_is_not_kept_for_the_group(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    pair.max.send("eva", "v1.0.0")
    assert [row.foreign for row in pair.max.rows(Notice) if row.foreign] == ["v1.0.0"]
    await post_all(group)
    assert [row.foreign for row in pair.max.rows(Notice) if row.foreign] == []
    assert {row.post_id for row in pair.max.rows(Notice) if row.posted_at} >= {1}


async def test_every_exchange_is_told_in_both_groups(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.send("eva", "v1.0.0")
    await pair.settle()
    (ours,) = [row for row in pair.max.rows(Notice) if row.foreign]
    assert ours.ours.startswith("max@max-host -> eva@eva-host")
    assert "out 1/50" in ours.ours
    (theirs,) = [row for row in pair.eva.rows(Notice) if row.foreign]
    assert "in 1/50" in theirs.ours
    assert "1.0.0" in (theirs.foreign or "")
    assert ours.foreign == "v1.0.0"


async def test_a_refused_act_is_on_record_and_the_bot_alone_answers(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    await group.refused("telegram:8", "go", "not_an_operator")
    record = pair.max.audit("go_refused")[-1]
    assert (record.reason, record.detail) == ("not_an_operator", {"by": "telegram:8", "act": "go"})
    assert not any("telegram:8" in notice for notice in pair.max.notices())  # a stranger fills no lane


async def test_updates_are_forgotten_after_two_weeks(pair: GovernorPair, group: TelegramOperations) -> None:
    assert await group.record_update(1, 10)
    pair.clock.advance(days=14, seconds=1)
    assert await group.record_update(1, 11)
    assert [row.update_id for row in pair.max.rows(TelegramUpdate)] == [11]


async def test_the_groups_new_id_is_remembered(pair: GovernorPair, group: TelegramOperations) -> None:
    await group.migrated(-2002)
    start(pair.max.store, pair.max.host, limits_of(pair.max.home), CHAT)
    with pair.max.store.reading() as uow:
        assert uow.fact(CHAT_ID) == "-2002"
    start(pair.max.store, pair.max.host, limits_of(pair.max.home), -3003)  # the settings name another
    with pair.max.store.reading() as uow:
        assert uow.fact(CHAT_ID) == "-3003"


async def test_another_group_is_not_told_what_waited_for_the_first(
    pair: GovernorPair, group: TelegramOperations
) -> None:
    pair.max.send("eva", "v1.0.0")
    start(pair.max.store, pair.max.host, limits_of(pair.max.home), CHAT)
    assert any(post.foreign for post in await group.next_posts(50))  # a restart loses none
    start(pair.max.store, pair.max.host, limits_of(pair.max.home), -3003)
    assert [post.ours.split(":")[0] for post in await group.next_posts(50)] == ["max-host started"]


async def test_outcomes_of_a_post_that_is_gone_change_nothing(group: TelegramOperations) -> None:
    await group.posted(999, 1)
    await group.post_failed(999, group.host.clock.now() + timedelta(seconds=1), "400")


async def test_a_new_pair_shows_the_state_of_all_links_at_the_start(
    make_pair: Callable[..., GovernorPair],
) -> None:
    pair = make_pair()
    pair.max.go("eva-host")
    pair.clock.advance(seconds=75)
    pair.max.restart()
    told = pair.max.notices()[-1]
    assert told.startswith("max-host started: 0 message(s) to send again, 0 to read again.")
    assert "eva-host: running, 3:45 left, out 0/50, in 0/50, last by tester" in told
