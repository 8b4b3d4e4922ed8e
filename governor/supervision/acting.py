"""Act on what was said, pressed and done in the group; STOP ahead of everything."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from governor.clock import Clock
from governor.supervision import answers, freshness
from governor.supervision.commands import Command, Word, parse
from governor.supervision.operations import Operations
from governor.supervision.telegram_text import read_button
from governor.supervision.telegram_updates import (
    Meaning,
    Migrated,
    Pressed,
    Reacted,
    Said,
    StandingChanged,
)
from governor.supervision.who_may import Act, Authority, Doubt, Sender, may

if TYPE_CHECKING:
    from governor.supervision.telegram_api import Heard, Me
    from governor.supervision.telegram_posting import Posting

log = structlog.get_logger(__name__)

STRANGERS_ANSWERED_EVERY = 60.0
"""Seconds between two answers to people without authority, who could else fill the group's minute."""

_ACTS = {Word.STOP: Act.STOP, Word.GO: Act.GO, Word.STATUS: Act.STATUS, Word.HELP: Act.STATUS}
_UNANSWERED = frozenset({Doubt.OTHER_CHAT, Doubt.BOT})
_STRANGERS = frozenset({Doubt.ANONYMOUS, Doubt.NOT_AN_OPERATOR})


class Acting:
    """What one bot does in the group of its operators.

    Nothing here waits for Telegram: answers are queued, so that the next STOP is never behind them.
    """

    def __init__(
        self,
        me: "Me",
        operator_ids: Collection[int],
        operations: Operations,
        posting: "Posting",
        clock: Clock,
    ) -> None:
        self._me = me
        self._admin = me.admin
        self._operator_ids = frozenset(operator_ids)
        self._operations = operations
        self._posting = posting
        self._clock = clock
        self._stranger_answered_at: float | None = None

    async def take(self, batch: Sequence["Heard"], empty_at: datetime | None) -> None:
        """Act on STOPs at once, then record each update and act on it; raise `StoreError` if that fails.

        A GO is acted on at most once: its record comes first. A STOP is acted on at least once, recorded or
        not. A GO that a STOP of the same batch overtakes was said before it and opens nothing, whatever
        the clocks say. `empty_at` is when Telegram's queue was last known to hold nothing older.
        """
        for heard in batch:
            if isinstance(heard.meaning, Migrated):  # it decides which chat counts
                self._posting.move(heard.meaning.old_chat_id, heard.meaning.new_chat_id)
        stops = {heard.update_id: stop for heard in batch if (stop := self._stop_in(heard.meaning))}
        for stop in stops.values():
            await self._stop(*stop)
        last_stop = max(stops, default=0)
        for heard in batch:
            new = await self._operations.record_update(self._me.bot_id, heard.update_id)
            if new and heard.update_id not in stops:
                await self._act(heard.meaning, empty_at, overtaken=heard.update_id < last_stop)

    def _rules(self) -> Authority:
        return Authority(self._posting.chat_id, self._operator_ids)

    def _command(self, said: Said) -> Command | None:
        """Return the command in a message. A caption is not a whole message, so only STOP may stand there."""
        command = parse(said.text or said.caption, self._me.username)
        if command is not None and not said.text and command.word is not Word.STOP:
            return None
        return command

    def _stop_in(self, meaning: Meaning) -> tuple[str | None, str] | None:
        """Return (peer, who) of a STOP that counts."""
        if not isinstance(meaning, Said):
            return None
        command = self._command(meaning)
        if command is None or command.word is not Word.STOP:
            return None
        if not may(Act.STOP, meaning.sender, self._rules()).allowed:
            return None
        return command.peer, self._who(meaning.sender)

    async def _stop(self, peer: str | None, who: str) -> None:
        links = await self._operations.stop(peer, who)
        if not links and peer is not None:  # "stop please": a brake does not ask who Please is
            links = await self._operations.stop(None, who)
        self._posting.answer(answers.of_status(links))

    async def _act(self, meaning: Meaning, empty_at: datetime | None, *, overtaken: bool) -> None:
        match meaning:
            case Said():
                await self._said(meaning, overtaken=overtaken)
            case Pressed():
                await self._pressed(meaning, empty_at, overtaken=overtaken)
            case Reacted(sender=sender, at=at):
                await self._watched(sender, at)
            case Migrated(new_chat_id=new):
                if new == self._posting.chat_id:
                    await self._posting.follow(new)
            case StandingChanged(chat_id=chat_id):
                if chat_id == self._posting.chat_id:
                    self._admin = meaning.admin
                    log.warning("telegram_standing_changed", admin=meaning.admin, out=meaning.out)
            case _:
                pass

    async def _said(self, said: Said, *, overtaken: bool) -> None:
        command = self._command(said)
        if command is None:
            await self._watched(said.sender, said.said_at)
            return
        who = self._who(said.sender)
        doubt = may(_ACTS[command.word], said.sender, self._rules()).reason
        if doubt is not None:
            await self._refuse(who, command.word, doubt)
        elif command.word is Word.GO:
            await self._go(command.peer, who, said, overtaken=overtaken)
        elif command.word is Word.STATUS:
            self._posting.answer(self._with_sight(answers.of_status(await self._operations.status())))
        else:
            self._posting.answer(self._with_sight(answers.HELP))

    async def _go(self, peer: str | None, who: str, said: Said, *, overtaken: bool) -> None:
        await self._watched(said.sender, said.said_at)
        stale = freshness.typed_go(said.said_at, self._clock.now())
        if overtaken:
            stale = freshness.Stale.BEFORE_CLOSING
        if stale is not None:
            await self._refuse(who, Word.GO, stale)
            return
        done = await self._operations.go(peer, who, version=None, said_at=said.said_at)
        self._posting.answer(answers.of_go(done, peer))

    async def _pressed(self, pressed: Pressed, empty_at: datetime | None, *, overtaken: bool) -> None:
        who = self._who(pressed.sender)
        doubt = may(Act.GO, pressed.sender, self._rules()).reason
        stale = freshness.pressed_go(empty_at, self._clock.now())
        if overtaken:
            stale = freshness.Stale.BEFORE_CLOSING
        button = read_button(pressed.data)
        if doubt in _UNANSWERED:
            return
        if doubt is not None or stale is not None or empty_at is None or button is None:
            reason = doubt or stale or answers.UNKNOWN_BUTTON
            await self._operations.refused(who, Word.GO, reason)
            self._posting.answer_press(pressed.press_id, answers.of_refusal(reason))
            return
        await self._operations.acted(empty_at, who)  # it was pressed after that, nobody knows when
        peer, version = button
        done = await self._operations.go(peer, who, version=version, said_at=None)
        text = answers.of_go(done, peer)
        spent = not any(answer.link.version == version for answer in done)
        self._posting.answer_press(pressed.press_id, text, pressed.message_id if spent else None)
        self._posting.answer(text)

    async def _watched(self, sender: Sender, at: datetime) -> None:
        """Record the activity of an operator; that of anybody else is none."""
        if may(Act.WATCH, sender, self._rules()).allowed:
            await self._operations.acted(freshness.active_at(at, self._clock.now()), self._who(sender))

    async def _refuse(self, who: str, word: Word, reason: Doubt | freshness.Stale) -> None:
        if reason in _UNANSWERED:  # not our group's affair; and two bots that answer each other never end
            return
        await self._operations.refused(who, word, reason)
        if reason in _STRANGERS:
            now, last = self._clock.monotonic(), self._stranger_answered_at
            if last is not None and now - last < STRANGERS_ANSWERED_EVERY:
                return
            self._stranger_answered_at = now
        self._posting.answer(answers.of_refusal(reason))

    def _with_sight(self, text: str) -> str:
        return text if self._me.reads_all or self._admin else f"{text}\n\n{answers.LIMITED_SIGHT}"

    def _who(self, sender: Sender) -> str:
        if sender.sender_chat_id is None:
            return f"telegram:{sender.user_id}"
        return f"telegram:{'anonymous-admin' if sender.sender_chat_id == sender.chat_id else 'channel'}"
