"""Supervise by Telegram: poll, act on what operators say, and have it all posted to the group."""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from governor.clock import Clock
from governor.errors import ConfigError, GovernorError
from governor.supervision import freshness
from governor.supervision.acting import Acting
from governor.supervision.operations import Lane, Operations
from governor.supervision.sole_poller import sole_poller
from governor.supervision.telegram_errors import (
    MovedError,
    RivalPollerError,
    SlowDownError,
    UnknownTokenError,
)
from governor.supervision.waiting import growing_delays, unless

if TYPE_CHECKING:
    from governor.supervision.telegram_api import Me

log = structlog.get_logger(__name__)

OFFICIAL_URL = "https://api.telegram.org/bot"

RIVAL_PAUSE = 60.0
"""Seconds to leave the field after a 409: two pollers that fight make each other blind."""

RIVAL_GONE_AFTER = 150.0
"""Seconds of polling without a 409 after which the rival is gone; more than its own pause and poll."""


class TelegramBot:
    """One bot in the group of the operators.

    `base_url` ends in `/bot`. `lock_path` belongs to the token and the host, not to a home. `hold_for` is
    how long Telegram holds a poll (well below `freshness.FRESH_FOR`), `answer_within` how long any other
    answer may take, `look_every` how often notices are looked for. `sleep` waits out delays, in seconds.
    """

    def __init__(  # noqa: PLR0913 - the settings of one edge, most with a default
        self,
        token: str,
        chat_id: int,
        operator_ids: Collection[int],
        operations: Operations,
        clock: Clock,
        *,
        lock_path: Path,
        base_url: str = OFFICIAL_URL,
        hold_for: timedelta = timedelta(seconds=25),
        answer_within: timedelta = timedelta(seconds=10),
        look_every: timedelta = timedelta(seconds=1),
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
    ) -> None:
        # Importing the library takes a third of a second, which only those pay who use it.
        from governor.supervision.telegram_api import TelegramApi  # noqa: PLC0415 - see above
        from governor.supervision.telegram_posting import Posting  # noqa: PLC0415 - see above

        self._operator_ids = operator_ids
        self._operations = operations
        self._clock = clock
        self._lock_path = lock_path
        self._hold_for = hold_for
        self._sleep = sleep
        self._api = TelegramApi(token, chat_id, base_url=base_url, answer_within=answer_within)
        self._posting = Posting(self._api, operations, clock, look_every=look_every, sleep=sleep)
        self._empty_at: datetime | None = None
        self._alone_since: float | None = None
        self._alone_told = False

    def nudge(self) -> None:
        """Look for new notices now, not at the next look."""
        self._posting.nudge()

    async def run(self, stop: asyncio.Event) -> None:
        """Supervise until `stop`.

        Raise `ConfigError` if Telegram does not know the token, or if another process of this host polls
        with it. All else is survived; what stays unseen then closes the links, which is not for this class.
        """
        with sole_poller(self._lock_path):
            try:
                me = await self._open(stop)
                if me is None:
                    return
                acting = Acting(me, self._operator_ids, self._operations, self._posting, self._clock)
                async with asyncio.TaskGroup() as loops:
                    loops.create_task(self._poll(acting, stop))
                    loops.create_task(self._posting.run_presses(stop))
                    for lane in Lane:
                        loops.create_task(self._posting.run(lane, stop))
            finally:
                await self._api.close()

    async def _open(self, stop: asyncio.Event) -> "Me | None":
        """Return who we are, as soon as Telegram says so; None if `stop` came first."""
        delays = growing_delays()
        while not stop.is_set():
            try:
                return await unless(stop, self._api.open())
            except UnknownTokenError:
                raise ConfigError(
                    "Telegram does not know this bot's token; copy the current one from @BotFather"
                ) from None
            except MovedError as error:
                await self._posting.follow(error.chat_id)
            except GovernorError as error:
                log.warning("telegram_not_reached", error=error.message)
                await unless(stop, self._sleep(next(delays)))
        return None

    async def _poll(self, acting: Acting, stop: asyncio.Event) -> None:
        """Poll until `stop`; an update is confirmed to Telegram by the poll after it was acted on."""
        offset: int | None = None
        delays = growing_delays()
        while not stop.is_set():
            try:
                offset = await self._poll_once(acting, offset, stop)
            except RivalPollerError as error:
                log.error("telegram_rival_poller", error=error.message)  # noqa: TRY400 - no trace needed
                wait = RIVAL_PAUSE
            except SlowDownError as error:
                wait = error.wait_for.total_seconds()
            except GovernorError as error:
                log.warning("telegram_not_polled", error=error.message)
                wait = next(delays)
            else:
                delays = growing_delays()
                continue
            await unless(stop, self._sleep(wait))

    async def _poll_once(self, acting: Acting, offset: int | None, stop: asyncio.Event) -> int | None:
        """Take one batch; return the offset for the next poll.

        After an empty answer there is nothing left to confirm, and no offset: Telegram may go on with
        smaller numbers after a quiet week.
        """
        began = self._clock.now()
        try:
            batch = await unless(stop, self._api.updates(offset, self._hold_for))
        except RivalPollerError:
            self._alone_since, self._alone_told = None, False
            await self._operations.rival_poller(present=True)
            raise
        if batch is None:
            return offset
        ended = self._clock.now()
        await acting.take(batch, self._empty_at)
        self._empty_at = freshness.queue_empty_at(
            began, ended, self._hold_for, full=len(batch) >= self._api.batch
        )
        await self._operations.polled(self._empty_at or began)
        await self._note_rival_gone()
        return max(heard.update_id for heard in batch) + 1 if batch else None

    async def _note_rival_gone(self) -> None:
        now = self._clock.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        elif not self._alone_told and now - self._alone_since >= RIVAL_GONE_AFTER:
            await self._operations.rival_poller(present=False)
            self._alone_told = True
