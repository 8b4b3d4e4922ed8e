"""The loop that sends: webhooks leave here and nowhere else, each from a row, each settled in a row."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from governor.bell import Bell
from governor.directory.host import Host
from governor.directory.identity import known_keys
from governor.directory.keyring import Keyring
from governor.directory.links import is_open
from governor.errors import GovernorError, TransportError
from governor.outbox.control_sending import ControlParcel, pick_control, settle_control
from governor.outbox.insist import insist
from governor.outbox.outcome import CLOSED_HERE, Outcome, outcome_of
from governor.outbox.sending import Parcel, pick, settle
from governor.policy.lives import OutboundEvent
from governor.store.tables import Link, Peer
from governor.store.unit_of_work import Store
from governor.webhook.client import PeerAddress, PeerClient, PostError
from governor.webhook.incoming import WireReason
from governor.webhook.receipt import verify_receipt
from governor.webhook.signing import VerifyKey, signed_headers

TICK_S = 0.5
"""How long a change made by another process may go unnoticed, in seconds."""

_REASONS = frozenset(str(reason) for reason in WireReason)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a peer is reached and which keys may sign its receipts."""

    address: PeerAddress
    keys: tuple[VerifyKey, ...]


class Sender:
    """Sends what is due. `jitter` returns a number in 0..1."""

    def __init__(
        self,
        store: Store,
        host: Host,
        keyring: Keyring,
        client: PeerClient,
        bell: Bell,
        jitter: Callable[[], float],
    ) -> None:
        self.store, self.host, self.keyring = store, host, keyring
        self.client, self.bell, self.jitter = client, bell, jitter
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Send until cancelled; then let the requests under way finish within their own time-outs."""
        try:
            while True:
                if not await self.start_due():
                    await self.bell.wait(TICK_S)
        finally:
            if self._under_way:
                await asyncio.wait(self._under_way, timeout=3)

    async def start_due(self) -> int:
        """Begin a request for everything that is due; return how many. No message delays a control webhook."""
        controls = await self.store.run(pick_control, self.store, self.host)
        self._start(controls)
        messages = await self.store.run(pick, self.store, self.host)
        self._start(messages)
        return len(controls) + len(messages)

    def _start(self, parcels: Sequence[Parcel | ControlParcel]) -> None:
        for parcel in parcels:
            task = asyncio.create_task(self._deliver(parcel))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def drain(self) -> None:
        """Wait until every request under way is settled."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _deliver(self, parcel: Parcel | ControlParcel) -> None:
        try:
            outcome = await self._attempt(parcel)
        except Exception as error:  # noqa: BLE001 - whatever broke, the row must not stay under way
            log.error("attempt_failed", kind=type(error).__name__)  # noqa: TRY400 - its text could hold the message
            outcome = Outcome(OutboundEvent.TRANSPORT_FAILED, "internal")
        if isinstance(parcel, Parcel):
            await insist(self.store, settle, self.store, self.host, parcel, outcome, self.jitter())
        else:
            await insist(self.store, settle_control, self.store, self.host, parcel, outcome, self.jitter())
        self.bell.ring()

    async def _attempt(self, parcel: Parcel | ControlParcel) -> Outcome:
        try:
            target = await asyncio.to_thread(self._target, parcel)
            headers = self._headers(parcel)
        except GovernorError as error:
            return Outcome(OutboundEvent.TRANSPORT_FAILED, error.code, left=False)
        if target is None:
            return CLOSED_HERE
        urgent = isinstance(parcel, ControlParcel)
        try:
            answer = await self.client.post(target.address, headers, parcel.body, urgent=urgent)
            if answer.status != 202:  # noqa: PLR2004 - RFC 9110
                skew = answer.date - self.host.clock.now() if answer.date else timedelta(0)
                return outcome_of(answer.status, answer.body, answer.retry_after, _REASONS, skew=skew)
            verify_receipt(target.keys, answer.body, parcel.id, hashlib.sha256(parcel.body).hexdigest())
        except PostError as error:
            return Outcome(OutboundEvent.TRANSPORT_FAILED, str(error.kind), left=error.left)
        except TransportError:
            return Outcome(OutboundEvent.TRANSPORT_FAILED, "bad_receipt")
        return Outcome(OutboundEvent.RECEIPT_CAME, receipt=answer.body.decode())

    def _headers(self, parcel: Parcel | ControlParcel) -> dict[str, str]:
        """Sign the bytes anew, with the key that they name."""
        signer = json.loads(parcel.body)["data"]["from"]
        headers = signed_headers(
            [self.keyring.signing_key(signer)], parcel.id, self.host.clock.now(), parcel.body
        )
        return {**headers, "governor-key": signer}

    def _target(self, parcel: Parcel | ControlParcel) -> Target | None:
        """Return where it goes; None for a message whose link was closed since it was picked (P2)."""
        now, name = self.host.clock.now(), parcel.peer
        with self.store.reading() as uow:
            link = uow.get(Link, name)
            if isinstance(parcel, Parcel) and (link is None or not is_open(self.host, link, now)):
                return None
            peer = uow.get(Peer, name)
            keys = [key for key in known_keys(uow, now) if key.peer == name]
            if peer is None or not keys:
                raise TransportError(f"Peer {name} is not paired any more.")
            pins = tuple(key.certificate for key in keys)
            address = PeerAddress(name, peer.url, pins, public_tls=peer.public_tls)
            return Target(address, tuple(VerifyKey(key.public_key) for key in keys))
