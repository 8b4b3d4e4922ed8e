"""Translate Telegram's updates into what was said, pressed or done, and by whom."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from governor.supervision.who_may import Sender

if TYPE_CHECKING:
    from telegram import Chat, Message, Update, User


@dataclass(frozen=True, slots=True)
class Said:
    """A message of any kind; `text` is empty if it has none, `caption` is that of a picture or file."""

    sender: Sender
    text: str
    caption: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button was pressed. The press has no date of its own."""

    sender: Sender
    press_id: str
    data: str | None
    message_id: int | None


@dataclass(frozen=True, slots=True)
class Reacted:
    """Somebody set or took back a reaction."""

    sender: Sender
    at: datetime


@dataclass(frozen=True, slots=True)
class Migrated:
    """The group became a supergroup."""

    old_chat_id: int
    new_chat_id: int


@dataclass(frozen=True, slots=True)
class StandingChanged:
    """Our bot's own standing in a chat changed: member, admin, or out."""

    chat_id: int
    admin: bool
    out: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """An update that means nothing here, or could not be read."""


Meaning = Said | Pressed | Reacted | Migrated | StandingChanged | Unknown

ADMIN_STATUSES = frozenset({"administrator", "creator"})

NOWHERE = 0
"""No chat has this id: the place of a press on a message that is in no chat."""

KINDS = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member")
"""The kinds of update that are asked for; edits only because STOP is taken from them too."""


def meaning(update: "Update") -> Meaning:
    """Return what an update means; only what stands in Telegram's own fields is believed."""
    message = update.message or update.edited_message
    if message is not None:
        if message.migrate_to_chat_id is not None:
            return Migrated(message.chat.id, message.migrate_to_chat_id)
        return _said(message, edited=update.edited_message is not None)
    if (query := update.callback_query) is not None:
        where = query.message
        return Pressed(
            sender=_sender(where.chat if where else None, query.from_user),
            press_id=query.id,
            data=query.data,
            message_id=where.message_id if where else None,
        )
    if (reaction := update.message_reaction) is not None:
        return Reacted(_sender(reaction.chat, reaction.user, reaction.actor_chat), reaction.date)
    if (change := update.my_chat_member) is not None:
        status = change.new_chat_member.status
        return StandingChanged(
            chat_id=change.chat.id,
            admin=status in ADMIN_STATUSES,
            out=status in {"left", "kicked"},
        )
    return Unknown()


def _said(message: "Message", *, edited: bool) -> Said:
    sender = replace(
        _sender(message.chat, message.from_user, message.sender_chat),
        forwarded=message.forward_origin is not None or bool(message.is_automatic_forward),
        edited=edited or message.edit_date is not None,
        automatic=bool(message.is_from_offline or message.via_bot or message.sender_business_bot),
    )
    return Said(sender, message.text or "", message.caption or "", message.date)


def _sender(chat: "Chat | None", user: "User | None", sender_chat: "Chat | None" = None) -> Sender:
    return Sender(
        chat_id=chat.id if chat else NOWHERE,
        user_id=user.id if user else None,
        is_bot=bool(user and user.is_bot),
        sender_chat_id=sender_chat.id if sender_chat else None,
    )
