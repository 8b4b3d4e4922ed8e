"""Hops and lineage: how far a content has come, and through whom, so that no storm goes on for ever.

Replies cost nothing here (the breaker of a conversation bounds them). Forwards cost a hop, and a
forward is what goes back to somebody the content has already been with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from governor.message import HOPS

THROUGH_LIMIT: Final = 16
"""How many names a lineage holds."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Hops left (negative: none were left for the last forward), and the addresses the content was with.

    `through` names each address once, oldest first; the last one sent it.
    """

    hops: int
    through: tuple[str, ...]


def clamp(hops: int) -> int:
    """Bound a peer's figure to what it may say: 0 to 4."""
    return min(max(hops, 0), HOPS)


def fresh(sender: str) -> Lineage:
    """Start a lineage: what the sender says comes from nobody else."""
    return Lineage(HOPS, (sender,))


def received(hops: int, through: Sequence[str], sender: str) -> Lineage:
    """Take a peer's figures, bounded; `sender` comes from its credential and is in the lineage for certain."""
    return Lineage(clamp(hops), _with(through, sender))


def of_reply(asked: Lineage, sender: str) -> Lineage:
    """Continue the lineage of what is answered, at no cost."""
    return Lineage(asked.hops, _with(asked.through, sender))


def inherit(read: Sequence[Lineage], sender: str, recipient: str) -> Lineage:
    """Return the lineage of a send that answers nothing.

    `read` are the lineages of what the sender read in the last ten minutes, oldest first: it may be
    passing on any of it, so the result has been where each of them has been and has the fewest hops
    of all. It is a forward, at the cost of a hop, if the recipient is among those names.
    """
    if not read:
        return fresh(sender)
    names = tuple(dict.fromkeys(name for lineage in read for name in lineage.through))
    # A full lineage may have lost the recipient's name, so it counts as a forward to anybody.
    # Hence a loop ends however many agents it leads through, and which names are kept is a matter
    # of use only: the newest say who handed what to whom.
    forward = recipient in names or len(names) >= THROUGH_LIMIT
    return Lineage(min(lineage.hops for lineage in read) - forward, _with(names, sender))


def _with(names: Iterable[str], sender: str) -> tuple[str, ...]:
    """Put the sender last, each name once, the newest names only."""
    others = dict.fromkeys(name for name in names if name != sender)
    return (*others, sender)[-THROUGH_LIMIT:]
