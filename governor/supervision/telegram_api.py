"""The Bot API as supervision needs it: one bot, one group. The only file that calls python-telegram-bot.

Its import takes a third of a second, so it is imported by who uses Telegram and by nobody else.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx
import structlog
from telegram import (
    Bot,
    BotCommandScopeChat,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    Update,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    InvalidToken,
    RetryAfter,
    TelegramError,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBDeprecationWarning

from governor.supervision.telegram_errors import (
    MovedError,
    RivalPollerError,
    SlowDownError,
    TelegramCallError,
    TextRefusedError,
    UnknownTokenError,
    UnsureError,
)
from governor.supervision.telegram_text import TelegramText, button_data
from governor.supervision.telegram_updates import ADMIN_STATUSES, KINDS, Meaning, Unknown, meaning

log = structlog.get_logger(__name__)

# The library says at each 429 that this number will become a timedelta; `_wait_for` takes both.
warnings.filterwarnings("ignore", message=r".*`retry_after`.*", category=PTBDeprecationWarning)

_NOTE_LENGTH = 200
"""How many characters may be shown to who pressed a button."""

# What the library raises while it reads an object of a shape that it does not know.
_UNREADABLE = (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError)

_NEVER_LEFT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_COMMANDS = {
    "stop": "Stop one link, or all",
    "go": "Open one link, or all",
    "status": "Show the links",
    "help": "Show the commands",
}


@dataclass(frozen=True, slots=True)
class Me:
    """Our own bot. It sees all messages of the group if it `reads_all` (privacy mode off) or is `admin`."""

    bot_id: int
    username: str
    reads_all: bool
    admin: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """One update: its number and its meaning."""

    update_id: int
    meaning: Meaning


class TelegramApi:
    """One bot in one group. `chat_id` may be changed when the group moves.

    Every call raises `TelegramCallError`, or the kind of it that says what to do.
    """

    batch = 100
    """How many updates Telegram returns at most in one answer."""

    def __init__(self, token: str, chat_id: int, *, base_url: str, answer_within: timedelta) -> None:
        self.chat_id = chat_id
        self._token = token
        self._within = answer_within.total_seconds()
        request = HTTPXRequest(read_timeout=self._within, write_timeout=self._within)
        self._bot: Bot = Bot(token, base_url=base_url, request=request, get_updates_request=request)
        # These log the URL, which holds the token, or the texts of strangers.
        for name in ("httpx", "httpcore", "telegram"):
            logging.getLogger(name).setLevel(logging.WARNING)

    async def open(self) -> Me:
        """Return who we are, once any webhook is removed and the commands are offered in the group."""
        with self._plainly():
            await self._bot.initialize()
            await self._bot.delete_webhook(drop_pending_updates=False)  # a STOP may be waiting
        me = self._bot.bot
        await self._offer_commands()
        return Me(me.id, me.username or "", bool(me.can_read_all_group_messages), await self._is_admin(me.id))

    async def close(self) -> None:
        """Close the connections."""
        await self._bot.shutdown()

    async def updates(self, offset: int | None, hold_for: timedelta) -> list[Heard]:
        """Wait up to `hold_for` for updates and return them; confirm those before `offset`.

        An update that cannot be read comes as `Unknown`: it must not hide the others of its batch,
        among which there may be a STOP.
        """
        asked: dict[str, Any] = {
            "timeout": int(hold_for.total_seconds()),
            "limit": self.batch,
            "allowed_updates": list(KINDS),
        }
        if offset is not None:
            asked["offset"] = offset
        with self._plainly():
            # `Bot.get_updates` loses the whole batch if one update cannot be read, so the raw objects are
            # asked for. To Telegram the case of a method's name is nothing; the library, given the name as
            # it spells it, would insist on `Bot.get_updates`.
            raw: Any = await self._bot.do_api_request(
                "getupdates", api_kwargs=asked, read_timeout=hold_for.total_seconds() + self._within
            )
        return [Heard(item["update_id"], self._meaning(item)) for item in raw]

    async def send(self, message: TelegramText, button: tuple[str, int] | None = None) -> int:
        """Send a message to the group, with a GO button for (peer, version) if wanted; return its id."""
        with self._plainly():
            sent = await self._bot.send_message(
                self.chat_id,
                message.text,
                entities=[MessageEntity(MessageEntity.PRE, pre.offset, pre.length) for pre in message.pres],
                link_preview_options=LinkPreviewOptions(is_disabled=True),
                reply_markup=_keyboard(button) if button else None,
            )
        return sent.message_id

    async def answer_press(self, press_id: str, text: str) -> None:
        """Show the beginning of `text` to who pressed a button."""
        with self._plainly():
            await self._bot.answer_callback_query(press_id, text[:_NOTE_LENGTH])

    async def drop_button(self, message_id: int) -> None:
        """Take the button off a message of ours."""
        with self._plainly():
            await self._bot.edit_message_reply_markup(self.chat_id, message_id, reply_markup=None)

    async def _offer_commands(self) -> None:
        try:
            with self._plainly():
                await self._bot.set_my_commands(
                    list(_COMMANDS.items()), scope=BotCommandScopeChat(self.chat_id)
                )
        except TelegramCallError as error:
            log.warning("telegram_commands_not_offered", error=error.message)

    async def _is_admin(self, bot_id: int) -> bool:
        try:
            with self._plainly():
                member = await self._bot.get_chat_member(self.chat_id, bot_id)
        except MovedError:
            raise
        except TelegramCallError as error:
            log.warning("telegram_group_not_seen", error=error.message)
            return False
        return member.status in ADMIN_STATUSES

    def _meaning(self, item: dict[str, Any]) -> Meaning:
        try:
            return meaning(Update.de_json(item, self._bot))
        except _UNREADABLE:
            log.warning("telegram_update_unreadable", update_id=item["update_id"])
            return Unknown()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn the library's errors into ours; none is chained, since its text may hold the token."""
        try:
            yield
        except TelegramError as error:
            raise _ours(error, str(error).replace(self._token, "<token>")) from None


def _ours(error: TelegramError, text: str) -> TelegramCallError:
    match error:
        case RetryAfter():
            return SlowDownError(_wait_for(error))
        case ChatMigrated():
            return MovedError(error.new_chat_id)
        case Conflict():
            return RivalPollerError(text)
        case BadRequest():
            return TextRefusedError(text)
        case InvalidToken():
            return UnknownTokenError(text)
        case _:
            return UnsureError(text) if _may_have_arrived(error) else TelegramCallError(text)


def _may_have_arrived(error: TelegramError) -> bool:
    """Tell whether the request left and no answer came; the library chains the HTTP client's error."""
    cause = error.__cause__
    return isinstance(cause, httpx.TransportError) and not isinstance(cause, _NEVER_LEFT)


def _wait_for(error: RetryAfter) -> timedelta:
    wait: Any = error.retry_after
    return wait if isinstance(wait, timedelta) else timedelta(seconds=wait)


def _keyboard(button: tuple[str, int]) -> InlineKeyboardMarkup:
    peer, version = button
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(f"GO {peer}", callback_data=button_data(peer, version))]]
    )
