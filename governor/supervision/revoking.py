"""REVOKE: the link ends at once, also for what is in flight; the peer is told nothing."""

from governor.directory.host import Host
from governor.directory.links import Actor, apply
from governor.errors import NotYoursError
from governor.inbound.lives import move
from governor.message import Direction
from governor.outbox.sending import end_all
from governor.policy.lives import InboundEvent, OutboundEvent
from governor.policy.state import PeerRevoked
from governor.store.tables import ControlWebhook, Link, Message, Peer
from governor.store.unit_of_work import Store


def revoke(store: Store, host: Host, name: str, by: Actor) -> bool:
    """End the link to a peer; False when it had ended before. Raises NotYoursError."""
    now = host.clock.now()
    with store.begin() as uow:
        peer, link = uow.get(Peer, name), uow.get(Link, name)
        if peer is None or link is None:
            raise NotYoursError(f"There is no peer {name!r}. See them: governor peers")
        if peer.state == "revoked":
            return False
        peer.state, peer.revoked_at = "revoked", now
        apply(uow, host, link, PeerRevoked(), now, by)
        end_all(uow, name, OutboundEvent.REVOKED, now)
        for row in uow.all(Message, Message.direction == Direction.IN, Message.peer == name):
            move(uow, row, InboundEvent.REVOKED, now, "revoked")
        for waiting in uow.all(
            ControlWebhook, ControlWebhook.peer == name, ControlWebhook.state == "pending"
        ):
            waiting.state = "cancelled"
        return True
