"""What the group's bot may expect of its operations: the database's, and those with a mere memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import pytest
from fakes_operations import HandClock, MemoryOperations, link
from governor_pair import FakeClock, GovernorPair

from governor.directory.notices import notify
from governor.message import PauseReason, Switch
from governor.store.tables import Notice
from governor.supervision.operations import Lane, Operations, Post
from governor.supervision.telegram_operations import TelegramOperations

EVA, ZOE = "eva-host", "zoe-host"
WHO = "telegram:7"


class Bench(Protocol):
    """Operations over two links that await their first GO, and what else a test has to bring about."""

    clock: HandClock | FakeClock
    operations: Operations

    def notice(
        self, lane: Lane, ours: str, foreign: str | None = None, button: tuple[str, int] | None = None
    ) -> None:
        """Let something be told to the group."""
        ...


@dataclass
class MemoryBench:
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.operations = MemoryOperations(self.clock)
        self.operations.add(*(link(peer, reason=PauseReason.AWAITING_FIRST_GO) for peer in (EVA, ZOE)))
        self.numbers = iter(range(1, 100))

    def notice(
        self, lane: Lane, ours: str, foreign: str | None = None, button: tuple[str, int] | None = None
    ) -> None:
        self.operations.waiting.append(Post(next(self.numbers), lane, ours, foreign, button))


class DatabaseBench:
    def __init__(self, pair: GovernorPair) -> None:
        pair.third()
        self.clock, self.governor = pair.clock, pair.max
        self.operations = TelegramOperations(
            self.governor.store, self.governor.host, self.governor.home.path, self.governor.bell
        )
        self.seen_until = max(row.id or 0 for row in self.governor.rows(Notice))
        with self.governor.store.begin() as uow:
            for row in uow.all(Notice):
                row.posted_at = self.clock.now()

    def notice(
        self, lane: Lane, ours: str, foreign: str | None = None, button: tuple[str, int] | None = None
    ) -> None:
        peer, version = button or (None, None)
        with self.governor.store.begin() as uow:
            notify(uow, self.clock.now(), ours, peer=peer, foreign=foreign, lane=lane.value, version=version)


@pytest.fixture(params=["memory", "database"])
def bench(request: pytest.FixtureRequest, make_pair: Callable[..., GovernorPair]) -> Bench:
    return MemoryBench() if request.param == "memory" else DatabaseBench(make_pair())


async def opened(bench: Bench) -> None:
    for peer in (EVA, ZOE):
        (answer,) = await bench.operations.go(peer, WHO, version=None, said_at=bench.clock.now())
        assert answer.opened
    bench.clock.advance(seconds=1)


async def switches(bench: Bench) -> dict[str, Switch]:
    return {each.peer: each.switch for each in await bench.operations.status()}


async def version_of(bench: Bench, peer: str) -> int:
    return next(each.version for each in await bench.operations.status() if each.peer == peer)


async def test_an_update_is_new_once(bench: Bench) -> None:
    assert await bench.operations.record_update(1, 10)
    assert not await bench.operations.record_update(1, 10)
    assert await bench.operations.record_update(2, 10)  # another bot's numbers are its own
    assert await bench.operations.record_update(1, 9)  # Telegram may restart them anywhere


async def test_status_tells_every_link_as_it_is(bench: Bench) -> None:
    eva, zoe = await bench.operations.status()
    assert (eva.peer, zoe.peer) == (EVA, ZOE)
    assert (eva.switch, eva.reason) == (Switch.PAUSED, PauseReason.AWAITING_FIRST_GO)
    assert (eva.out_used, eva.in_used, eva.cap, eva.watched_for) == (0, 0, 50, None)


async def test_stop_concerns_one_link_or_all(bench: Bench) -> None:
    await opened(bench)
    (eva,) = await bench.operations.stop(EVA, WHO)
    assert (eva.peer, eva.switch, eva.acted_by) == (EVA, Switch.STOPPED, WHO)
    assert await switches(bench) == {EVA: Switch.STOPPED, ZOE: Switch.RUNNING}
    both = await bench.operations.stop(None, WHO)
    assert {each.peer: each.switch for each in both} == {EVA: Switch.STOPPED, ZOE: Switch.STOPPED}


async def test_stop_twice_is_one_change(bench: Bench) -> None:
    await opened(bench)
    (first,) = await bench.operations.stop(EVA, WHO)
    (again,) = await bench.operations.stop(EVA, WHO)
    assert first.version == again.version


async def test_an_unknown_link_is_none(bench: Bench) -> None:
    assert await bench.operations.stop("nobody", WHO) == []
    assert await bench.operations.go("nobody", WHO, version=None, said_at=bench.clock.now()) == []
    assert await bench.operations.go("nobody", WHO, version=1, said_at=None) == []


async def test_a_bare_go_skips_links_that_await_their_first(bench: Bench) -> None:
    answers = await bench.operations.go(None, WHO, version=None, said_at=bench.clock.now())
    assert [(each.opened, each.reason) for each in answers] == [(False, "awaits_first_go")] * 2
    (answer,) = await bench.operations.go(EVA, WHO, version=None, said_at=bench.clock.now())
    assert (answer.opened, answer.reason, answer.link.switch) == (True, None, Switch.RUNNING)
    assert answer.link.watched_for == timedelta(minutes=5)
    assert answer.link.acted_by == WHO
    assert await switches(bench) == {EVA: Switch.RUNNING, ZOE: Switch.PAUSED}


async def test_a_button_opens_the_version_it_was_made_for_once(bench: Bench) -> None:
    await opened(bench)
    (stopped,) = await bench.operations.stop(EVA, WHO)
    (old,) = await bench.operations.go(EVA, WHO, version=stopped.version - 1, said_at=None)
    assert (old.opened, old.reason) == (False, "old_version")
    (right,) = await bench.operations.go(EVA, WHO, version=stopped.version, said_at=None)
    assert (right.opened, right.link.version) == (True, stopped.version + 1)
    await bench.operations.stop(EVA, WHO)
    (again,) = await bench.operations.go(EVA, WHO, version=stopped.version, said_at=None)
    assert (again.opened, again.reason) == (False, "old_version")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (timedelta(seconds=-61), "before_closing"),
        (timedelta(seconds=-11), "before_closing"),
        (timedelta(seconds=-9), None),
        (timedelta(0), None),
        (timedelta(seconds=61), "clocks_differ"),
    ],
)
async def test_a_typed_go_counts_from_the_closing_on(
    bench: Bench, said: timedelta, reason: str | None
) -> None:
    await opened(bench)
    await bench.operations.stop(EVA, WHO)
    bench.clock.advance(seconds=10)
    (answer,) = await bench.operations.go(EVA, WHO, version=None, said_at=bench.clock.now() + said)
    assert (answer.opened, answer.reason) == (reason is None, reason)


async def test_a_typed_go_is_good_for_a_minute(bench: Bench) -> None:
    await opened(bench)
    await bench.operations.stop(EVA, WHO)
    said_at: datetime = bench.clock.now()
    bench.clock.advance(seconds=61)
    (answer,) = await bench.operations.go(EVA, WHO, version=None, said_at=said_at)
    assert (answer.opened, answer.reason) == (False, "too_old")
    assert await switches(bench) == {EVA: Switch.STOPPED, ZOE: Switch.RUNNING}


async def test_nothing_opens_while_another_program_polls(bench: Bench) -> None:
    await opened(bench)
    await bench.operations.stop(None, WHO)
    await bench.operations.rival_poller(present=True)
    version = await version_of(bench, EVA)
    for said in ({"version": None, "said_at": bench.clock.now()}, {"version": version, "said_at": None}):
        (answer,) = await bench.operations.go(EVA, WHO, **said)  # type: ignore[arg-type]
        assert (answer.opened, answer.reason) == (False, "cause_persists")
    await bench.operations.rival_poller(present=False)
    (answer,) = await bench.operations.go(EVA, WHO, version=None, said_at=bench.clock.now())
    assert answer.opened


async def test_activity_opens_nothing(bench: Bench) -> None:
    await bench.operations.acted(bench.clock.now(), WHO)
    assert await switches(bench) == {EVA: Switch.PAUSED, ZOE: Switch.PAUSED}


async def test_posts_come_answers_first_and_oldest_first(bench: Bench) -> None:
    bench.notice(Lane.MIRROR, "first", foreign="text of an agent")
    bench.notice(Lane.ANSWER, "second", button=(EVA, 3))
    bench.notice(Lane.MIRROR, "third")
    bench.notice(Lane.ANSWER, "fourth")
    posts = await bench.operations.next_posts(10)
    assert [post.ours for post in posts] == ["second", "fourth", "first", "third"]
    assert [post.button for post in posts] == [(EVA, 3), None, None, None]
    assert [post.foreign for post in posts] == [None, None, "text of an agent", None]
    assert [post.ours for post in await bench.operations.next_posts(2)] == ["second", "fourth"]


async def test_a_post_that_came_through_is_not_given_again(bench: Bench) -> None:
    bench.notice(Lane.MIRROR, "first")
    bench.notice(Lane.MIRROR, "second")
    (first, _second) = await bench.operations.next_posts(10)
    await bench.operations.posted(first.notice_id, 77)
    assert [post.ours for post in await bench.operations.next_posts(10)] == ["second"]


async def test_a_post_that_failed_is_due_again_later(bench: Bench) -> None:
    bench.notice(Lane.MIRROR, "first")
    (post,) = await bench.operations.next_posts(10)
    await bench.operations.post_failed(post.notice_id, bench.clock.now() + timedelta(seconds=30), "429")
    bench.clock.advance(seconds=29)
    assert await bench.operations.next_posts(10) == []
    bench.clock.advance(seconds=1)
    assert [again.ours for again in await bench.operations.next_posts(10)] == ["first"]
