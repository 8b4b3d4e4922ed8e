"""Pairing: lines are exchanged by any channel, then two phrases are compared by voice, then confirmed.

A line by itself opens nothing: until `confirm` (with the operator's code) the link is unusable, and
after it the link still awaits its first GO.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.agents import local_agents
from governor.directory.host import Host
from governor.directory.identity import active_key
from governor.directory.keyring import Keyring
from governor.errors import LocalError, NotYoursError
from governor.policy.state import LinkState
from governor.store.tables import Link, Peer, PeerKey
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.certificates import certificate_fingerprint
from governor.webhook.pairing_line import Offer, decode_offer, encode_offer
from governor.webhook.phrases import phrase
from governor.webhook.signing import VerifyKey

OFFER_FOR = timedelta(hours=24)


Identity = tuple[bytes, bytes]
"""A public key (raw) and the certificate (DER) beside it."""


@dataclass(frozen=True)
class Pairing:
    """What both operators compare: a phrase for each side, made when asked for (it takes a while)."""

    peer: str
    own: Identity
    other: Identity
    new: bool

    @cached_property
    def ours(self) -> str:
        """Return the six words of this host."""
        return phrase(*self.own)

    @cached_property
    def theirs(self) -> str:
        """Return the six words of the peer."""
        return phrase(*self.other)


def make_offer(
    uow: UnitOfWork, host: Host, keyring: Keyring, url: str, now: datetime, *, public_tls: bool
) -> str:
    """Return the line that introduces this governor; raises LocalError without an agent."""
    agents = tuple(local_agents(uow))
    if not agents:
        raise LocalError("No agent to introduce. Add one first: governor agent add NAME")
    key = active_key(uow)
    offer = Offer(
        name=host.name,
        agents=agents,
        url=url,
        public_key=VerifyKey(key.public_key),
        certificate=key.certificate,
        expires_at=now + OFFER_FOR,
        public_tls=public_tls,
    )
    return encode_offer(offer, keyring.signing_key(key.fingerprint))


def accept_offer(uow: UnitOfWork, host: Host, line: str, now: datetime, *, loopback: bool) -> Pairing:
    """Store the peer of a line, unconfirmed; raises LocalError when the line or its name cannot be taken."""
    offer = decode_offer(line, now, allow_loopback=loopback)
    peer_key = offer.public_key.fingerprint
    if offer.name == host.name:
        raise LocalError(
            f"That line is of a governor called {host.name}, as this one is. One of the two needs another name."
        )
    known = uow.get(Peer, offer.name)
    own, other = _own_identity(uow), (offer.public_key.raw, offer.certificate)
    if known is not None and known.state != "revoked":
        current = uow.one(PeerKey, PeerKey.peer == offer.name, PeerKey.current)
        if current is not None and current.fingerprint == peer_key and known.url == offer.url:
            return Pairing(offer.name, own, other, new=False)
        raise LocalError(
            f"There is a peer called {offer.name} already. To pair anew: governor revoke {offer.name}"
        )
    used = uow.get(PeerKey, peer_key)
    if used is not None and used.peer != offer.name:
        raise LocalError(
            f"That key belongs to peer {used.peer} already; two names for one key are not taken."
        )
    _store(uow, offer, peer_key, now)
    append(uow, now, Entry(AuditEvent.PEER_OFFERED, peer=offer.name, detail={"key": peer_key}))
    return Pairing(offer.name, own, other, new=True)


def confirm(uow: UnitOfWork, name: str, now: datetime) -> bool:
    """Make the link usable (it still awaits GO); False when it was confirmed before."""
    peer = unconfirmed(uow, name)
    if peer is None:
        return False
    peer.state, peer.confirmed_at = "confirmed", now
    append(uow, now, Entry(AuditEvent.PEER_CONFIRMED, peer=name))
    return True


def unconfirmed(uow: UnitOfWork, name: str) -> Peer | None:
    """Return a peer that waits to be confirmed; None when it was before. Raises NotYoursError."""
    peer = uow.get(Peer, name)
    if peer is None or peer.state == "revoked":
        raise NotYoursError(f"No peer {name!r} waits to be confirmed. See them: governor peers")
    return None if peer.state == "confirmed" else peer


def own_phrase(uow: UnitOfWork) -> str:
    """Return the six words of this governor's key and certificate."""
    return phrase(*_own_identity(uow))


def peer_phrase(uow: UnitOfWork, name: str) -> str:
    """Return the six words of the peer's current key and certificate."""
    row = uow.one(PeerKey, PeerKey.peer == name, PeerKey.current)
    if row is None:
        raise NotYoursError(f"There is no peer {name!r}. See them: governor peers")
    return phrase(row.public_key, row.certificate)


def _own_identity(uow: UnitOfWork) -> Identity:
    key = active_key(uow)
    return key.public_key, key.certificate


def _store(uow: UnitOfWork, offer: Offer, peer_key: str, now: datetime) -> None:
    for old in uow.all(PeerKey, PeerKey.peer == offer.name):
        uow.session.delete(old)
    uow.session.flush()
    peer = uow.get(Peer, offer.name)
    if peer is None:
        peer = Peer(name=offer.name, state="offered", url=offer.url, agents=[], paired_at=now)
        uow.add(peer)
    peer.state, peer.url, peer.agents, peer.paired_at = "offered", offer.url, list(offer.agents), now
    peer.public_tls, peer.confirmed_at, peer.revoked_at = offer.public_tls, None, None
    uow.add(
        PeerKey(
            fingerprint=peer_key,
            peer=offer.name,
            public_key=offer.public_key.raw,
            certificate=offer.certificate,
            certificate_fingerprint=certificate_fingerprint(offer.certificate),
            current=True,
        )
    )
    _new_link(uow, offer.name)


def _new_link(uow: UnitOfWork, name: str) -> None:
    """Make a closed link; after a re-pairing its version goes on, so that no old button fits it."""
    fresh = LinkState()
    link = uow.get(Link, name)
    if link is None:
        uow.add(Link(peer=name, switch=fresh.switch, reason=fresh.reason, version=fresh.version))
        return
    link.switch, link.reason, link.version = fresh.switch, fresh.reason, link.version + 1
    link.watched_until = link.closed_at = None
    link.out_used = link.in_used = link.reader_failures = 0
