"""Operators at their Telegram group, with the real library and a loopback Bot API server."""

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from traceback import format_exception

import pytest

from governor.errors import ConfigError
from governor.message import PauseReason, Switch
from governor.supervision.operations import Lane, Post
from governor.supervision.telegram_api import TelegramApi
from governor.supervision.telegram_bot import RIVAL_GONE_AFTER, RIVAL_PAUSE, TelegramBot
from governor.supervision.telegram_errors import UnknownTokenError
from tests.fakes_operations import HandClock, MemoryOperations, link
from tests.telegram_group import FORWARDED, SCHEDULED, VIA_BOT, Posted
from tests.telegram_server import TelegramServer, eventually

MAX, EVA = "11:MAX-SECRET", "22:EVA-SECRET"
pytestmark = pytest.mark.filterwarnings("ignore:.*retry_after.*")

OPERATOR, SECOND_OPERATOR, STRANGER = 42, 43, 66


@dataclass
class Scene:
    """A group with two operators and the bots of two governors."""

    server: TelegramServer
    clock: HandClock
    folder: Path
    max: MemoryOperations
    eva: MemoryOperations
    naps: list[float] = field(default_factory=list)

    def bot(
        self,
        token: str = MAX,
        operations: MemoryOperations | None = None,
        chat_id: int | None = None,
        answer_within: timedelta = timedelta(seconds=10),
    ) -> TelegramBot:
        return TelegramBot(
            token,
            chat_id or self.server.chat_id,
            [OPERATOR, SECOND_OPERATOR],
            operations or (self.max if token == MAX else self.eva),
            self.clock,
            lock_path=self.folder / f"{token[:2]}.lock",
            base_url=self.server.base_url,
            hold_for=timedelta(seconds=20),
            answer_within=answer_within,
            look_every=timedelta(seconds=0.02),
            sleep=self._nap,
        )

    async def _nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(0.01)

    @asynccontextmanager
    async def running(self, token: str = MAX, bot: TelegramBot | None = None) -> AsyncIterator[TelegramBot]:
        """Run a bot, from its first poll on, until the block ends."""
        name = self.server.bots[token].username
        polls = self.server.calls.count((name, "getupdates"))
        bot, stop = bot or self.bot(token), asyncio.Event()
        task = asyncio.create_task(bot.run(stop))
        try:
            await eventually(lambda: task.done() or self.server.calls.count((name, "getupdates")) > polls)
            yield bot
        finally:
            stop.set()
            await asyncio.wait_for(task, 10)

    def texts(self) -> list[str]:
        return [post.text for post in self.server.posts()]

    async def shown(self, piece: str, count: int = 1) -> Posted:
        """Wait until `count` posts hold a piece of text; return the last."""
        await eventually(lambda: sum(piece in text for text in self.texts()) >= count)
        return [post for post in self.server.posts() if piece in post.text][-1]

    async def settled(self, user: int = OPERATOR) -> None:
        """Wait until all that was said so far has been acted on."""
        asked = sum("HELP" in text for text in self.texts())
        self.server.say(user, "/help@max_gov_bot")
        await self.shown("HELP", asked + 1)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = HandClock()
    async with TelegramServer(lambda: clock.now().timestamp()) as server:
        server.add_bot(MAX, "max_gov_bot", admin=True)
        server.add_bot(EVA, "eva_gov_bot", admin=True)
        max_host, eva_host = MemoryOperations(clock), MemoryOperations(clock)
        max_host.add(link("eva-host"))
        eva_host.add(link("max-host"))
        yield Scene(server, clock, tmp_path, max_host, eva_host)


def mirror(
    notice_id: int, ours: str, foreign: str | None = None, button: tuple[str, int] | None = None
) -> Post:
    return Post(notice_id, Lane.MIRROR, ours, foreign, button)


# -- STOP, GO, STATUS


async def test_stop_go_and_status_report_what_is(scene: Scene) -> None:
    async with scene.running():
        scene.server.say(OPERATOR, "GO")
        await scene.shown("eva-host: running, by telegram:42; out 0/50, in 0/50; watched for 5 min 0 s more")
        scene.server.say(SECOND_OPERATOR, "stop, please look at this")
        await scene.shown("eva-host: stopped, by telegram:43; out 0/50, in 0/50")
        scene.server.say(OPERATOR, "\u00c9TAT")
        await scene.shown("eva-host: stopped, by telegram:43; out 0/50, in 0/50", 2)
    assert [act[0] for act in scene.max.acts] == ["go", "stop"]


async def test_two_governors_in_one_group_each_answer_for_their_own_links(scene: Scene) -> None:
    async with scene.running(MAX), scene.running(EVA):
        scene.server.say(OPERATOR, "/go@max_gov_bot")
        assert (await scene.shown("eva-host: running")).bot == "max_gov_bot"
        assert scene.eva.links["max-host"].switch is Switch.PAUSED
        scene.server.say(OPERATOR, "GO")
        assert (await scene.shown("max-host: running")).bot == "eva_gov_bot"
        scene.server.say(STRANGER, "STOP")
        await scene.shown("eva-host: stopped")
        await scene.shown("max-host: stopped")
    assert scene.max.refusals == scene.eva.refusals == []


async def test_a_bare_go_skips_links_that_await_their_first(scene: Scene) -> None:
    scene.max.add(link("new-host", reason=PauseReason.AWAITING_FIRST_GO))
    async with scene.running():
        scene.server.say(OPERATOR, "GO")
        await scene.shown("not opened: a new link needs a GO with its name")
        scene.server.say(OPERATOR, "GO new-host")
        await scene.shown("new-host: running")
        scene.server.say(OPERATOR, "GO nobody-host")
        await scene.shown("There is no link to nobody-host")


async def test_a_stop_for_a_link_that_does_not_exist_stops_all(scene: Scene) -> None:
    scene.max.add(link("third-host", Switch.RUNNING))
    async with scene.running():
        scene.server.say(OPERATOR, "stop everything")
        await scene.shown("third-host: stopped")
    assert {now.switch for now in scene.max.links.values()} == {Switch.STOPPED}


async def test_stop_goes_ahead_of_all_that_was_said_before(scene: Scene) -> None:
    scene.max.add(link("eva-host", Switch.STOPPED))
    scene.server.say(OPERATOR, "GO")
    scene.server.say(STRANGER, "STOP")
    async with scene.running():
        await scene.settled()
    assert scene.max.acts == [("stop", "", "telegram:66")]


async def test_a_go_that_a_stop_overtakes_opens_nothing_though_its_date_is_later(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "paused", button=("eva-host", 1)))
    async with scene.running():
        post = await scene.shown("paused")
    scene.server.say(OPERATOR, "GO eva-host", date=scene.clock.now().timestamp() + 20)
    scene.server.say(OPERATOR, "nothing else", date=scene.clock.now().timestamp() + 21)
    scene.server.press(OPERATOR, post.message_id, "go:eva-host:2")
    scene.server.say(STRANGER, "STOP")
    async with scene.running():
        await scene.shown("That GO came before a STOP")
        await eventually(lambda: scene.server.notes)
    assert scene.max.acts == [("stop", "", "telegram:66")]
    assert [refusal[2] for refusal in scene.max.refusals] == ["before_closing"] * 2
    assert scene.max.links["eva-host"].switch is Switch.STOPPED


async def test_a_go_after_the_stop_of_the_same_batch_counts(scene: Scene) -> None:
    scene.max.add(link("eva-host", Switch.RUNNING))
    scene.server.say(STRANGER, "STOP")
    scene.server.say(OPERATOR, "GO", date=scene.clock.now().timestamp() + 1)
    async with scene.running():
        await scene.shown("eva-host: running")
    assert [act[0] for act in scene.max.acts] == ["stop", "go"]


# -- who


@pytest.mark.parametrize(
    ("say", "reason"),
    [
        (lambda s: s.anonymous_admin_says("GO"), "anonymous"),
        (lambda s: s.channel_says("GO"), "anonymous"),
        (lambda s: s.say(STRANGER, "GO"), "not_an_operator"),
        (lambda s: s.say(STRANGER, "STATUS"), "not_an_operator"),
        (lambda s: s.say(OPERATOR, "GO", also=FORWARDED), "forwarded"),
        (lambda s: s.edit(s.say(OPERATOR, "no"), "GO"), "edited"),
        (lambda s: s.say(OPERATOR, "GO", also=SCHEDULED), "automatic"),
        (lambda s: s.say(OPERATOR, "GO", also=VIA_BOT), "automatic"),
        (lambda s: s.say(OPERATOR, "GO", date=s.now() - 61), "too_old"),
        (lambda s: s.say(OPERATOR, "GO", date=s.now() + 61), "clocks_differ"),
    ],
)
async def test_a_go_that_does_not_count_is_refused_once_and_says_why(
    scene: Scene, say: Callable[[TelegramServer], object], reason: str
) -> None:
    async with scene.running():
        say(scene.server)
        await scene.settled()
        await eventually(lambda: len(scene.texts()) == 2)
    assert [refusal[2] for refusal in scene.max.refusals] == [reason]
    assert scene.max.acts == []
    assert scene.max.links["eva-host"].switch is Switch.PAUSED


@pytest.mark.parametrize(
    "say",
    [
        lambda s: s.say(STRANGER, "STOP"),
        lambda s: s.anonymous_admin_says("STOP"),
        lambda s: s.channel_says("STOP"),
        lambda s: s.say(STRANGER, "STOP", also=FORWARDED),
        lambda s: s.edit(s.say(STRANGER, "STPO"), "STOP"),
        lambda s: s.say_below_picture(STRANGER, "STOP that"),
        lambda s: s.say(OPERATOR, "STOP", date=s.now() - 80_000),
    ],
)
async def test_a_stop_of_any_human_in_the_group_always_counts(
    scene: Scene, say: Callable[[TelegramServer], object]
) -> None:
    scene.max.add(link("eva-host", Switch.RUNNING))
    async with scene.running():
        say(scene.server)
        await scene.shown("eva-host: stopped")


async def test_strangers_are_answered_once_a_minute_but_recorded_each_time(scene: Scene) -> None:
    async with scene.running():
        for _ in range(3):
            scene.server.say(STRANGER, "GO")
            await scene.settled()
        assert sum("Only the operators" in text for text in scene.texts()) == 1
        scene.clock.advance(60)
        scene.server.say(STRANGER, "GO")
        await scene.shown("Only the operators", 2)
    assert scene.max.refusals == [("telegram:66", "go", "not_an_operator")] * 4


async def test_bots_and_other_chats_are_ignored(scene: Scene) -> None:
    scene.server.set_standing(scene.server.bots[MAX], admin=True)
    scene.server.bots[MAX].privacy = False
    scene.server.bots[MAX].bot_to_bot = True
    scene.max.add(link("eva-host", Switch.RUNNING))
    scene.eva.waiting.append(mirror(1, "STOP"))
    async with scene.running(MAX), scene.running(EVA):
        await scene.shown("STOP")
        for text in ("STOP", "GO", "hello"):
            scene.server.say(OPERATOR, text, chat=-1009)
        await scene.settled()
    assert scene.max.acts == scene.max.refusals == scene.max.activity == []
    assert len([post for post in scene.server.posts() if post.bot == "max_gov_bot"]) == 1


async def test_a_caption_is_no_whole_message_but_activity(scene: Scene) -> None:
    async with scene.running():
        scene.server.say_below_picture(OPERATOR, "GO")
        await scene.settled()
    assert scene.max.acts == []
    assert len(scene.max.activity) == 1


async def test_activity_is_what_operators_do_dated_by_itself(scene: Scene) -> None:
    now = scene.clock.now()
    async with scene.running():
        written = scene.server.say(OPERATOR, "looks good", date=now.timestamp() - 90)
        scene.server.react(SECOND_OPERATOR, written, date=now.timestamp() + 500)
        scene.server.react(STRANGER, written)
        scene.server.say(STRANGER, "hello")
        scene.server.say(OPERATOR, "hello", also=SCHEDULED)
        scene.server.say(OPERATOR, "STATUS")
        scene.server.say(OPERATOR, "STOP")
        await scene.settled()
    assert scene.max.activity == [(now - timedelta(seconds=90), "telegram:42"), (now, "telegram:43")]


# -- buttons


async def test_a_button_opens_once_and_an_old_one_lifts_nothing(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "eva-host paused: nobody was watching", button=("eva-host", 1)))
    async with scene.running():
        post = await scene.shown("nobody was watching")
        assert post.buttons == [("GO eva-host", "go:eva-host:1")]
        scene.server.say(OPERATOR, "a poll that empties the queue comes first")
        await eventually(lambda: scene.max.polls)
        scene.server.press(OPERATOR, post.message_id)
        await scene.shown("eva-host: running")
        await eventually(lambda: scene.server.notes)
        await eventually(lambda: scene.server.posts()[0].buttons == [])
        opened = scene.max.links["eva-host"]

        scene.server.press(OPERATOR, post.message_id, "go:eva-host:1")
        await scene.shown("this pause was already lifted; nothing changed")
        assert scene.max.links["eva-host"] == opened

        scene.server.say(OPERATOR, "STOP")
        await scene.shown("eva-host: stopped")
        scene.server.press(OPERATOR, post.message_id, "go:eva-host:1")
        await scene.shown("not opened: that button belongs to an earlier pause")
    assert scene.max.links["eva-host"].switch is Switch.STOPPED


@pytest.mark.parametrize(
    ("user", "data", "reason"),
    [
        (STRANGER, "go:eva-host:1", "not_an_operator"),
        (OPERATOR, "go:eva-host", "unknown_button"),
        (OPERATOR, "stop", "unknown_button"),
    ],
)
async def test_a_press_that_does_not_count_is_told_to_who_pressed(
    scene: Scene, user: int, data: str, reason: str
) -> None:
    scene.max.waiting.append(mirror(1, "paused", button=("eva-host", 1)))
    async with scene.running():
        post = await scene.shown("paused")
        scene.server.say(STRANGER, "hm")
        await eventually(lambda: scene.max.polls)
        scene.server.press(user, post.message_id, data)
        await eventually(lambda: scene.server.notes)
    assert [refusal[2] for refusal in scene.max.refusals] == [reason]
    assert scene.max.acts == scene.max.activity == []


async def test_a_press_that_cannot_be_dated_does_not_count(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "paused", button=("eva-host", 1)))
    async with scene.running():
        post = await scene.shown("paused")
    scene.server.press(OPERATOR, post.message_id)
    async with scene.running():
        await eventually(lambda: scene.server.notes)
        assert "not certain when that button was pressed" in scene.server.notes[0]
        assert scene.max.acts == []
        scene.server.press(OPERATOR, post.message_id)
        await scene.shown("eva-host: running")
        scene.server.say(OPERATOR, "STOP")
        await scene.shown("eva-host: stopped")
        polls = len(scene.max.polls)
        scene.server.fail("getUpdates", 502)
        await eventually(lambda: 1.0 in scene.naps)
        scene.clock.advance(61)
        scene.server.press(OPERATOR, post.message_id, "go:eva-host:3")
        await eventually(lambda: len(scene.server.notes) == 3)
    assert len(scene.max.polls) == polls + 1
    assert scene.max.links["eva-host"].switch is Switch.STOPPED


# -- restarts and failures


async def test_an_update_that_comes_again_after_a_restart_is_not_acted_on_again(scene: Scene) -> None:
    scene.server.say(OPERATOR, "GO")
    queue = scene.server.bots[MAX].queue
    replay = copy.deepcopy(queue)
    async with scene.running():
        await scene.shown("eva-host: running")
        await eventually(lambda: not queue)
    queue.extend(replay)
    async with scene.running():
        await scene.settled()
    assert scene.max.acts == [("go", "", "telegram:42")]


async def test_a_stop_is_acted_on_though_the_crash_came_right_after_its_record(scene: Scene) -> None:
    scene.max.add(link("eva-host", Switch.RUNNING))
    scene.server.say(OPERATOR, "STOP")
    update_id = scene.server.bots[MAX].queue[0]["update_id"]
    scene.max.seen.add((11, update_id))
    async with scene.running():
        await scene.shown("eva-host: stopped")


async def test_while_nothing_can_be_recorded_stop_works_and_go_waits(scene: Scene) -> None:
    scene.max.add(link("eva-host", Switch.RUNNING), link("third-host"))
    scene.max.broken.add("record_update")
    scene.server.say(OPERATOR, "hello")
    scene.server.say(STRANGER, "STOP eva-host")
    scene.server.say(OPERATOR, "GO third-host")
    async with scene.running():
        await eventually(lambda: scene.max.links["eva-host"].switch is Switch.STOPPED)
        assert scene.max.links["third-host"].switch is Switch.PAUSED
        scene.max.broken.clear()
        await scene.shown("third-host: running")
    assert scene.max.links["eva-host"].switch is Switch.STOPPED


async def test_an_update_that_cannot_be_read_hides_no_stop(scene: Scene) -> None:
    scene.max.add(link("eva-host", Switch.RUNNING))
    queue = scene.server.bots[MAX]
    scene.server.inject(queue, {"message": {"message_id": 1, "date": 10**20}})
    scene.server.inject(queue, {"callback_query": {"id": "1", "from": None}})
    scene.server.inject(queue, {"something_new": {"from": "the future"}})
    scene.server.say(OPERATOR, "STOP")
    async with scene.running():
        await scene.shown("eva-host: stopped")
        await eventually(lambda: not queue.queue)


async def test_a_press_on_a_message_that_is_nowhere_is_ignored(scene: Scene) -> None:
    operator = {"id": OPERATOR, "is_bot": False, "first_name": "O"}
    query = {
        "id": "9",
        "from": operator,
        "chat_instance": "1",
        "data": "go:eva-host:1",
        "inline_message_id": "x",
    }
    async with scene.running():
        scene.server.inject(scene.server.bots[MAX], {"callback_query": query})
        await scene.settled()
    assert scene.max.acts == scene.max.refusals == []


async def test_telegram_not_reachable_at_the_start_is_waited_for(scene: Scene) -> None:
    scene.server.fail("getMe", 502, times=3)
    scene.server.fail("setMyCommands", 400)
    async with scene.running():
        await eventually(lambda: scene.naps[:3] == [1.0, 2.0, 4.0])
        await scene.settled()


async def test_a_poll_waits_as_long_as_telegram_asks(scene: Scene) -> None:
    async with scene.running():
        scene.server.fail("getUpdates", 429, retry_after=17)
        await eventually(lambda: 17.0 in scene.naps)
        await scene.settled()


async def test_what_becomes_of_other_groups_does_not_matter(scene: Scene) -> None:
    group = {"id": -1009, "type": "group", "title": "Another group"}
    max_bot = scene.server.bots[MAX]
    moved = {"message_id": 1, "date": 1, "chat": group, "migrate_to_chat_id": -1010}
    member = {"status": "member", "user": max_bot.user}
    change = {
        "chat": group,
        "from": max_bot.user,
        "date": 1,
        "old_chat_member": member,
        "new_chat_member": member,
    }
    async with scene.running():
        scene.server.inject(max_bot, {"message": moved})
        scene.server.inject(max_bot, {"my_chat_member": change})
        await scene.settled()
    assert scene.max.moved_to is None
    assert "sees only" not in scene.texts()[0]


async def test_a_rival_poller_is_reported_and_its_end_too(scene: Scene) -> None:
    async with scene.running():
        scene.server.fail("getUpdates", 409)
        await eventually(lambda: scene.max.rival == [True])
        await eventually(lambda: RIVAL_PAUSE in scene.naps)
        scene.server.say(OPERATOR, "GO")
        await scene.shown("not opened: the cause of the pause persists")
        scene.clock.advance(RIVAL_GONE_AFTER - 1)
        await scene.settled()
        assert scene.max.rival == [True]
        scene.clock.advance(1)
        await scene.settled()
        await eventually(lambda: scene.max.rival == [True, False])
        scene.server.say(OPERATOR, "GO")
        await scene.shown("eva-host: running")
        await scene.settled()
    assert scene.max.rival == [True, False]


async def test_a_real_rival_is_noticed_by_telegrams_409(scene: Scene) -> None:
    other = MemoryOperations(scene.clock)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(scene.running())
        scene.folder = scene.folder / "another-host"
        scene.folder.mkdir()
        await stack.enter_async_context(scene.running(bot=scene.bot(operations=other)))
        await eventually(lambda: True in scene.max.rival or True in other.rival)


async def test_one_process_of_a_host_polls_with_a_token(scene: Scene) -> None:
    async with scene.running():
        with pytest.raises(ConfigError, match=r"process \d+ already polls Telegram .* stop that governor"):
            await asyncio.wait_for(scene.bot().run(asyncio.Event()), 5)
    scene.folder = scene.folder / "missing"
    with pytest.raises(ConfigError, match="cannot be opened"):
        await scene.bot().run(asyncio.Event())


async def test_a_token_that_telegram_does_not_know_is_an_error_and_stays_secret(
    scene: Scene, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    bot = TelegramBot(
        "33:WRONG-SECRET",
        scene.server.chat_id,
        [OPERATOR],
        scene.max,
        scene.clock,
        lock_path=scene.folder / "33.lock",
        base_url=scene.server.base_url,
    )
    with pytest.raises(ConfigError, match="copy the current one from @BotFather") as told:
        await bot.run(asyncio.Event())
    scene.server.fail("sendMessage", 500, times=2)
    async with scene.running():
        await scene.settled()
    api = TelegramApi(
        "33:WRONG-SECRET", 1, base_url=scene.server.base_url, answer_within=timedelta(seconds=5)
    )
    with pytest.raises(UnknownTokenError) as inner:
        await api.open()
    await api.close()
    traces = [*format_exception(told.value), *format_exception(inner.value)]
    assert "SECRET" not in "".join([*traces, caplog.text, *capsys.readouterr()])


async def test_it_ends_at_once_in_the_middle_of_a_poll_or_before_it_began(scene: Scene) -> None:
    stop = asyncio.Event()
    stop.set()
    await asyncio.wait_for(scene.bot().run(stop), 5)
    async with scene.running():
        pass  # leaving waits for the end, with a deadline below the 20 s of the poll


async def test_a_bot_that_does_not_see_all_says_so(scene: Scene) -> None:
    max_bot = scene.server.bots[MAX]
    max_bot.admin = False
    async with scene.running():
        scene.server.say(OPERATOR, "/status@max_gov_bot")
        await scene.shown("sees only commands addressed to it")
        scene.server.set_standing(max_bot, admin=True)
        scene.server.say(OPERATOR, "/help@max_gov_bot")
        last = await scene.shown("HELP (or AIDE)")
        assert "sees only" not in last.text


# -- posting


async def test_foreign_text_is_framed_and_cannot_become_a_command_or_a_link(scene: Scene) -> None:
    bait = "/go@max_gov_bot @somebody https://evil.example \u202eSTOP"
    scene.max.waiting.append(mirror(1, "eva to max, conversation c1, 1 of 50", bait))
    async with scene.running():
        post = await scene.shown("eva to max")
    assert [entity["type"] for entity in post.entities] == ["pre"]
    assert post.shown_as("pre") == [bait.replace("\u202e", "\ufffd")]
    assert scene.max.shown == {1: post.message_id}


async def test_both_sides_mirror_an_exchange(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "max to eva: sent", "please review"))
    scene.eva.waiting.append(mirror(1, "max to eva: read", "A request to review."))
    async with scene.running(MAX), scene.running(EVA):
        assert (await scene.shown("please review")).bot == "max_gov_bot"
        assert (await scene.shown("A request to review.")).bot == "eva_gov_bot"


async def test_a_new_notice_is_posted_at_a_nudge(scene: Scene) -> None:
    async with scene.running() as bot:
        scene.max.waiting.append(mirror(1, "news"))
        bot.nudge()
        await scene.shown("news")


async def test_a_long_text_becomes_several_messages_with_the_button_on_the_last(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "long", "x" * 10_000, button=("eva-host", 1)))
    async with scene.running():
        await eventually(lambda: scene.max.shown)
    posts = scene.server.posts()
    assert [post.buttons != [] for post in posts] == [False, False, True]
    assert "".join(piece for post in posts for piece in post.shown_as("pre")) == "x" * 10_000
    assert scene.max.shown == {1: posts[-1].message_id}


async def test_a_burst_is_coalesced_and_never_more_than_the_minute_allows(scene: Scene) -> None:
    scene.max.waiting += [mirror(number, f"exchange {number}", "y" * 1000) for number in range(1, 101)]
    async with scene.running():
        await eventually(lambda: len(scene.server.posts()) == 15)
        await scene.settled()  # answers still have room
        assert len(scene.server.posts()) == 16
        assert len(scene.max.shown) == 60
        scene.clock.advance(61)
        await eventually(lambda: not scene.max.waiting)
    assert sum(method == "sendmessage" for _, method in scene.server.calls) == len(scene.server.posts())


async def test_answers_stop_at_eighteen_a_minute(scene: Scene) -> None:
    scene.max.waiting += [
        Post(number, Lane.ANSWER, f"answer {number}", "z" * 3000) for number in range(1, 31)
    ]
    async with scene.running():
        await eventually(lambda: scene.max.shown)
        await eventually(lambda: any(nap > 50 for nap in scene.naps))
        assert len(scene.server.posts()) <= 18
    assert scene.max.failures == []


async def test_a_wait_that_telegram_asks_for_in_one_lane_does_not_hold_up_the_other(scene: Scene) -> None:
    scene.server.fail("sendMessage", 429, retry_after=30)
    scene.max.waiting.append(mirror(1, "the mirror"))
    hold = asyncio.Event()

    async def nap(seconds: float) -> None:
        scene.naps.append(seconds)
        await hold.wait()

    scene._nap = nap  # type: ignore[method-assign]
    async with scene.running():
        await eventually(lambda: scene.naps == [30.0])
        scene.server.say(OPERATOR, "STATUS")
        await scene.shown("eva-host: paused")
        assert scene.max.shown == {}
        hold.set()
        await scene.shown("the mirror")
    assert len(scene.server.posts()) == 2


async def test_a_group_that_moved_is_followed(tmp_path: Path) -> None:
    clock = HandClock()
    async with TelegramServer(lambda: clock.now().timestamp(), supergroup=False) as server:
        server.add_bot(MAX, "max_gov_bot", admin=True)
        scene = Scene(server, clock, tmp_path, MemoryOperations(clock), MemoryOperations(clock))
        scene.max.add(link("eva-host", Switch.RUNNING))
        async with scene.running():
            new = server.migrate(announce=False)
            scene.max.waiting.append(mirror(1, "after the move"))
            assert (await scene.shown("after the move")).chat_id == new
            assert scene.max.moved_to == new
            server.say(STRANGER, "STOP")
            await scene.shown("eva-host: stopped")


async def test_the_move_is_learnt_from_its_announcement_before_anything_else_is_heard(tmp_path: Path) -> None:
    clock = HandClock()
    async with TelegramServer(lambda: clock.now().timestamp(), supergroup=False) as server:
        server.add_bot(MAX, "max_gov_bot", admin=True)
        scene = Scene(server, clock, tmp_path, MemoryOperations(clock), MemoryOperations(clock))
        scene.max.add(link("eva-host", Switch.RUNNING))
        old = server.chat_id
        server.migrate()
        server.say(STRANGER, "STOP")
        server.fail("getChatMember", 400)
        async with scene.running(bot=scene.bot(chat_id=old)):
            await scene.shown("eva-host: stopped")
        assert scene.max.moved_to == server.chat_id
        scene.max.moved_to = None
        async with scene.running(bot=scene.bot(chat_id=old)):
            await eventually(lambda: scene.max.moved_to == server.chat_id)


async def test_posts_survive_failures_and_a_restart(scene: Scene) -> None:
    scene.max.waiting += [mirror(1, "first"), mirror(2, "second", button=("eva-host", 1))]
    scene.server.fail("sendMessage", 403, times=1000)
    async with scene.running():
        await eventually(lambda: scene.naps[:3] == [1.0, 2.0, 4.0])
    assert "bot was kicked" in scene.max.failures[0][1]
    scene.server._faults.clear()
    scene.clock.advance(120)
    async with scene.running():
        await eventually(lambda: len(scene.max.shown) == 2)
    assert scene.texts() == ["first", "second"]


async def test_what_may_have_arrived_is_sent_again_with_a_mark(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "the news"))
    scene.server.lose_answers("sendMessage", hold=1.5)
    async with scene.running(bot=scene.bot(answer_within=timedelta(seconds=0.5))):
        await eventually(lambda: scene.max.shown)
    assert scene.texts() == ["the news", "(sent again)\nthe news"]


async def test_an_answer_that_may_have_arrived_is_sent_again_once(scene: Scene) -> None:
    scene.server.lose_answers("sendMessage", times=2, hold=1.5)
    async with scene.running(bot=scene.bot(answer_within=timedelta(seconds=0.5))):
        scene.server.say(OPERATOR, "STATUS")
        await scene.shown("(sent again)\neva-host")
        await scene.settled()
    assert sum("eva-host" in text for text in scene.texts()) == 2


async def test_an_answer_that_waited_too_long_is_not_given(scene: Scene) -> None:
    scene.server.fail("sendMessage", 429, retry_after=90)
    hold = asyncio.Event()

    async def nap(seconds: float) -> None:
        scene.naps.append(seconds)
        await hold.wait()

    scene._nap = nap  # type: ignore[method-assign]
    async with scene.running():
        scene.server.say(OPERATOR, "STATUS")
        await eventually(lambda: scene.naps == [90.0])
        scene.server.say(OPERATOR, "HELP")
        await eventually(lambda: len(scene.max.seen) == 2)
        scene.clock.advance(90)
        hold.set()
        scene.server.say(OPERATOR, "GO")
        await scene.shown("eva-host: running")
    assert len(scene.texts()) == 1


async def test_a_text_that_telegram_refuses_holds_up_no_other(scene: Scene) -> None:
    scene.max.waiting += [mirror(1, "first"), mirror(2, "second"), mirror(3, "third")]
    scene.server.fail("sendMessage", 400, times=2)  # all together, then the first alone
    async with scene.running():
        await eventually(lambda: len(scene.max.shown) == 2)
        assert scene.texts() == ["second", "third"]
        assert [failure[0] for failure in scene.max.failures] == [1]
        scene.clock.advance(61)
        await scene.shown("first")


async def test_a_post_is_not_sent_twice_because_its_record_failed(scene: Scene) -> None:
    scene.max.waiting.append(mirror(1, "once"))
    scene.max.broken.add("posted")
    async with scene.running():
        await eventually(lambda: scene.naps[:2] == [1.0, 2.0])
        scene.max.broken.clear()
        await eventually(lambda: scene.max.shown)
    assert scene.texts() == ["once"]
