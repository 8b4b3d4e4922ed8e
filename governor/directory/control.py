"""Control webhooks (stop, hello, cancel, rotate) as rows that wait to reach a peer.

The body's bytes are made by the loop that sends, from `type` and `data`, with the keys of that
moment; the row's id is the webhook's id and stays the same over all attempts.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from governor.directory.host import Host
from governor.store.tables import ControlWebhook
from governor.store.unit_of_work import UnitOfWork

ControlType = Literal["stop", "hello", "cancel", "rotate"]


def queue_control(
    uow: UnitOfWork,
    host: Host,
    peer: str,
    kind: ControlType,
    now: datetime,
    *,
    keep_for: timedelta,
    data: dict[str, Any] | None = None,
) -> str:
    """Queue a control webhook for a peer; an older waiting one of the same type is replaced."""
    cancel_pending(uow, peer, kind, same=data or {})
    row = ControlWebhook(
        id=host.new_id("w"),
        peer=peer,
        type=kind,
        data=data or {},
        state="pending",
        created_at=now,
        expires_at=now + keep_for,
        next_attempt_at=now,
    )
    uow.add(row)
    return row.id


def cancel_pending(
    uow: UnitOfWork, peer: str, kind: ControlType, *, same: dict[str, Any] | None = None
) -> None:
    """Take back what has not left yet; `same` limits it to rows with that data."""
    for row in uow.all(ControlWebhook, ControlWebhook.peer == peer, ControlWebhook.state == "pending"):
        if row.type == kind and (same is None or row.data == same):
            row.state = "cancelled"
