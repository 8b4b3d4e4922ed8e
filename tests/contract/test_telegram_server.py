"""The loopback Bot API server behaves as Telegram documents, as the real library sees it."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TimedOut,
)
from telegram.request import HTTPXRequest

from tests.telegram_group import FORWARDED, SCHEDULED, VIA_BOT
from tests.telegram_server import TelegramServer, eventually

pytestmark = pytest.mark.filterwarnings("ignore:.*retry_after.*")

MAX, EVA = "11:MAX", "22:EVA"
ALL = ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member"]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(lambda: 1_800_000_000.5) as running:
        yield running


@asynccontextmanager
async def library(server: TelegramServer, token: str) -> AsyncIterator[Bot]:
    request = HTTPXRequest(httpx_kwargs={"verify": False})  # no TLS here; reading the CA list is slow
    async with Bot(token, base_url=server.base_url, request=request, get_updates_request=request) as bot:
        yield bot


async def heard(bot: Bot, offset: int | None = None) -> list[str]:
    updates = await bot.get_updates(offset=offset, timeout=0, allowed_updates=ALL)
    return [update.message.text for update in updates if update.message and update.message.text]


async def test_the_library_introduces_itself_and_knows_its_privacy(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", privacy=False)
    async with library(server, MAX) as bot:
        assert bot.username == "max_bot"
        assert bot.bot.can_read_all_group_messages
        assert (await bot.get_chat(server.chat_id)).title == "Operators"
        assert (await bot.get_chat_member(server.chat_id, bot.id)).status == "member"
        assert await bot.delete_webhook()
        assert await bot.set_my_commands([("go", "Open")])
    with pytest.raises(InvalidToken):
        async with library(server, "33:NOBODY"):
            pass


async def test_an_update_stays_until_a_later_poll_confirms_it(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", privacy=False)
    async with library(server, MAX) as bot:
        server.say(42, "one")
        server.say(42, "two")
        first, second = await bot.get_updates(timeout=0)
        assert [first.message.text, second.message.text] == ["one", "two"]  # type: ignore[union-attr]
        assert first.message.date.timestamp() == 1_800_000_000  # type: ignore[union-attr]
        assert await heard(bot) == ["one", "two"]
        assert await heard(bot, first.update_id + 1) == ["two"]
        assert await heard(bot) == ["two"]
        assert await heard(bot, second.update_id + 1) == []
        for text in "abc":
            server.say(42, text)
        assert await heard(bot, -1) == ["c"]
        assert await heard(bot) == ["c"]
        await bot.delete_webhook(drop_pending_updates=False)
        assert await heard(bot) == ["c"]
        await bot.delete_webhook(drop_pending_updates=True)
        assert await heard(bot) == []


async def test_a_poll_is_held_until_something_is_said(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", privacy=False)
    async with library(server, MAX) as bot:
        poll = asyncio.create_task(bot.get_updates(timeout=20))
        await eventually(lambda: ("max_bot", "getupdates") in server.calls)
        assert not poll.done()
        server.say(42, "hello")
        assert [u.message.text for u in await poll if u.message] == ["hello"]


async def test_of_two_polls_with_one_token_the_older_gets_409(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", privacy=False)
    async with library(server, MAX) as bot, library(server, MAX) as rival:
        older = asyncio.create_task(bot.get_updates(timeout=20))
        await eventually(lambda: ("max_bot", "getupdates") in server.calls)
        newer = asyncio.create_task(rival.get_updates(timeout=20))
        with pytest.raises(Conflict, match="only one bot instance"):
            await older
        server.say(42, "to the newer")
        assert len(await newer) == 1


PRIVACY = [
    ("plain text", False),
    ("STOP", False),
    ("/stop", False),
    ("/stop@max_bot", True),
    ("/stop@MAX_BOT eva-host", True),
    ("/stop@eva_bot", False),
]


@pytest.mark.parametrize(("text", "seen"), PRIVACY)
async def test_privacy_mode_shows_only_what_is_meant_for_the_bot(
    server: TelegramServer, text: str, *, seen: bool
) -> None:
    server.add_bot(MAX, "max_bot")
    server.add_bot(EVA, "eva_bot")
    async with library(server, MAX) as bot:
        server.say(42, text)
        assert await heard(bot) == ([text] if seen else [])


async def test_privacy_mode_shows_bare_commands_to_the_last_bot_that_spoke_and_replies(
    server: TelegramServer,
) -> None:
    server.add_bot(MAX, "max_bot")
    server.add_bot(EVA, "eva_bot")
    async with library(server, MAX) as maxbot, library(server, EVA) as evabot:
        mine = await maxbot.send_message(server.chat_id, "I am here")
        server.say(42, "/go")
        await evabot.send_message(server.chat_id, "Me too")
        server.say(42, "/status")
        server.say(42, "no, go", reply_to=mine.message_id)
        assert await heard(maxbot) == ["/go", "no, go"]
        assert await heard(evabot) == ["/status"]


@pytest.mark.parametrize("standing", [{"admin": True}, {"privacy": False}])
async def test_an_admin_or_a_bot_without_privacy_mode_sees_all_humans_but_no_bot(
    server: TelegramServer, standing: dict[str, bool]
) -> None:
    server.add_bot(MAX, "max_bot", **standing)
    server.add_bot(EVA, "eva_bot", admin=True)
    async with library(server, MAX) as maxbot, library(server, EVA) as evabot:
        await evabot.send_message(server.chat_id, "/go@max_bot")
        server.say(42, "plain")
        server.anonymous_admin_says("incognito")
        server.channel_says("on air")
        assert await heard(maxbot) == ["plain", "incognito", "on air"]


async def test_bot_to_bot_mode_is_the_exception(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", bot_to_bot=True)
    server.add_bot(EVA, "eva_bot")
    async with library(server, MAX) as maxbot, library(server, EVA) as evabot:
        await evabot.send_message(server.chat_id, "plain")
        await evabot.send_message(server.chat_id, "/go@max_bot")
        assert await heard(maxbot) == ["/go@max_bot"]
        assert await heard(evabot) == []


async def test_who_wrote_stands_in_telegrams_own_fields(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", admin=True)
    async with library(server, MAX) as bot:
        await bot.get_updates(allowed_updates=ALL)
        server.anonymous_admin_says("a")
        server.channel_says("b")
        server.say(42, "c", also=FORWARDED)
        server.say(42, "d", also=SCHEDULED)
        server.say(42, "e", also=VIA_BOT)
        written = server.say(42, "f")
        server.edit(written, "g")
        server.say_below_picture(42, "h")
        updates = await bot.get_updates(timeout=0)
        a, b, c, d, e, f, g, h = [u.effective_message for u in updates]
        assert a and a.from_user and a.sender_chat  # noqa: PT018 - for the type checker
        assert (a.from_user.id, a.from_user.is_bot, a.sender_chat.id) == (1087968824, True, server.chat_id)
        assert b and b.sender_chat and b.sender_chat.type == "channel"  # noqa: PT018
        assert c and c.forward_origin  # noqa: PT018
        assert d and d.is_from_offline  # noqa: PT018
        assert e and e.via_bot  # noqa: PT018
        assert f and f.text == "f"  # noqa: PT018
        assert updates[6].edited_message is g
        assert g and g.text == "g" and g.edit_date  # noqa: PT018
        assert h and h.caption == "h" and h.photo  # noqa: PT018


async def test_a_press_reaches_only_the_bot_that_sent_the_keyboard(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", admin=True)
    server.add_bot(EVA, "eva_bot", admin=True)
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("GO", callback_data="go:eva-host:3")]])
    async with library(server, MAX) as maxbot, library(server, EVA) as evabot:
        sent = await maxbot.send_message(server.chat_id, "Paused", reply_markup=keyboard)
        server.press(42, sent.message_id)
        (update,) = await maxbot.get_updates(timeout=0)
        assert await evabot.get_updates(timeout=0) == ()
        query = update.callback_query
        assert query is not None
        assert (query.data, query.from_user.id, query.message) == ("go:eva-host:3", 42, sent)
        assert await query.answer("done")
        assert server.notes == ["done"]
        with pytest.raises(BadRequest, match="Query is too old"):
            await query.answer("again")
        await maxbot.edit_message_reply_markup(server.chat_id, sent.message_id)
        assert server.posts()[0].buttons == []
        with pytest.raises(BadRequest, match="not modified"):
            await maxbot.edit_message_reply_markup(server.chat_id, sent.message_id)
        edited = await maxbot.edit_message_text("Open", server.chat_id, sent.message_id)
        assert edited.text == "Open"  # type: ignore[union-attr]
        with pytest.raises(BadRequest, match="can't be edited"):
            await evabot.edit_message_text("Mine", server.chat_id, sent.message_id)


async def test_reactions_go_to_admins_that_asked_for_them(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot", admin=True)
    server.add_bot(EVA, "eva_bot", privacy=False)
    async with library(server, MAX) as maxbot, library(server, EVA) as evabot:
        written = server.say(42, "look")
        server.react(42, written)
        assert [u.message_reaction for u in await maxbot.get_updates(allowed_updates=ALL)] == [None]
        await evabot.get_updates(allowed_updates=ALL)
        server.react(42, written)
        reactions = [u.message_reaction for u in await maxbot.get_updates() if u.message_reaction]
        assert [r.user.id for r in reactions if r.user] == [42]
        assert not any(u.message_reaction for u in await evabot.get_updates())


async def test_the_server_links_what_stands_in_plain_text_but_not_in_pre(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot")
    async with library(server, MAX) as bot:
        bait = "see /go and @some_body at https://evil.example/x"
        await bot.send_message(server.chat_id, bait)
        pre = MessageEntity(MessageEntity.PRE, 2, len(bait))
        await bot.send_message(server.chat_id, f"\U0001f6d1{bait}", entities=[pre])
        plain, framed = server.posts()
        assert plain.shown_as("bot_command") == ["/go"]
        assert plain.shown_as("mention") == ["@some_body"]
        assert plain.shown_as("url") == ["https://evil.example/x"]
        assert [e["type"] for e in framed.entities] == ["pre"]
        assert framed.shown_as("pre") == [bait]


async def test_texts_have_limits(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot")
    async with library(server, MAX) as bot:
        await bot.send_message(server.chat_id, "\U0001f6d1" * 2048)
        with pytest.raises(BadRequest, match="too long"):
            await bot.send_message(server.chat_id, "\U0001f6d1" * 2048 + "x")
        with pytest.raises(BadRequest, match="text is empty"):
            await bot.send_message(server.chat_id, " \n ")
        with pytest.raises(BadRequest, match="not found"):
            await bot.send_message(-1, "x")
        long = InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data="\u00e9" * 33)]])
        with pytest.raises(BadRequest, match="Button_data_invalid"):
            await bot.send_message(server.chat_id, "x", reply_markup=long)


async def test_the_21st_message_of_a_minute_gets_429(server: TelegramServer) -> None:
    server.add_bot(MAX, "max_bot")
    async with library(server, MAX) as bot:
        for number in range(20):
            await bot.send_message(server.chat_id, str(number))
        with pytest.raises(RetryAfter, match="Retry in 61 seconds"):
            await bot.send_message(server.chat_id, "20")


async def test_faults_can_be_ordered(server: TelegramServer) -> None:
    max_bot = server.add_bot(MAX, "max_bot")
    server.add_bot(EVA, "eva_bot")
    async with library(server, MAX) as bot, library(server, EVA) as other:
        server.fail("sendMessage", 502, bot=max_bot)
        await other.send_message(server.chat_id, "not concerned")
        with pytest.raises(NetworkError, match="Bad Gateway"):
            await bot.send_message(server.chat_id, "x")
        server.fail("sendMessage", 403, times=2)
        for _ in range(2):
            with pytest.raises(Forbidden):
                await bot.send_message(server.chat_id, "x")
        server.fail("sendMessage", 429, retry_after=7)
        with pytest.raises(RetryAfter, match="7 seconds"):
            await bot.send_message(server.chat_id, "x")
        server.lose_answers("sendMessage", hold=0.5)
        with pytest.raises(TimedOut):
            await bot.send_message(server.chat_id, "arrived all the same", read_timeout=0.05)
        assert [post.text for post in server.posts()] == ["not concerned", "arrived all the same"]


async def test_a_group_that_becomes_a_supergroup() -> None:
    async with TelegramServer(supergroup=False) as server:
        server.add_bot(MAX, "max_bot")
        async with library(server, MAX) as bot:
            old = server.chat_id
            new = server.migrate()
            with pytest.raises(ChatMigrated) as told:
                await bot.send_message(old, "x")
            assert told.value.new_chat_id == new
            went, came = [u.message for u in await bot.get_updates(timeout=0)]
            assert went and went.migrate_to_chat_id == new  # noqa: PT018
            assert came and came.migrate_from_chat_id == old  # noqa: PT018
            await bot.send_message(new, "x")


async def test_a_bot_learns_of_its_own_standing(server: TelegramServer) -> None:
    max_bot = server.add_bot(MAX, "max_bot")
    async with library(server, MAX) as bot:
        server.set_standing(max_bot, admin=True)
        assert (await bot.get_chat_member(server.chat_id, bot.id)).status == "administrator"
        server.set_standing(max_bot, member=False)
        changes = [u.my_chat_member for u in await bot.get_updates(timeout=0)]
        assert [c.new_chat_member.status for c in changes if c] == ["administrator", "kicked"]
        server.say(42, "/go@max_bot")
        assert await bot.get_updates(timeout=0, offset=2**31) == ()
        with pytest.raises(Forbidden):
            await bot.send_message(server.chat_id, "x")


async def test_it_runs_as_a_process_of_its_own() -> None:
    script = Path(__file__).parents[1] / "telegram_server.py"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), "--bot", f"{MAX}=max_bot", stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        ready = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
        url = ready["base_url"].removesuffix("/bot")

        def call(path: str, body: object = None) -> object:
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(urllib.request.Request(url + path, data), timeout=5) as answer:  # noqa: S310 - loopback
                return json.load(answer)

        async with Bot(MAX, base_url=ready["base_url"]) as bot:
            sent = await bot.send_message(ready["chat_id"], "hello")
            await asyncio.to_thread(call, "/test/say", {"user": 42, "text": "GO", "date": 1_700_000_000})
            await asyncio.to_thread(
                call, "/test/press", {"user": 42, "message_id": sent.message_id, "data": "go:x:1"}
            )
            said, pressed = await bot.get_updates(timeout=0)
            assert said.message and said.message.date.timestamp() == 1_700_000_000  # noqa: PT018
            assert pressed.callback_query and pressed.callback_query.data == "go:x:1"  # noqa: PT018
            await asyncio.to_thread(call, "/test/fail", {"method": "sendMessage", "status": 502})
            with pytest.raises(NetworkError):
                await bot.send_message(ready["chat_id"], "x")
            posts = await asyncio.to_thread(call, "/test/posts")
            assert [post["text"] for post in posts] == ["hello"]  # type: ignore[attr-defined]
    finally:
        process.terminate()
        await process.wait()
