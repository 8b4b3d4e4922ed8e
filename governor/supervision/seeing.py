"""Out of sight is closed: what humans could not see or stop does not go on."""

from datetime import datetime, timedelta
from pathlib import Path

from sqlmodel import col

from governor.directory.host import Host
from governor.directory.links import apply
from governor.message import PauseReason
from governor.policy.state import FaultSeen
from governor.store.tables import Link, Notice
from governor.store.unit_of_work import Store, UnitOfWork

CHAT_ID = "telegram_chat_id"
"""Fact: the id the group has now, after Telegram gave it a new one."""

POLLED_AT = "telegram_polled_at"
"""Fact: when Telegram was last polled with success."""

RIVAL = "telegram_rival"
"""Fact: `present` while somebody else polls with this bot's token."""

GROUP = "telegram_group"
"""Fact: the id of the group in the settings at the last start."""

UNPOLLED_FOR = timedelta(minutes=5)
UNSEEN_FOR = timedelta(seconds=120)


def watch_telegram(uow: UnitOfWork, host: Host, now: datetime) -> None:
    """Pause every link while Telegram cannot be polled, or an exchange cannot be shown there."""
    polled = uow.fact(POLLED_AT)
    unpolled = polled is not None and now - datetime.fromisoformat(polled) > UNPOLLED_FOR
    unseen = uow.all(
        Notice,
        col(Notice.posted_at).is_(None),
        Notice.lane == "mirror",
        col(Notice.created_at) < now - UNSEEN_FOR,
    )
    if unpolled or unseen:
        for link in uow.all(Link):
            apply(uow, host, link, FaultSeen(PauseReason.UNSEEN), now)


def telegram_begins(uow: UnitOfWork, chat_id: int, now: datetime) -> None:
    """At a start: the group, if there is one, is shown what happens from now on.

    What waited for another group, or for none, is not posted late to this one.
    """
    uow.set_fact(RIVAL, "gone")
    uow.set_fact(POLLED_AT, now.isoformat())
    if uow.fact(GROUP) != str(chat_id):
        uow.set_fact(GROUP, str(chat_id))
        uow.set_fact(CHAT_ID, str(chat_id))
        for row in uow.all(Notice, col(Notice.posted_at).is_(None)):
            row.posted_at = now


def causes(store: Store, home: Path) -> tuple[PauseReason, ...]:
    """Return what keeps this host's links closed now, whatever a human says."""
    found: list[PauseReason] = []
    with store.reading() as uow:
        if uow.fact(RIVAL) == "present":
            found.append(PauseReason.RIVAL_POLLER)
    if stop_file(home):
        found.append(PauseReason.STOP_FILE)
    return tuple(found)


def stop_file(home: Path) -> bool:
    """Tell whether a file named STOP lies in the home; while it does, nothing opens."""
    return (home / "STOP").exists()
