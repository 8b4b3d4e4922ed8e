"""What the Telegram bot may do, carried out by the use cases of this host."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlmodel import col, select

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.bell import Bell
from governor.directory.host import Host
from governor.directory.links import Actor, apply
from governor.directory.notices import notify
from governor.errors import NotYoursError
from governor.message import PauseReason
from governor.policy.state import FaultSeen
from governor.store.tables import Link, Notice, TelegramUpdate
from governor.store.unit_of_work import Store
from governor.supervision.operations import GoAnswer, Lane, LinkNow, Post
from governor.supervision.operator_code import unlock
from governor.supervision.seeing import CHAT_ID, POLLED_AT, RIVAL, causes
from governor.supervision.status import links_now
from governor.supervision.switching import Go, Switched, give_go, give_stop, note_activity

KEEP_UPDATES = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class TelegramOperations:
    """Implements `operations.Operations` over the database; every act is one unit of work."""

    store: Store
    host: Host
    home: Path
    bell: Bell

    async def record_update(self, bot_id: int, update_id: int) -> bool:
        """Remember an update before it is acted on; False if it is already known."""
        return await self.store.run(self._record_update, bot_id, update_id)

    async def stop(self, peer: str | None, who: str) -> list[LinkNow]:
        """Stop one link, or all."""
        switched = await self.store.run(self._stop, peer, who)
        self.bell.ring()
        return await self._links([one.peer for one in switched])

    async def go(
        self, peer: str | None, who: str, *, version: int | None, said_at: datetime | None
    ) -> list[GoAnswer]:
        """Open one link, or all but those that await their first GO."""
        switched = await self.store.run(self._go, peer, who, version, said_at)
        self.bell.ring()
        reasons = {one.peer: one.refusal for one in switched}
        links = await self._links(list(reasons))
        return [GoAnswer(link, reasons[link.peer] is None, reasons[link.peer]) for link in links]

    async def acted(self, at: datetime, who: str) -> None:
        """Record that an operator was active."""
        await self.store.run(note_activity, self.store, self.host, who, at)

    async def status(self) -> list[LinkNow]:
        """Return every link as it is now."""
        return await self._links(None)

    async def refused(self, who: str, act: str, reason: str) -> None:
        """Record a refused act; the bot itself answers it, at its own bounded rate."""
        await self.store.run(self._refused, who, act, reason)
        self.bell.ring()

    async def next_posts(self, limit: int) -> list[Post]:
        """Return notices that are due and not posted: answers first, oldest first."""
        return await self.store.run(self._next_posts, limit)

    async def posted(self, notice_id: int, message_id: int) -> None:
        """Record that a notice reached the group; foreign text is not kept longer."""
        await self.store.run(self._posted, notice_id, message_id)

    async def post_failed(self, notice_id: int, retry_at: datetime, error: str) -> None:  # noqa: ARG002 - for the log of the caller
        """Record that a notice did not reach the group; `seeing` pauses what stays unseen."""
        await self.store.run(self._post_failed, notice_id, retry_at)

    async def rival_poller(self, present: bool) -> None:
        """Record whether somebody else polls with this bot's token; while so, nothing is open."""
        await self.store.run(self._rival_poller, present)
        self.bell.ring()

    async def polled(self, at: datetime) -> None:
        """Record that Telegram's queue was looked at."""
        await self.store.run(self._polled, at)

    async def migrated(self, chat_id: int) -> None:
        """Record the new id of the group."""
        await self.store.run(self._fact, CHAT_ID, str(chat_id))

    async def _links(self, peers: list[str] | None) -> list[LinkNow]:
        return await self.store.run(self._links_now, peers)

    def _links_now(self, peers: list[str] | None) -> list[LinkNow]:
        with self.store.reading() as uow:
            links = links_now(uow, self.host, self.host.clock.now())
        return [link for link in links if peers is None or link.peer in peers]

    def _record_update(self, bot_id: int, update_id: int) -> bool:
        now = self.host.clock.now()
        with self.store.begin() as uow:
            for old in uow.all(TelegramUpdate, col(TelegramUpdate.at) < now - KEEP_UPDATES):
                uow.session.delete(old)
            if uow.get(TelegramUpdate, (bot_id, update_id)) is not None:
                return False
            uow.add(TelegramUpdate(bot_id=bot_id, update_id=update_id, at=now))
            return True

    def _stop(self, peer: str | None, who: str) -> list[Switched]:
        try:
            return give_stop(self.store, self.host, Actor(who), peer)
        except NotYoursError:
            return []

    def _go(
        self, peer: str | None, who: str, version: int | None, said_at: datetime | None
    ) -> list[Switched]:
        go = Go(who, peer, version, said_at, causes(self.store, self.home))
        try:
            switched = give_go(self.store, self.host, go)
        except NotYoursError:
            return []
        if any(one.refusal is None for one in switched):
            with self.store.begin() as uow:
                unlock(uow)
        return switched

    def _refused(self, who: str, act: str, reason: str) -> None:
        now = self.host.clock.now()
        with self.store.begin() as uow:
            append(uow, now, Entry(AuditEvent.GO_REFUSED, reason=reason, detail={"by": who, "act": act}))

    def _next_posts(self, limit: int) -> list[Post]:
        now = self.host.clock.now()
        with self.store.reading() as uow:
            due = (
                select(Notice)
                .where(
                    col(Notice.posted_at).is_(None),
                    col(Notice.next_attempt_at).is_(None) | (col(Notice.next_attempt_at) <= now),
                )
                .order_by(col(Notice.lane), col(Notice.id))
                .limit(limit)
            )
            return [_post(row) for row in uow.session.exec(due)]

    def _posted(self, notice_id: int, message_id: int) -> None:
        with self.store.begin() as uow:
            row = uow.get(Notice, notice_id)
            if row is not None:
                row.posted_at, row.post_id, row.foreign = self.host.clock.now(), message_id, None

    def _post_failed(self, notice_id: int, retry_at: datetime) -> None:
        with self.store.begin() as uow:
            row = uow.get(Notice, notice_id)
            if row is None:
                return
            row.attempts, row.next_attempt_at = row.attempts + 1, retry_at

    def _rival_poller(self, present: bool) -> None:
        now = self.host.clock.now()
        with self.store.begin() as uow:
            known = uow.fact(RIVAL) == "present"
            uow.set_fact(RIVAL, "present" if present else "gone")
            if not present:
                return
            for link in uow.all(Link):
                apply(uow, self.host, link, FaultSeen(PauseReason.RIVAL_POLLER), now)
            if not known:
                notify(
                    uow,
                    now,
                    "Another program polls with this bot's token (409). GO works when it is gone.",
                    lane="answer",
                )

    def _polled(self, at: datetime) -> None:
        """Remember the poll, for `seeing`."""
        with self.store.begin() as uow:
            last = uow.fact(POLLED_AT)
            if last is None or not timedelta(0) <= at - datetime.fromisoformat(last) < timedelta(seconds=5):
                uow.set_fact(POLLED_AT, at.isoformat())

    def _fact(self, key: str, value: str) -> None:
        with self.store.begin() as uow:
            uow.set_fact(key, value)


def _post(row: Notice) -> Post:
    button = (row.peer, row.version) if row.peer is not None and row.version is not None else None
    return Post(row.id or 0, Lane(row.lane), row.ours, row.foreign, button)
