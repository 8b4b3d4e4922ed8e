"""What supervision asks of the rest of the governor, and the values that pass between them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from governor.message import PauseReason, Switch


class Lane(StrEnum):
    """Which queue a post stands in; answers to operators go ahead of the mirror."""

    ANSWER = "answer"
    MIRROR = "mirror"


@dataclass(frozen=True, slots=True)
class LinkNow:
    """A link as it is at this moment.

    `watched_for` is what is left of the human deadline (None: nobody is watching). `acted_by` says
    who moved the switch last. `cap` bounds each direction.
    """

    peer: str
    switch: Switch
    reason: PauseReason | None
    version: int
    out_used: int
    in_used: int
    cap: int
    watched_for: timedelta | None
    acted_by: str | None


@dataclass(frozen=True, slots=True)
class GoAnswer:
    """What a GO did to one link; `reason` is a word of a closed grammar when it opened nothing."""

    link: LinkNow
    opened: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """A notice that still has to reach the group.

    `ours` are the governor's own words, `foreign` is text of an agent or a peer. `button` offers a GO
    for (peer, version of its link).
    """

    notice_id: int
    lane: Lane
    ours: str
    foreign: str | None = None
    button: tuple[str, int] | None = None


class Operations(Protocol):
    """The acts that the group may ask for. Each is one unit of work; any may raise `StoreError`.

    `who` has the form `telegram:<user id>`, or names a group's anonymous admin or a channel.
    """

    async def record_update(self, bot_id: int, update_id: int) -> bool:
        """Remember an update before it is acted on; return False if it is already known.

        Known means this very pair: Telegram may restart its numbers anywhere after a quiet week.
        """
        ...

    async def stop(self, peer: str | None, who: str) -> list[LinkNow]:
        """Stop one link, or all (None); return those links as they are now, none if there is no such link."""
        ...

    async def go(
        self, peer: str | None, who: str, *, version: int | None, said_at: datetime | None
    ) -> list[GoAnswer]:
        """Open one link, or all (None) but those that await their first GO.

        `version` is the one a button was made for, `said_at` the date of a typed GO, to be compared
        with the closing (`freshness.typed_go`) in the same transaction. Exactly one of them is given.
        Return one answer per link concerned, none if there is no such link.
        """
        ...

    async def acted(self, at: datetime, who: str) -> None:
        """Record that an operator was active at `at`."""
        ...

    async def status(self) -> list[LinkNow]:
        """Return every link as it is now."""
        ...

    async def refused(self, who: str, act: str, reason: str) -> None:
        """Record that somebody asked for an act and was refused."""
        ...

    async def next_posts(self, limit: int) -> list[Post]:
        """Return up to `limit` notices that are due and not posted: answers first, oldest first."""
        ...

    async def posted(self, notice_id: int, message_id: int) -> None:
        """Record that a notice reached the group."""
        ...

    async def post_failed(self, notice_id: int, retry_at: datetime, error: str) -> None:
        """Record that a notice did not reach the group; it is due again at `retry_at`."""
        ...

    async def rival_poller(self, present: bool) -> None:
        """Record that somebody else polls with this bot's token, or that nobody does any more."""
        ...

    async def polled(self, at: datetime) -> None:
        """Record that Telegram's queue was looked at, last at `at`."""
        ...

    async def migrated(self, chat_id: int) -> None:
        """Record the new id of the group, for the next start."""
        ...
