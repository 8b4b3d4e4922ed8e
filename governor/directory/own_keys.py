"""This host's own change of key: announce, let every peer take it, then change over.

The new key is `incoming` until every confirmed peer has answered the rotation, or the overlap is
over; then it is `active` and the old one `retiring`, still good for what was made with it, until it
is `retired` and its files are deleted.
"""

from datetime import datetime, timedelta

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.control import queue_control
from governor.directory.host import Host
from governor.directory.identity import active_key
from governor.directory.keyring import Keyring, NewKeys
from governor.errors import LocalError
from governor.store.tables import ControlWebhook, HostKey, Peer
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.rotation import rotate_data

OVERLAP = timedelta(hours=24)
"""How long the peers have to take a new key, and then how long the old one still counts: no message lives
longer, so none outlives the key it was made with. A peer lets the old key count for twice as long."""


def add_key(uow: UnitOfWork, keys: NewKeys, state: str, now: datetime) -> None:
    """Enter a key of ours whose files are written."""
    uow.add(
        HostKey(
            fingerprint=keys.fingerprint,
            state=state,
            public_key=keys.public_key,
            certificate=keys.certificate,
            created_at=now,
        )
    )


def start_rotation(uow: UnitOfWork, host: Host, keyring: Keyring, keys: NewKeys, now: datetime) -> list[str]:
    """Announce new keys to every confirmed peer and return their names.

    Raises LocalError while another rotation is under way.
    """
    if uow.one(HostKey, HostKey.state == "incoming") or uow.one(HostKey, HostKey.state == "retiring"):
        raise LocalError("A rotation is under way. The next one may begin a day after the change-over.")
    add_key(uow, keys, "incoming", now)
    append(uow, now, Entry(AuditEvent.KEY_ROTATED, reason="announced", detail={"key": keys.fingerprint}))
    return _announce(uow, host, keyring, now)


def carry_on_rotation(uow: UnitOfWork, host: Host, keyring: Keyring, now: datetime) -> bool:
    """Take the next step of a rotation if its time has come; True when keys or certificates changed."""
    changed = False
    _announce(uow, host, keyring, now)
    incoming = uow.one(HostKey, HostKey.state == "incoming")
    waiting = uow.all(ControlWebhook, ControlWebhook.type == "rotate", ControlWebhook.state == "pending")
    if incoming and (not waiting or now >= incoming.created_at + OVERLAP):
        old = active_key(uow)
        old.state, old.retire_at = "retiring", now + OVERLAP
        uow.session.flush()
        incoming.state = "active"
        append(uow, now, Entry(AuditEvent.KEY_ROTATED, reason="done", detail={"key": incoming.fingerprint}))
        changed = True
    for old in uow.all(HostKey, HostKey.state == "retiring"):
        if old.retire_at is not None and now >= old.retire_at:
            old.state = "retired"
            keyring.forget(old.fingerprint)
            changed = True
    return changed


def _announce(uow: UnitOfWork, host: Host, keyring: Keyring, now: datetime) -> list[str]:
    """Tell the incoming key to every confirmed peer that was not told, and return their names.

    Also to one that was confirmed since the rotation began: it knows the old key only.
    """
    incoming = uow.one(HostKey, HostKey.state == "incoming")
    if incoming is None:
        return []
    sent = uow.all(
        ControlWebhook, ControlWebhook.type == "rotate", ControlWebhook.created_at >= incoming.created_at
    )
    told = {row.peer for row in sent if row.state != "cancelled"}
    peers = [peer.name for peer in uow.all(Peer, Peer.state == "confirmed") if peer.name not in told]
    new_key = keyring.signing_key(incoming.fingerprint)
    until = incoming.created_at + 2 * OVERLAP
    data = rotate_data(active_key(uow).fingerprint, new_key, incoming.certificate, until)
    for peer in peers:
        queue_control(uow, host, peer, "rotate", now, keep_for=OVERLAP, data=data)
    return peers
