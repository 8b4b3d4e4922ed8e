"""One Telegram group as its members and bots see it: who gets which update, and what the group shows.

The rules are Telegram's (https://core.telegram.org/bots/features#privacy-mode, .../bots/api#update); the
docstring of `telegram_server` lists what is modelled.
"""

import asyncio
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]

SUPERGROUP_ID = -1001111111111
PLAIN_GROUP_ID = -2222222
OTHER_GROUP_ID = -1003333333333
CHANNEL: Object = {"id": -1004444444444, "type": "channel", "title": "Some channel"}
ANONYMOUS_ADMIN: Object = {
    "id": 1087968824,
    "is_bot": True,
    "first_name": "Group",
    "username": "GroupAnonymousBot",
}
CHANNEL_BOT: Object = {"id": 136817688, "is_bot": True, "first_name": "Channel", "username": "Channel_Bot"}
_ON_DEMAND = {"chat_member", "message_reaction", "message_reaction_count"}
_FOUND = {
    "url": re.compile(r"https?://\S+|\b[\w-]+\.(?:com|org|net|io|md|me|to|sh|dev|ai)\b(?:/\S*)?"),
    "mention": re.compile(r"(?<!\w)@[A-Za-z]\w{3,31}"),
    "bot_command": re.compile(r"(?<![\w/])/[A-Za-z0-9_]{1,64}(?:@\w+)?"),
}
_ADMIN_RIGHTS = (
    "can_be_edited",
    "is_anonymous",
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)

# What a message of a human may have besides its text: for `say(..., also=FORWARDED)`.
FORWARDED: Object = {
    "forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Somebody"},
}
SCHEDULED: Object = {"is_from_offline": True}
VIA_BOT: Object = {"via_bot": {"id": 99, "is_bot": True, "first_name": "Inline", "username": "inline_bot"}}


@dataclass
class Bot:
    """One bot: its settings at @BotFather, its standing in the group, its queue of updates."""

    token: str
    username: str
    privacy: bool = True
    admin: bool = False
    bot_to_bot: bool = False
    member: bool = True
    queue: deque[Object] = field(default_factory=deque)
    update_ids: Iterator[int] = field(default_factory=lambda: itertools.count(700_000_001))
    allowed: set[str] | None = None
    poll: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    sent: deque[float] = field(default_factory=deque)
    presses: set[str] = field(default_factory=set)
    commands: list[Object] = field(default_factory=list)

    @property
    def user(self) -> Object:
        """Return the bot's User object."""
        number = int(self.token.split(":")[0])
        return {"id": number, "is_bot": True, "first_name": self.username, "username": self.username}

    @property
    def status(self) -> str:
        """Return its status in the group."""
        if not self.member:
            return "kicked"
        return "administrator" if self.admin else "member"

    def wants(self, kind: str) -> bool:
        """Tell whether updates of this kind are asked for."""
        return kind in self.allowed if self.allowed else kind not in _ON_DEMAND


@dataclass(frozen=True)
class Posted:
    """A message that a bot posted, as the group shows it."""

    message_id: int
    bot: str
    text: str
    entities: list[Object]
    buttons: list[tuple[str, str]]
    date: int
    chat_id: int

    def shown_as(self, kind: str) -> list[str]:
        """Return the pieces of the text that an entity of this kind covers."""
        utf16 = self.text.encode("utf-16-le")
        return [
            utf16[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le")
            for e in self.entities
            if e["type"] == kind
        ]


class TelegramGroup:
    """The group, and the hands of the people in it. `now` returns seconds since the epoch."""

    def __init__(self, now: Callable[[], float], *, supergroup: bool = True) -> None:
        self.now = now
        self.group: Object = {"id": SUPERGROUP_ID, "type": "supergroup", "title": "Operators"}
        if not supergroup:
            self.group |= {"id": PLAIN_GROUP_ID, "type": "group"}
        self.bots: dict[str, Bot] = {}
        self._moved: dict[int, int] = {}
        self._messages: dict[tuple[int, int], Object] = {}
        self._posts: list[Object] = []
        self._message_ids = itertools.count(1)
        self._press_ids = itertools.count(1)
        self._last_bot: str | None = None

    @property
    def chat_id(self) -> int:
        return int(self.group["id"])

    def add_bot(
        self,
        token: str,
        username: str,
        *,
        privacy: bool = True,
        admin: bool = False,
        bot_to_bot: bool = False,
    ) -> Bot:
        bot = Bot(token, username, privacy, admin, bot_to_bot)
        self.bots[token] = bot
        return bot

    def say(
        self,
        user: int,
        text: str,
        *,
        date: float | None = None,
        chat: int | None = None,
        reply_to: int | None = None,
        also: Object | None = None,
    ) -> int:
        """Have a human write; return the message id. `also`: further fields of the Message."""
        place = self.group
        if chat is not None and chat != self.chat_id:
            place = {"id": chat, "type": "supergroup", "title": "Another group"}
        reply = {} if reply_to is None else {"reply_to_message": self._messages[self.chat_id, reply_to]}
        content = {"text": text, "entities": entities_found(text, []), **reply, **(also or {})}
        return self._written(self._message(place, human(user), content, date))

    def say_below_picture(self, user: int, caption: str) -> int:
        """Have a human send a picture with a caption."""
        photo = {"file_id": "A", "file_unique_id": "B", "width": 90, "height": 60}
        content = {"photo": [photo], "caption": caption, "caption_entities": entities_found(caption, [])}
        return self._written(self._message(self.group, human(user), content))

    def anonymous_admin_says(self, text: str) -> int:
        """Have an admin write in the name of the group."""
        content = {"text": text, "entities": entities_found(text, []), "sender_chat": self.group}
        return self._written(self._message(self.group, ANONYMOUS_ADMIN, content))

    def channel_says(self, text: str) -> int:
        """Have somebody write in the name of a channel."""
        content = {"text": text, "entities": entities_found(text, []), "sender_chat": CHANNEL}
        return self._written(self._message(self.group, CHANNEL_BOT, content))

    def edit(self, message_id: int, text: str) -> None:
        """Have the author of a message change it."""
        message = self._messages[self.chat_id, message_id]
        message |= {"text": text, "entities": entities_found(text, []), "edit_date": self._date(None)}
        self._spread("edited_message", message)

    def press(self, user: int, message_id: int, data: str | None = None) -> str:
        """Have a human press the (first) button of a message, or send `data` as if there were one."""
        message = self._messages[self.chat_id, message_id]
        bot = self._bot_named(message["from"]["username"])
        press_id = str(next(self._press_ids))
        bot.presses.add(press_id)
        buttons = message.get("reply_markup", {"inline_keyboard": [[{}]]})["inline_keyboard"]
        query = {
            "id": press_id,
            "from": human(user),
            "message": message,
            "chat_instance": "-5566778899",
            "data": data if data is not None else buttons[0][0]["callback_data"],
        }
        self._put(bot, "callback_query", query)
        return press_id

    def react(
        self, user: int, message_id: int, emoji: str = "\N{THUMBS UP SIGN}", date: float | None = None
    ) -> None:
        """Have a human react to a message."""
        reaction = {
            "chat": self.group,
            "message_id": message_id,
            "user": human(user),
            "date": self._date(date),
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}],
        }
        for bot in self.bots.values():
            if bot.member and bot.admin:
                self._put(bot, "message_reaction", reaction)

    def set_standing(self, bot: Bot, *, member: bool = True, admin: bool = False) -> None:
        """Promote, demote or throw out a bot."""
        old = self._member(bot)
        bot.member, bot.admin = member, admin
        change = {
            "chat": self.group,
            "from": human(1),
            "date": self._date(None),
            "old_chat_member": old,
            "new_chat_member": self._member(bot),
        }
        self._put(bot, "my_chat_member", change)

    def migrate(self, *, announce: bool = True) -> int:
        """Turn the group into a supergroup; return its new id. `announce`: with the service messages."""
        old, new = (
            self.group,
            self.group | {"id": SUPERGROUP_ID - 7, "type": "supergroup", "title": "Operators"},
        )
        self._moved[old["id"]] = new["id"]
        self.group = new
        if announce:
            for chat, moved in (
                (old, {"migrate_to_chat_id": new["id"]}),
                (new, {"migrate_from_chat_id": old["id"]}),
            ):
                self._spread("message", self._message(chat, human(1), moved), service=True)
        return int(new["id"])

    def inject(self, bot: Bot, update: Object) -> int:
        """Put an update of any shape into a bot's queue; return its number."""
        number = next(bot.update_ids)
        bot.queue.append({"update_id": number, **update})
        bot.news.set()
        return number

    def posts(self, chat: int | None = None) -> list[Posted]:
        """Return what the bots posted, oldest first; in `chat` only, if given."""
        return [_posted(m) for m in self._posts if chat is None or m["chat"]["id"] == chat]

    def _wake_polls(self) -> None:
        """Let every poll under way look again: for a fault, or because the server stops."""
        for bot in self.bots.values():
            bot.news.set()

    def _date(self, date: float | None) -> int:
        return int(self.now() if date is None else date)

    def _bot_named(self, username: str) -> Bot:
        return next(bot for bot in self.bots.values() if bot.username == username)

    def _member(self, bot: Bot) -> Object:
        member: Object = {"status": bot.status, "user": bot.user}
        if bot.status == "administrator":
            member |= dict.fromkeys(_ADMIN_RIGHTS, False)
        if bot.status == "kicked":
            member["until_date"] = 0
        return member

    def _message(self, chat: Object, sender: Object, content: Object, date: float | None = None) -> Object:
        message = {
            "message_id": next(self._message_ids),
            "from": sender,
            "chat": chat,
            "date": self._date(date),
            **content,
        }
        self._messages[chat["id"], message["message_id"]] = message
        return message

    def _written(self, message: Object) -> int:
        self._spread("message", message)
        return int(message["message_id"])

    def _spread(self, kind: str, message: Object, *, service: bool = False) -> None:
        for bot in self.bots.values():
            if bot.member and (service or self._sees(bot, message)):
                self._put(bot, kind, message)

    def _sees(self, bot: Bot, message: Object) -> bool:
        author = message["from"]
        if author["id"] == bot.user["id"]:
            return False
        commands = [c.lower() for c in _commands_in(message)]
        names_it = any(c.endswith(f"@{bot.username.lower()}") for c in commands)
        answers_it = message.get("reply_to_message", {}).get("from", {}).get("id") == bot.user["id"]
        if author["is_bot"] and "sender_chat" not in message:
            everything = bot.admin and not bot.privacy
            return bot.bot_to_bot and (names_it or answers_it or everything)
        if bot.admin or not bot.privacy:
            return True
        bare = any("@" not in c for c in commands) and self._last_bot == bot.username
        return names_it or answers_it or bare

    def _put(self, bot: Bot, kind: str, payload: Object) -> None:
        if bot.wants(kind):
            self.inject(bot, {kind: json.loads(json.dumps(payload))})


def human(user: int) -> Object:
    return {"id": user, "is_bot": False, "first_name": f"User {user}"}


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def entities_found(text: str, taken: list[Object]) -> list[Object]:
    """Return the entities that the server finds by itself, outside of `pre` and `code`."""
    blocked = [(e["offset"], e["offset"] + e["length"]) for e in taken if e["type"] in ("pre", "code")]
    found = []
    for kind, pattern in _FOUND.items():
        for match in pattern.finditer(text):
            start, length = utf16_units(text[: match.start()]), utf16_units(match[0])
            if all(start + length <= low or start >= high for low, high in blocked):
                found.append({"type": kind, "offset": start, "length": length})
    return found


def _commands_in(message: Object) -> list[str]:
    text = message.get("text") or message.get("caption") or ""
    return [match[0] for match in _FOUND["bot_command"].finditer(text)]


def _posted(message: Object) -> Posted:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return Posted(
        message_id=message["message_id"],
        bot=message["from"]["username"],
        text=message["text"],
        entities=message["entities"],
        buttons=[(button["text"], button["callback_data"]) for row in rows for button in row],
        date=message["date"],
        chat_id=message["chat"]["id"],
    )
