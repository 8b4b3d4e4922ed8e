"""Post to the group, in two lanes: answers to operators ahead of the mirror of all exchanges.

Each lane has a loop of its own, so neither a slow call nor a wait that Telegram asked for in one lane
holds up the other. Notices come from rows and are reported back to them, so a restart loses none.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog

from governor.clock import Clock
from governor.errors import GovernorError
from governor.supervision.operations import Lane, Operations, Post
from governor.supervision.telegram_api import TelegramApi
from governor.supervision.telegram_errors import (
    MovedError,
    SlowDownError,
    TelegramCallError,
    TextRefusedError,
    UnsureError,
)
from governor.supervision.telegram_text import Part, TelegramText, compose, marked_again
from governor.supervision.waiting import growing_delays, unless

log = structlog.get_logger(__name__)

A_MINUTE = 60.0
MESSAGES_A_MINUTE = {Lane.ANSWER: 18, Lane.MIRROR: 15}
"""How many messages of both lanes may have gone out in the last minute for a lane to send another.

Telegram allows a bot 20 a minute in a group; the difference keeps room for answers.
"""

ANSWER_COUNTS_FOR = 60.0
"""Seconds after which an answer is not sent any more: it would tell of links as they were."""

REFUSED_FOR = timedelta(seconds=60)
"""How long a notice waits whose text Telegram would not take."""

_ANSWERS_WAITING = 20
_PRESSES_WAITING = 50
_ROWS = 20
_GRACE = 3.0
"""Seconds that a call under way may still take when the governor stops, to learn whether it succeeded."""


@dataclass(slots=True)
class _Pending:
    """What a lane is sending: the messages of an answer (no posts) or of one or more posts."""

    messages: tuple[TelegramText, ...]
    born: float
    posts: tuple[Post, ...] = ()
    done: int = 0
    message_id: int = 0
    unsure: bool = False

    @property
    def next_button(self) -> tuple[str, int] | None:
        """Return the button of the next message: the last one carries it."""
        return self.posts[0].button if self.posts and self.done == len(self.messages) - 1 else None


@dataclass(frozen=True, slots=True)
class _Press:
    """A press that waits for its note; `spent` is the message whose button can do no more."""

    press_id: str
    note: str
    spent: int | None


class Posting:
    """The two lanes of one bot in one group, and the notes for presses."""

    def __init__(
        self,
        api: TelegramApi,
        operations: Operations,
        clock: Clock,
        *,
        look_every: timedelta,
        sleep: Callable[[float], Coroutine[Any, Any, None]],
    ) -> None:
        self._api = api
        self._stored_chat_id = api.chat_id
        self._operations = operations
        self._clock = clock
        self._look_every = look_every.total_seconds()
        self._sleep = sleep
        self._sent: deque[float] = deque(maxlen=MESSAGES_A_MINUTE[Lane.ANSWER])
        self._answers: deque[_Pending] = deque(maxlen=_ANSWERS_WAITING)
        self._presses: deque[_Press] = deque(maxlen=_PRESSES_WAITING)
        self._alone: set[int] = set()
        self._new = {lane: asyncio.Event() for lane in Lane}
        self._new_press = asyncio.Event()

    @property
    def chat_id(self) -> int:
        """Return the id of the group, as last known."""
        return self._api.chat_id

    def answer(self, text: str) -> None:
        """Queue an answer in our own words, unless the same answer waits already."""
        pending = _Pending(compose([Part(text)]), self._clock.monotonic())
        if all(waiting.messages != pending.messages for waiting in self._answers):
            self._answers.append(pending)
        self._new[Lane.ANSWER].set()

    def answer_press(self, press_id: str, note: str, spent: int | None = None) -> None:
        """Queue the note for who pressed a button, and the removal of the button of message `spent`."""
        self._presses.append(_Press(press_id, note, spent))
        self._new_press.set()

    def nudge(self) -> None:
        """Look at the notices now."""
        for new in self._new.values():
            new.set()

    async def run(self, lane: Lane, stop: asyncio.Event) -> None:
        """Post what stands in `lane` until `stop`."""
        pending: _Pending | None = None
        delays = growing_delays()
        while not stop.is_set():
            wait = 0.0
            try:
                pending = pending or await self._next(lane)
                if pending is None:
                    await self._idle(self._new[lane], stop)
                elif outcome := await unless(stop, self._turn(lane, pending, delays), _GRACE):
                    pending, wait = outcome
            except GovernorError as error:  # the database; what was sent is reported to it later
                log.warning("telegram_posting_failed", lane=lane, error=error.message)
                wait = next(delays)
            if wait > 0:
                await unless(stop, self._sleep(wait))
            elif pending is None:
                delays = growing_delays()

    async def run_presses(self, stop: asyncio.Event) -> None:
        """Show their notes to those who pressed, until `stop`; what does not succeed is left out."""
        while not stop.is_set():
            while self._presses:
                press = self._presses.popleft()
                await unless(stop, self._show(press), _GRACE)
            await self._idle(self._new_press, stop)

    async def _show(self, press: _Press) -> None:
        try:
            await self._api.answer_press(press.press_id, press.note)
            if press.spent is not None:
                await self._api.drop_button(press.spent)
        except TelegramCallError as error:  # the press was acted on; the note is a courtesy
            log.info("telegram_press_note_failed", error=error.message)

    async def _idle(self, new: asyncio.Event, stop: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_every):
                await unless(stop, new.wait())
        new.clear()

    async def _next(self, lane: Lane) -> _Pending | None:
        """Return what to send next: an answer, else the oldest notices that fit into one message."""
        while lane is Lane.ANSWER and self._answers:
            answer = self._answers.popleft()
            if not self._outdated(answer):
                return answer
        posts = [post for post in await self._operations.next_posts(_ROWS) if post.lane is lane]
        if not posts:
            return None
        together = self._together(posts)
        return _Pending(_messages(together), self._clock.monotonic(), tuple(together))

    def _together(self, posts: Sequence[Post]) -> Sequence[Post]:
        """Return the first posts that can share one message, so that a burst is shown in time."""
        apart = [post.button is not None or post.notice_id in self._alone for post in posts]
        size = 1
        while (
            size < len(posts) and not apart[0] and not apart[size] and len(_messages(posts[: size + 1])) == 1
        ):
            size += 1
        return posts[:size]

    async def _turn(
        self, lane: Lane, pending: _Pending, delays: Iterator[float]
    ) -> tuple[_Pending | None, float]:
        """Send the next message of `pending`; return what is still pending and the seconds to wait."""
        if self._outdated(pending):
            return None, 0
        if pending.done < len(pending.messages):
            if (wait := self._wait_for_room(lane)) > 0:
                # Notices that nothing was sent of are fetched anew: more may fit into the message then.
                return (None if pending.posts and not pending.done else pending), wait
            try:
                await self._send(pending)
            except TelegramCallError as error:
                return await self._after(error, pending, delays)
        if pending.done < len(pending.messages):
            return pending, 0
        for post in pending.posts:
            await self._operations.posted(post.notice_id, pending.message_id)
            self._alone.discard(post.notice_id)
        return None, 0

    async def _after(
        self, error: TelegramCallError, pending: _Pending, delays: Iterator[float]
    ) -> tuple[_Pending | None, float]:
        """Return what is still pending after a failed call, and the seconds to wait.

        What may have arrived is sent again with a mark: an answer once, a notice until it is known to be there.
        """
        match error:
            case SlowDownError(wait_for=wait_for):
                return pending, wait_for.total_seconds()
            case MovedError(chat_id=chat_id):
                await self.follow(chat_id)
                return pending, 0
            case TextRefusedError():
                await self._refused(pending, error)
                return None, 0
            case UnsureError():
                given_up = pending.unsure and not pending.posts
                pending.unsure = True
            case _:
                given_up = False
        wait = next(delays)
        await self._failed(pending, error, timedelta(seconds=wait))
        return (None if given_up else pending), wait

    async def _send(self, pending: _Pending) -> None:
        self._sent.append(self._clock.monotonic())
        message = pending.messages[pending.done]
        if pending.unsure:
            message = marked_again(message)
        pending.message_id = await self._api.send(message, pending.next_button)
        pending.done += 1
        pending.unsure = False

    def move(self, old_chat_id: int, new_chat_id: int) -> None:
        """Go on in the supergroup that the group has become, if it is ours that moved."""
        if old_chat_id == self._api.chat_id != new_chat_id:
            log.warning("telegram_group_moved", chat_id=new_chat_id)
            self._api.chat_id = new_chat_id

    async def follow(self, chat_id: int) -> None:
        """Go on in the supergroup that our group has become, and remember it for the next start."""
        self.move(self._api.chat_id, chat_id)
        if chat_id != self._stored_chat_id:
            await self._operations.migrated(chat_id)
            self._stored_chat_id = chat_id

    async def _refused(self, pending: _Pending, error: TelegramCallError) -> None:
        """Try posts that were refused together one by one; let one that was refused alone wait."""
        log.warning("telegram_text_refused", error=error.message)
        if len(pending.posts) > 1:
            self._alone.update(post.notice_id for post in pending.posts)
        else:
            await self._failed(pending, error, REFUSED_FOR)

    async def _failed(self, pending: _Pending, error: TelegramCallError, retry_in: timedelta) -> None:
        retry_at = self._clock.now() + retry_in
        for post in pending.posts:
            await self._operations.post_failed(post.notice_id, retry_at, error.message)

    def _outdated(self, pending: _Pending) -> bool:
        return not pending.posts and self._clock.monotonic() - pending.born > ANSWER_COUNTS_FOR

    def _wait_for_room(self, lane: Lane) -> float:
        """Return the seconds until `lane` may send another message."""
        limit = MESSAGES_A_MINUTE[lane]
        if len(self._sent) < limit:
            return 0.0
        return self._sent[-limit] + A_MINUTE - self._clock.monotonic()


def _messages(posts: Sequence[Post]) -> tuple[TelegramText, ...]:
    parts = [part for post in posts for part in (Part(post.ours), Part(post.foreign or "", foreign=True))]
    return compose(parts)
