"""Decide whether a GO is recent enough to mean the links as they are now. A late STOP always counts."""

from datetime import datetime, timedelta
from enum import StrEnum

FRESH_FOR = timedelta(seconds=60)
"""How old a GO may be."""

_SLACK = timedelta(seconds=15)
"""How much longer than asked for a poll may take before it says that we slept or were cut off."""


class Stale(StrEnum):
    """Why a GO came too late, or cannot be dated."""

    TOO_OLD = "too_old"
    CLOCKS_DIFFER = "clocks_differ"
    BEFORE_CLOSING = "before_closing"
    NOT_POLLED = "not_polled"


def typed_go(said_at: datetime, now: datetime, closed_at: datetime | None = None) -> Stale | None:
    """Judge a typed GO by its own date, which Telegram gives in whole seconds, rounded down.

    So a GO said in the second of the closing counts as said before it. A date ahead of our clock by more
    than the limit means that one of the clocks is wrong, and then nothing is known of its age.
    """
    if closed_at is not None and said_at < closed_at:
        return Stale.BEFORE_CLOSING
    if now - said_at > FRESH_FOR:
        return Stale.TOO_OLD
    if said_at - now > FRESH_FOR:
        return Stale.CLOCKS_DIFFER
    return None


def pressed_go(empty_at: datetime | None, now: datetime) -> Stale | None:
    """Judge a button press, which has no date: it came after the queue was last seen empty.

    Whether the button still belongs to the link's present state is for the link's version to say.
    """
    if empty_at is None or not timedelta(0) <= now - empty_at <= FRESH_FOR:
        return Stale.NOT_POLLED
    return None


def queue_empty_at(began: datetime, ended: datetime, hold_for: timedelta, *, full: bool) -> datetime | None:
    """Return the instant at which a successful poll proves that nothing older waits, if it proves it.

    A `full` answer may leave older updates behind. An answer that took much longer than Telegram holds
    a poll lay in a buffer (the machine slept), and a clock that went back dates nothing.
    """
    if full or not timedelta(0) <= ended - began <= hold_for + _SLACK:
        return None
    return ended


def active_at(said_at: datetime, now: datetime) -> datetime:
    """Return when an operator was active: the act's own date, never later than now."""
    return min(said_at, now)
