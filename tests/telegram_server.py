"""A Bot API server on loopback: several bots in one group, for the real python-telegram-bot.

It answers with Telegram's documented objects and models what matters to supervision:

- a bot never gets another bot's messages (unless `bot_to_bot`), nor its own;
- privacy mode: a bot that is neither admin nor free of it gets commands that name it, bare commands if it
  was the last bot to post in the group, replies to its messages, and service messages; nothing else;
- a press reaches only the bot whose message carries the keyboard; a reaction only admins that asked for it;
- long polling with offsets: an update stays until a later poll confirms it; of two polls with one token the
  older one gets 409; `allowed_updates` is remembered;
- texts are trimmed, bounded (4096 UTF-16 units), and links, mentions and commands in them are found by the
  server, outside of `pre` and `code`; a bot may send 20 messages a minute to the group, then 429;
- a group that becomes a supergroup: 400 with `migrate_to_chat_id`; a bot that was thrown out: 403.

Not modelled: webhooks, media (but for a caption), markup (`parse_mode` is refused), private chats, and
that updates are forgotten after 24 hours.

In a test (same event loop):

    async with TelegramServer() as server:
        bot = server.add_bot("1:TOKEN", "max_gov_bot", admin=True)
        server.say(42, "STOP"); server.press(42, message_id, "go:eva-host:7"); server.posts()

From another process:

    python tests/telegram_server.py --port 9001 --bot 1:TOKEN=max_gov_bot --bot 2:TOKEN=eva_gov_bot

    prints one line {"base_url": ..., "chat_id": ...} when ready; the bots are admins of the group. Then, JSON:
    POST /test/say    {"user": 42, "text": "GO", "date": seconds?, "chat": id?}  -> {"message_id": 5}
    POST /test/press  {"user": 42, "message_id": 3, "data": "go:eva-host:7"?}    -> {"id": "..."}
    POST /test/fail   {"method": "sendMessage", "status": 502, "times": 1?, "retry_after": 3?}
    GET  /test/posts  -> [{"message_id", "bot", "text", "entities", "buttons", "date"}], oldest first
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Self
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.telegram_group import Bot, Object, TelegramGroup, entities_found, human, utf16_units

MINUTE = 60
GROUP_LIMIT = 20


class ApiError(Exception):
    """An answer with `ok: false`."""

    def __init__(self, status: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.status, self.description, self.parameters = status, description, parameters


@dataclass
class Fault:
    """What is to go wrong with the next calls of a method."""

    method: str
    times: int
    error: ApiError | None = None
    token: str | None = None
    hold: float = 0.0


class TelegramServer(TelegramGroup):
    """The group, and the server that its bots call."""

    def __init__(
        self, now: Callable[[], float] = time.time, *, port: int = 0, supergroup: bool = True
    ) -> None:
        super().__init__(now, supergroup=supergroup)
        self.calls: list[tuple[str, str]] = []  # (bot, method), lower case
        self.notes: list[str] = []  # what was shown to those who pressed
        self._faults: list[Fault] = []
        self._socket = socket.create_server(("127.0.0.1", port))
        self._uvicorn: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None

    # -- life

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def base_url(self) -> str:
        """Return what python-telegram-bot takes as `base_url`."""
        return f"{self.url}/bot"

    async def __aenter__(self) -> Self:
        app = Starlette(
            routes=[
                Route("/bot{token}/{method}", self._serve, methods=["GET", "POST"]),
                Route("/test/say", self._control_say, methods=["POST"]),
                Route("/test/press", self._control_press, methods=["POST"]),
                Route("/test/fail", self._control_fail, methods=["POST"]),
                Route("/test/posts", self._control_posts),
            ]
        )
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self._uvicorn = uvicorn.Server(config)
        self._uvicorn.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
        self._serving = asyncio.create_task(self._uvicorn.serve(sockets=[self._socket]))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._uvicorn is not None
        assert self._serving is not None
        self._uvicorn.should_exit = True
        self._wake_polls()
        await self._serving

    def fail(
        self,
        method: str,
        status: int,
        *,
        times: int = 1,
        bot: Bot | None = None,
        retry_after: int | None = None,
    ) -> None:
        """Let the next calls of a method fail, with Telegram's words for that status."""
        texts = {
            400: "Bad Request: can't parse entities",
            401: "Unauthorized",
            403: "Forbidden: bot was kicked from the supergroup chat",
            409: "Conflict: terminated by other getUpdates request; "
            "make sure that only one bot instance is running",
            429: f"Too Many Requests: retry after {retry_after}",
            502: "Bad Gateway",
        }
        parameters = {"retry_after": retry_after} if retry_after is not None else {}
        error = ApiError(status, texts.get(status, "Internal Server Error"), **parameters)
        self._faults.append(Fault(method.lower(), times, error, bot.token if bot else None))
        self._wake_polls()

    def lose_answers(self, method: str, *, times: int = 1, hold: float = 1.0) -> None:
        """Carry out the next calls of a method, but answer only after `hold` seconds."""
        self._faults.append(Fault(method.lower(), times, hold=hold))

    # -- what bots call

    async def _serve(self, request: Request) -> JSONResponse:
        method = request.path_params["method"].lower()
        bot = self.bots.get(request.path_params["token"])
        if bot is None:
            return _answer(ApiError(401, "Unauthorized"))
        self.calls.append((bot.username, method))
        parameters = await _parameters(request)
        try:
            hold = self._fault(method, bot)
            handler = _METHODS.get(method)
            if handler is None:
                return _answer(ApiError(404, "Not Found: method not found"))
            result = handler(self, bot, parameters)
            if asyncio.iscoroutine(result):
                result = await result
        except ApiError as error:
            return _answer(error)
        await asyncio.sleep(hold)
        return JSONResponse({"ok": True, "result": result})

    def _fault(self, method: str, bot: Bot) -> float:
        """Raise the error that was ordered for this call, or return how long its answer is held back."""
        for fault in self._faults:
            if fault.method == method and fault.token in (None, bot.token):
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                if fault.error is not None:
                    raise fault.error
                return fault.hold
        return 0.0

    async def _get_updates(self, bot: Bot, asked: Object) -> list[Object]:
        bot.poll += 1
        mine = bot.poll
        bot.news.set()  # an older poll with this token looks up, and finds itself replaced
        if asked.get("allowed_updates") is not None:
            bot.allowed = set(asked["allowed_updates"])
        offset, limit = int(asked.get("offset", 0)), int(asked.get("limit", 100))
        while bot.queue and (bot.queue[0]["update_id"] < offset or len(bot.queue) > -offset > 0):
            bot.queue.popleft()
        ends = asyncio.get_running_loop().time() + float(asked.get("timeout", 0))
        while not bot.queue and not self._stopping:
            bot.news.clear()
            left = ends - asyncio.get_running_loop().time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, left)):
                    await bot.news.wait()
            if bot.poll != mine:
                bot.news.set()
                raise ApiError(
                    409,
                    "Conflict: terminated by other getUpdates request; "
                    "make sure that only one bot instance is running",
                )
            self._fault("getupdates", bot)
            if left <= 0:
                break
        return list(itertools.islice(bot.queue, limit))

    @property
    def _stopping(self) -> bool:
        return self._uvicorn is not None and self._uvicorn.should_exit

    def _the_group(self, bot: Bot, asked: Object) -> Object:
        """Return the group that a call is about, if this bot may post there."""
        chat_id = int(asked["chat_id"])
        if (new := self._moved.get(chat_id)) is not None:
            raise ApiError(
                400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=new
            )
        if chat_id != self.chat_id:
            raise ApiError(400, "Bad Request: chat not found")
        if not bot.member:
            raise ApiError(403, f"Forbidden: bot was kicked from the {self.group['type']} chat")
        return self.group

    def _send_message(self, bot: Bot, asked: Object) -> Object:
        chat = self._the_group(bot, asked)
        if "parse_mode" in asked:
            raise ApiError(400, "Bad Request: parse_mode is not modelled here")
        text, entities = _trimmed(asked["text"], asked.get("entities", []))
        if not text:
            raise ApiError(400, "Bad Request: message text is empty")
        if utf16_units(text) > 4096:
            raise ApiError(400, "Bad Request: message is too long")
        markup = asked.get("reply_markup")
        for button in itertools.chain.from_iterable(markup["inline_keyboard"] if markup else []):
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
        now = self.now()
        while bot.sent and bot.sent[0] <= now - MINUTE:
            bot.sent.popleft()
        if len(bot.sent) >= GROUP_LIMIT:
            wait = int(bot.sent[0] + MINUTE - now) + 1
            raise ApiError(429, f"Too Many Requests: retry after {wait}", retry_after=wait)
        bot.sent.append(now)
        content: Object = {"text": text, "entities": [*entities, *entities_found(text, entities)]}
        if markup:
            content["reply_markup"] = markup
        message = self._message(chat, bot.user, content)
        self._posts.append(message)
        self._last_bot = bot.username
        self._spread("message", message)
        return message

    def _own_message(self, bot: Bot, asked: Object) -> Object:
        chat = self._the_group(bot, asked)
        message = self._messages.get((chat["id"], int(asked["message_id"])))
        if message is None:
            raise ApiError(400, "Bad Request: message to edit not found")
        if message["from"]["id"] != bot.user["id"]:
            raise ApiError(400, "Bad Request: message can't be edited")
        return message

    def _edit_message_text(self, bot: Bot, asked: Object) -> Object:
        message = self._own_message(bot, asked)
        text, entities = _trimmed(asked["text"], asked.get("entities", []))
        if text == message["text"] and asked.get("reply_markup") == message.get("reply_markup"):
            raise ApiError(400, "Bad Request: message is not modified")
        message |= {"text": text, "entities": [*entities, *entities_found(text, entities)]}
        return self._edit_keyboard(message, asked)

    def _edit_message_reply_markup(self, bot: Bot, asked: Object) -> Object:
        message = self._own_message(bot, asked)
        if asked.get("reply_markup") == message.get("reply_markup"):
            raise ApiError(400, "Bad Request: message is not modified")
        return self._edit_keyboard(message, asked)

    def _edit_keyboard(self, message: Object, asked: Object) -> Object:
        message.pop("reply_markup", None)
        if asked.get("reply_markup"):
            message["reply_markup"] = asked["reply_markup"]
        message["edit_date"] = self._date(None)
        return message

    def _answer_callback_query(self, bot: Bot, asked: Object) -> bool:
        if asked["callback_query_id"] not in bot.presses or len(asked.get("text", "")) > 200:
            raise ApiError(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        bot.presses.remove(asked["callback_query_id"])
        self.notes.append(asked.get("text", ""))
        return True

    def _get_me(self, bot: Bot, _: Object) -> Object:
        return bot.user | {
            "can_join_groups": True,
            "can_read_all_group_messages": not bot.privacy,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }

    def _get_chat(self, bot: Bot, asked: Object) -> Object:
        gifts = (
            "unlimited_gifts",
            "limited_gifts",
            "unique_gifts",
            "premium_subscription",
            "gifts_from_channels",
        )
        chat = self._the_group(bot, asked)
        return chat | {
            "accent_color_id": 0,
            "max_reaction_count": 11,
            "accepted_gift_types": dict.fromkeys(gifts, False),
        }

    def _get_chat_member(self, bot: Bot, asked: Object) -> Object:
        self._the_group(bot, asked)
        wanted = int(asked["user_id"])
        known = next((b for b in self.bots.values() if b.user["id"] == wanted), None)
        return self._member(known) if known else {"status": "member", "user": human(wanted)}

    def _delete_webhook(self, bot: Bot, asked: Object) -> bool:
        if asked.get("drop_pending_updates") in (True, "true", "True"):
            bot.queue.clear()
        return True

    def _set_my_commands(self, bot: Bot, asked: Object) -> bool:
        bot.commands = asked["commands"]
        return True

    # -- the control API

    async def _control_say(self, request: Request) -> JSONResponse:
        asked = await request.json()
        said = self.say(asked["user"], asked["text"], date=asked.get("date"), chat=asked.get("chat"))
        return JSONResponse({"message_id": said})

    async def _control_press(self, request: Request) -> JSONResponse:
        asked = await request.json()
        return JSONResponse({"id": self.press(asked["user"], asked["message_id"], asked.get("data"))})

    async def _control_fail(self, request: Request) -> JSONResponse:
        asked = await request.json()
        times, retry_after = asked.get("times", 1), asked.get("retry_after")
        self.fail(asked["method"], asked["status"], times=times, retry_after=retry_after)
        return JSONResponse({})

    async def _control_posts(self, _: Request) -> JSONResponse:
        return JSONResponse([asdict(post) for post in self.posts()])


_METHODS: dict[str, Callable[[TelegramServer, Bot, Object], Any]] = {
    "getme": TelegramServer._get_me,
    "getupdates": TelegramServer._get_updates,
    "sendmessage": TelegramServer._send_message,
    "editmessagetext": TelegramServer._edit_message_text,
    "editmessagereplymarkup": TelegramServer._edit_message_reply_markup,
    "answercallbackquery": TelegramServer._answer_callback_query,
    "getchat": TelegramServer._get_chat,
    "getchatmember": TelegramServer._get_chat_member,
    "setmycommands": TelegramServer._set_my_commands,
    "deletewebhook": TelegramServer._delete_webhook,
}


async def _parameters(request: Request) -> Object:
    """Read parameters from the query, a form or JSON; objects in a form are JSON texts."""
    found: Object = dict(request.query_params)
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json"):
        given: Object = json.loads(body or b"{}")
        return found | given
    found |= dict(parse_qsl(body.decode(), keep_blank_values=True))
    for name in ("allowed_updates", "entities", "reply_markup", "commands", "scope"):
        if name in found:
            found[name] = json.loads(found[name])
    return found


def _answer(error: ApiError) -> JSONResponse:
    body: Object = {"ok": False, "error_code": error.status, "description": error.description}
    if error.parameters:
        body["parameters"] = error.parameters
    return JSONResponse(body, status_code=error.status)


def _trimmed(text: str, entities: list[Object]) -> tuple[str, list[Object]]:
    """Strip white space from both ends, as the server does, and move the entities along."""
    cut = utf16_units(text) - utf16_units(text.lstrip())
    text = text.strip()
    moved = []
    for entity in entities:
        start = max(0, entity["offset"] - cut)
        end = min(utf16_units(text), entity["offset"] + entity["length"] - cut)
        if start < end:
            moved.append(entity | {"offset": start, "length": end - start})
    return text, moved


async def eventually(condition: Callable[[], object], within: float = 10.0) -> None:
    """Wait until `condition()` is true; fail if it is not `within` these seconds."""
    for _ in range(int(within / 0.01)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"did not come true within {within} s")


async def _main(port: int, bots: list[str]) -> None:
    async with TelegramServer(port=port) as server:
        for bot in bots:
            server.add_bot(*bot.split("=", 1), privacy=False, admin=True)
        print(json.dumps({"base_url": server.base_url, "chat_id": server.chat_id}), flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A Bot API server on loopback, for tests.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bot", action="append", default=[], metavar="TOKEN=USERNAME")
    arguments = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(arguments.port, arguments.bot))
