"""A peer's change of key: the old key says so, the new key proves itself, both count for an overlap."""

from datetime import datetime

from governor.errors import LocalError
from governor.store.tables import PeerKey
from governor.store.unit_of_work import UnitOfWork
from governor.webhook.certificates import certificate_fingerprint, check_certificate
from governor.webhook.incoming import IncomingRotate
from governor.webhook.rotation import RotationProof, overlap_end


def take_rotation(uow: UnitOfWork, peer: str, incoming: IncomingRotate, now: datetime) -> bool:
    """Take the new key of a peer; False when it cannot be taken.

    Only the current key may name its successor: an old key in its overlap cannot rotate again. The
    certificate is looked at as at pairing: a damaged one would break the listener for every peer.
    """
    old = uow.get(PeerKey, incoming.from_fp)
    new = incoming.new_key.fingerprint
    if old is None or old.peer != peer or not old.current or uow.get(PeerKey, new) is not None:
        return False
    proof = RotationProof(incoming.from_fp, incoming.new_key, incoming.new_certificate)
    if not proof.accepts(incoming.proof):
        return False
    try:
        check_certificate(incoming.new_certificate, now)
    except LocalError:
        return False
    old.current, old.valid_until = False, overlap_end(now, incoming.at, incoming.overlap_until)
    uow.add(
        PeerKey(
            fingerprint=new,
            peer=peer,
            public_key=incoming.new_key.raw,
            certificate=incoming.new_certificate,
            certificate_fingerprint=certificate_fingerprint(incoming.new_certificate),
            current=True,
        )
    )
    return True
