"""Decide whether somebody in a chat has the authority to do what they ask for."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    """What a human can do in the group."""

    STOP = "stop"
    GO = "go"
    STATUS = "status"  # also help: it shows, and changes nothing
    WATCH = "watch"  # be there: keeps the links open


class Doubt(StrEnum):
    """Why an act does not count; the first that applies is the reason."""

    OTHER_CHAT = "other_chat"
    BOT = "bot"
    ANONYMOUS = "anonymous"
    NOT_AN_OPERATOR = "not_an_operator"
    FORWARDED = "forwarded"
    EDITED = "edited"
    AUTOMATIC = "automatic"


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote or pressed, as Telegram says.

    `sender_chat_id` is set when somebody wrote in the name of a group or a channel. `automatic` marks
    what no human wrote just now: scheduled messages, answers of an absent account, text of an inline bot.
    """

    chat_id: int
    user_id: int | None = None
    is_bot: bool = False
    sender_chat_id: int | None = None
    forwarded: bool = False
    edited: bool = False
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class Authority:
    """The pinned chat, and the user ids of those who may supervise in it."""

    chat_id: int
    operator_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: allowed, or the reason why not."""

    reason: Doubt | None = None

    @property
    def allowed(self) -> bool:
        """Tell whether nothing speaks against the act."""
        return self.reason is None


# An anonymous admin is `is_bot` too (one shared id for all groups), but has a sender_chat.
_DOUBTS: dict[Doubt, Callable[[Sender, Authority], bool]] = {
    Doubt.OTHER_CHAT: lambda sender, rules: sender.chat_id != rules.chat_id,
    Doubt.BOT: lambda sender, _: sender.is_bot and sender.sender_chat_id is None,
    Doubt.ANONYMOUS: lambda sender, _: sender.sender_chat_id is not None or sender.user_id is None,
    Doubt.NOT_AN_OPERATOR: lambda sender, rules: sender.user_id not in rules.operator_ids,
    Doubt.FORWARDED: lambda sender, _: sender.forwarded,
    Doubt.EDITED: lambda sender, _: sender.edited,
    Doubt.AUTOMATIC: lambda sender, _: sender.automatic,
}

_ALL = tuple(Doubt)
_ASKED: dict[Act, tuple[Doubt, ...]] = {
    Act.STOP: (Doubt.OTHER_CHAT, Doubt.BOT),
    Act.GO: _ALL,
    Act.STATUS: _ALL,
    Act.WATCH: _ALL,
}


def may(act: Act, sender: Sender, rules: Authority) -> Verdict:
    """Tell whether `sender` may do `act`: STOP any human in the pinned chat, all else a named operator."""
    return Verdict(next((doubt for doubt in _ASKED[act] if _DOUBTS[doubt](sender, rules)), None))
