"""Notices: sentences for the operators, rows first, so that a restart loses none."""

from datetime import datetime
from typing import Literal

from governor.store.tables import Notice
from governor.store.unit_of_work import UnitOfWork


def notify(
    uow: UnitOfWork,
    now: datetime,
    ours: str,
    *,
    peer: str | None = None,
    foreign: str | None = None,
    lane: Literal["answer", "mirror"] = "mirror",
    version: int | None = None,
) -> None:
    """Write a notice. `ours` is plain text of ours; `foreign` is shown apart, framed and bounded.

    `version` gives it a GO button that is bound to this version of the link.
    """
    uow.add(Notice(lane=lane, peer=peer, ours=ours, foreign=foreign, version=version, created_at=now))
