"""Operations with a memory, and a clock that is moved by hand."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from governor.errors import StoreError
from governor.message import PauseReason, Switch
from governor.supervision.freshness import typed_go
from governor.supervision.operations import GoAnswer, LinkNow, Post

WATCH = timedelta(minutes=5)


@dataclass
class HandClock:
    """Both clocks; they stand still but for `advance`."""

    instant: datetime = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
    seconds: float = 1000.0

    def now(self) -> datetime:
        return self.instant

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.instant += timedelta(seconds=seconds)
        self.seconds += seconds


def link(peer: str, switch: Switch = Switch.PAUSED, reason: PauseReason | None = None) -> LinkNow:
    """Return a link without traffic."""
    if switch is Switch.PAUSED and reason is None:
        reason = PauseReason.UNWATCHED
    return LinkNow(peer, switch, reason, 1, 0, 0, 50, None, None)


@dataclass
class MemoryOperations:
    """What a governor would do and remember, for links that are given.

    It outlives a bot, as a database outlives a process. `broken` makes every act fail.
    """

    clock: HandClock
    links: dict[str, LinkNow] = field(default_factory=dict)
    closed_at: dict[str, datetime] = field(default_factory=dict)
    causes: set[PauseReason] = field(default_factory=set)
    seen: set[tuple[int, int]] = field(default_factory=set)
    acts: list[tuple[str, ...]] = field(default_factory=list)
    activity: list[tuple[datetime, str]] = field(default_factory=list)
    refusals: list[tuple[str, str, str]] = field(default_factory=list)
    waiting: list[Post] = field(default_factory=list)
    due: dict[int, datetime] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    polls: list[datetime] = field(default_factory=list)
    rival: list[bool] = field(default_factory=list)
    moved_to: int | None = None
    broken: set[str] = field(default_factory=set)

    def add(self, *links: LinkNow) -> None:
        for added in links:
            self.links[added.peer] = added
            self.closed_at[added.peer] = self.clock.now() - timedelta(hours=1)

    async def record_update(self, bot_id: int, update_id: int) -> bool:
        self._work("record_update")
        new = (bot_id, update_id) not in self.seen
        self.seen.add((bot_id, update_id))
        return new

    async def stop(self, peer: str | None, who: str) -> list[LinkNow]:
        self._work("stop")
        chosen = self._chosen(peer)
        self.acts.append(("stop", peer or "", who))
        for name in chosen:
            self._turn(name, Switch.STOPPED, who)
        return [self.links[name] for name in chosen]

    async def go(
        self, peer: str | None, who: str, *, version: int | None, said_at: datetime | None
    ) -> list[GoAnswer]:
        self._work("go")
        chosen = self._chosen(peer)
        self.acts.append(("go", peer or "", who))
        return [self._go(name, who, version, said_at, bare=peer is None) for name in chosen]

    async def acted(self, at: datetime, who: str) -> None:
        self.activity.append((at, who))

    async def status(self) -> list[LinkNow]:
        return list(self.links.values())

    async def refused(self, who: str, act: str, reason: str) -> None:
        self.refusals.append((who, act, reason))

    async def next_posts(self, limit: int) -> list[Post]:
        self._work("next_posts")
        now = self.clock.now()
        due = [post for post in self.waiting if self.due.get(post.notice_id, now) <= now]
        return sorted(due, key=lambda post: (post.lane.value, post.notice_id))[:limit]

    async def posted(self, notice_id: int, message_id: int) -> None:
        self._work("posted")
        assert notice_id not in self.shown, "posted twice"
        self.shown[notice_id] = message_id
        self.waiting = [post for post in self.waiting if post.notice_id != notice_id]

    async def post_failed(self, notice_id: int, retry_at: datetime, error: str) -> None:
        self.failures.append((notice_id, error))
        self.due[notice_id] = retry_at

    async def rival_poller(self, present: bool) -> None:
        self.rival.append(present)
        (self.causes.add if present else self.causes.discard)(PauseReason.RIVAL_POLLER)

    async def polled(self, at: datetime) -> None:
        self.polls.append(at)

    async def migrated(self, chat_id: int) -> None:
        self.moved_to = chat_id

    def _work(self, act: str) -> None:
        if act in self.broken:
            raise StoreError("the disk is full")

    def _chosen(self, peer: str | None) -> list[str]:
        if peer is not None and peer not in self.links:
            return []
        return list(self.links) if peer is None else [peer]

    def _go(
        self, name: str, who: str, version: int | None, said_at: datetime | None, *, bare: bool
    ) -> GoAnswer:
        now = self.links[name]
        reason: str | None = None
        if version is not None and version != now.version:
            reason = "old_version"
        elif said_at is not None:
            closed_at = self.closed_at.get(name) if now.switch is not Switch.RUNNING else None
            reason = typed_go(said_at, self.clock.now(), closed_at)
        if reason is None and self.causes:
            reason = "cause_persists"
        if reason is None and bare and now.reason is PauseReason.AWAITING_FIRST_GO:
            reason = "awaits_first_go"
        if reason is None:
            self._turn(name, Switch.RUNNING, who)
        return GoAnswer(self.links[name], reason is None, reason)

    def _turn(self, name: str, switch: Switch, who: str) -> None:
        before = self.links[name]
        if before.switch is switch:
            return
        self.closed_at[name] = self.clock.now()
        self.links[name] = replace(
            before,
            switch=switch,
            reason=None,
            version=before.version + 1,
            watched_for=WATCH if switch is Switch.RUNNING else None,
            acted_by=who,
        )
