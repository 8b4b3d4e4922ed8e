"""Which keys count now: ours, and those of each peer. Rows only; the private halves are files."""

from dataclasses import dataclass
from datetime import datetime

from governor.errors import StoreError
from governor.store.tables import HostKey, Peer, PeerKey
from governor.store.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A peer's key that counts now. Certificates and fingerprints as in `governor.webhook`."""

    peer: str
    fingerprint: str
    public_key: bytes
    certificate: bytes
    certificate_fingerprint: str
    current: bool


def active_key(uow: UnitOfWork) -> HostKey:
    """Return the key of ours that signs; raises StoreError when the home was never made whole."""
    row = uow.one(HostKey, HostKey.state == "active")
    if row is None:
        raise StoreError("This governor has no key. Make one: governor init")
    return row


def active_fingerprint(uow: UnitOfWork) -> str:
    """Return the fingerprint of the key of ours that signs."""
    return active_key(uow).fingerprint


def own_fingerprints(uow: UnitOfWork) -> frozenset[str]:
    """Return the fingerprints under which a peer may address us: two during our own rotation."""
    return frozenset(row.fingerprint for row in uow.all(HostKey, HostKey.state != "retired"))


def peer_fingerprint(uow: UnitOfWork, peer: str) -> str:
    """Return the fingerprint of the peer's current key."""
    row = uow.one(PeerKey, PeerKey.peer == peer, PeerKey.current)
    if row is None:
        raise StoreError(f"Peer {peer} has no key. Pair anew: governor revoke {peer}")
    return row.fingerprint


def known_keys(uow: UnitOfWork, now: datetime) -> list[KnownKey]:
    """Return every key of every confirmed peer that counts at this instant."""
    confirmed = {row.name for row in uow.all(Peer, Peer.state == "confirmed")}
    return [
        KnownKey(
            peer=row.peer,
            fingerprint=row.fingerprint,
            public_key=row.public_key,
            certificate=row.certificate,
            certificate_fingerprint=row.certificate_fingerprint,
            current=row.current,
        )
        for row in uow.all(PeerKey)
        if row.peer in confirmed and (row.valid_until is None or now < row.valid_until)
    ]
