"""What can go wrong in a call to Telegram. No text of these ever holds the bot's token."""

from datetime import timedelta

from governor.errors import TransportError


class TelegramCallError(TransportError):
    """A call to Telegram did not succeed."""


class UnknownTokenError(TelegramCallError):
    """Telegram does not know the bot's token."""


class SlowDownError(TelegramCallError):
    """Telegram wants us to wait before the next call of this kind."""

    def __init__(self, wait_for: timedelta) -> None:
        super().__init__(f"Telegram asks to wait {wait_for.total_seconds():.0f} s")
        self.wait_for = wait_for


class MovedError(TelegramCallError):
    """The group has become a supergroup with another id."""

    def __init__(self, chat_id: int) -> None:
        super().__init__(f"the group is now {chat_id}")
        self.chat_id = chat_id


class RivalPollerError(TelegramCallError):
    """Somebody else polls with this bot's token, or has set a webhook for it."""


class TextRefusedError(TelegramCallError):
    """Telegram will not take this very text, or this very edit."""


class UnsureError(TelegramCallError):
    """No answer came; the message may have arrived or not."""
