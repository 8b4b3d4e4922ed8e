"""What policy is given and what it answers: rules, the state of a link, events, effects."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from governor.message import HOPS, TEXT_LIMIT, Direction, LinkDirection, PauseReason, Refusal, Switch


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits in force on one link."""

    cap: int = 50
    warn_at: int = 40
    watch_for: timedelta = timedelta(minutes=5)
    warn_before: timedelta = timedelta(minutes=1)
    text_limit: int = TEXT_LIMIT
    direction: LinkDirection = LinkDirection.BOTH


@dataclass(frozen=True, slots=True)
class LinkState:
    """The switch and the counters of one link, as the database holds them.

    `version` grows by one at each change of the switch. `watched_until` is the human deadline.
    `seen_at` is the latest instant any decision saw; a clock before it went back.
    """

    switch: Switch = Switch.PAUSED
    reason: PauseReason | None = PauseReason.AWAITING_FIRST_GO
    version: int = 1
    watched_until: datetime | None = None
    out_used: int = 0
    in_used: int = 0
    closed_at: datetime | None = None
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """A message asks to cross the link.

    `size` counts code points. `hops` is what is left after this send (negative: none were left).
    `theirs` says that the reply or conversation belongs to somebody else. `secret` says that the
    text carries a known secret.
    """

    direction: Direction
    size: int
    sender_known: bool = True
    recipient_known: bool = True
    same: bool = False
    theirs: bool = False
    hops: int = HOPS
    secret: bool = False


@dataclass(frozen=True, slots=True)
class GoGiven:
    """A human with authority opens the link.

    `pending_out` and `pending_in` are the unfinished messages, which keep their place in the new
    allowance. `causes` still hold. `version` is the one the button was made for (None: typed or by
    code). `bare` GO names no link and so skips those that await their first GO.
    """

    pending_out: int
    pending_in: int
    causes: tuple[PauseReason, ...] = ()
    version: int | None = None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class StopGiven:
    """Somebody says STOP; `by_peer` when it came as a signed webhook."""

    by_peer: bool = False


@dataclass(frozen=True, slots=True)
class HumanActed:
    """An operator was active at `at` (never later than now)."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time passed."""


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """Something makes supervision unsure: sleep, rival poller, reader down, key change ..."""

    reason: PauseReason


@dataclass(frozen=True, slots=True)
class PeerRevoked:
    """The operator ended the link."""


Event = Offered | GoGiven | StopGiven | HumanActed | Ticked | FaultSeen | PeerRevoked


class Effect(StrEnum):
    """What must be done, as rows, in the same transaction."""

    TELL_OPENED = "tell_opened"
    TELL_CLOSED = "tell_closed"  # paused, stopped or revoked: the state says which and why
    TELL_LIMIT_NEAR = "tell_limit_near"  # this message reached warn_at
    TELL_LIMIT = "tell_limit"  # this message used the last of its direction's allowance
    TELL_UNWATCHED_SOON = "tell_unwatched_soon"
    SEND_STOP = "send_stop"  # to the peer, as a signed webhook
    SEND_HELLO = "send_hello"  # to the peer: open again, a hint to retry
    CANCEL_STOP = "cancel_stop"  # our own stop that has not left yet


class GoRefusal(StrEnum):
    """Why a GO changed nothing."""

    CAUSE_PERSISTS = "cause_persists"
    OLD_VERSION = "old_version"
    REVOKED = "revoked"
    AWAITS_FIRST_GO = "awaits_first_go"


@dataclass(frozen=True, slots=True)
class Decision:
    """The new state and what follows. `refusal` is None when the event was taken."""

    state: LinkState
    effects: tuple[Effect, ...] = field(default=())
    refusal: Refusal | GoRefusal | None = None
