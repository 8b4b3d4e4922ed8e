"""The loop that reads: each message gets a reader of its own, and its end in a row, whatever happens."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from governor.bell import Bell
from governor.directory.host import Host
from governor.errors import ReadingError
from governor.inbound.model_broker import Broker, ModelCall
from governor.inbound.reader_locks import Sandbox, locks_needed
from governor.inbound.reader_process import read_message
from governor.inbound.reading import MODEL_FAULTS, Unread, drop, finish, pick_unread
from governor.outbox.insist import insist
from governor.store.unit_of_work import Store
from reader.contract import Drop, Job, Mode, Rewrite

TICK_S = 0.5
"""How long a change made by another process may go unnoticed, in seconds."""

DOWN_FOR_S = 30.0
"""How long after a failure of the model new messages are put off, in seconds."""


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """How messages are read. `mode` gives the mode of a link, by peer."""

    mode: Callable[[str], Mode]
    copy_limit: int
    url_hosts: frozenset[str]
    deadline: timedelta
    parallel: int
    sandbox: Sandbox


class ReaderLoop:
    """Reads what may be read; must run in the loop of the main thread (see `reader_process`)."""

    def __init__(
        self,
        store: Store,
        host: Host,
        rules: ReaderRules,
        broker: Broker | None,
        bell: Bell,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Read with what is given; `is_ready` tells whether the model can be asked at all now."""
        self.store, self.host, self.rules, self.broker, self.bell = store, host, rules, broker, bell
        self.is_ready = is_ready
        self._under_way: set[asyncio.Task[None]] = set()
        self._down_until = 0.0

    @property
    def is_down(self) -> bool:
        """Tell whether the model failed lately or is not up, so that peers had better come back later."""
        return not self.is_ready() or self.host.clock.monotonic() < self._down_until

    async def run(self) -> None:
        """Read until cancelled; then kill the readers under way (a restart reads those once more)."""
        try:
            while True:
                if not await self.start_due():
                    await self.bell.wait(TICK_S)
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)

    async def start_due(self) -> int:
        """Start a reader for each message that may be read now, within the bound; return how many."""
        room = self.rules.parallel - len(self._under_way)
        if room <= 0 or not self.is_ready():
            return 0
        chosen = await self.store.run(pick_unread, self.store, self.host, room)
        for unread in chosen:
            task = asyncio.create_task(self._read(unread))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
        return len(chosen)

    async def drain(self) -> None:
        """Wait until every reader under way has ended."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _read(self, unread: Unread) -> None:
        calls: list[ModelCall] = []
        try:
            verdict = await self._verdict(unread, calls.append)
        except Exception as error:  # noqa: BLE001 - whatever breaks here, the message is dropped (P5)
            verdict = _drop_of(error)
        call = calls[-1] if calls else None
        if not isinstance(verdict, Drop):
            self._down_until = 0.0
            try:
                await insist(self.store, finish, self.store, self.host, unread, verdict, call)
            except Exception as error:  # noqa: BLE001 - as above: it could not be shown
                verdict = _drop_of(error)
        if isinstance(verdict, Drop):
            if verdict.code in MODEL_FAULTS:
                self._down_until = self.host.clock.monotonic() + DOWN_FOR_S
            await insist(self.store, drop, self.store, self.host, unread, verdict.code, call)
        self.bell.ring()

    async def _verdict(self, unread: Unread, on_call: Callable[[ModelCall], None]) -> Rewrite | Drop:
        job = Job(
            text=unread.text,
            mode=self.rules.mode(unread.peer),
            nonce=secrets.token_hex(8),
            copy_limit=self.rules.copy_limit,
            url_hosts=self.rules.url_hosts,
        )
        try:
            return await read_message(
                job,
                self.broker,
                deadline=self.rules.deadline,
                on_call=on_call,
                locks=locks_needed(self.rules.sandbox),
            )
        except ReadingError as error:
            return Drop(error.drop)


def _drop_of(error: Exception) -> Drop:
    return Drop(f"reader_{type(error).__name__.lower()}"[:32])
