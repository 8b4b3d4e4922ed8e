"""Two whole governors in one process, one clock that only the test moves, the wire a function call.

What is real: the use cases, the database files, the keys, the signatures, both HTTP apps, the reader
children. What is not: TLS and sockets (see tests/contract and tests/journey/test_two_processes.py).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from governor.audit.log import genesis
from governor.audit.rate import Totals
from governor.audit.verify import verify
from governor.bell import Bell
from governor.config import Settings
from governor.delivery.inbox import InboxItem, read_inbox
from governor.directory import agents as agent_rows
from governor.directory.identity import active_fingerprint, active_key
from governor.directory.links import Actor
from governor.directory.own_keys import add_key
from governor.directory.pairing import accept_offer, confirm, make_offer
from governor.inbound.model_broker import Broker
from governor.inbound.reader_loop import ReaderLoop
from governor.local_api.app import Room, make_app
from governor.message import Switch, UntrustedText
from governor.outbox.sender import Sender
from governor.outbox.submit import Offer, Submitted, submit
from governor.store.tables import Link, Message
from governor.supervision.seeing import causes
from governor.supervision.switching import Go, Switched, give_go, give_stop
from governor.supervision.ticking import tick
from governor.webhook.app import Gate, make_peer_app
from governor.webhook.certificates import certificate_fingerprint
from governor.webhook.client import Answer, Fault, PeerAddress, PostError
from governor.webhook.receipt import sign_receipt
from governor.wiring import home_of, reader_rules

BEGINNING = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@dataclass
class FakeClock:
    """Both clocks, moved by hand. A sleep moves the wall only."""

    wall: datetime = BEGINNING
    steady: float = 1000.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def advance(self, **by: float) -> None:
        step = timedelta(**by)
        self.wall += step
        self.steady += step.total_seconds()

    def sleep(self, **by: float) -> None:
        self.wall += timedelta(**by)


@dataclass
class Wire:
    """Stands in for `PeerClient`: hands a request to the other governor's app. `cut` loses requests,
    `deaf` loses answers (the request arrives), `seen` keeps all that left."""

    governor: "Governor | None" = None
    own_certificate: str = ""
    cut: bool = False
    deaf: bool = False
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def post(
        self, peer: PeerAddress, headers: Mapping[str, str], body: bytes, *, urgent: bool = False
    ) -> Answer:
        if self.cut or self.governor is None:
            raise PostError(Fault.CONNECT, peer.name, left=False)
        self.seen.append((dict(headers), body))
        response = await self.governor.hook(headers, body, self.own_certificate)
        if self.deaf:
            raise PostError(Fault.CUT, peer.name, left=True)
        retry = response.headers.get("retry-after")
        return Answer(response.status_code, response.content, timedelta(seconds=int(retry)) if retry else None)

    async def forget(self, name: str) -> None:
        pass

    async def close(self) -> None:
        pass


class Governor:
    """One governor without sockets."""

    def __init__(self, path: Path, name: str, agent: str, clock: FakeClock, broker: Broker | None, **settings: Any):
        path.mkdir(mode=0o700)
        self.agent, self.clock = agent, clock
        self.settings = Settings(name=name, url=f"https://{name}.example", loopback_peers=True, **settings)
        self.open(path, broker)
        keys = self.home.keyring.make(name, [f"{name}.example"], clock.now())
        with self.store.begin() as uow:
            genesis(uow, clock.now(), name, keys.fingerprint)
            add_key(uow, keys, "active", clock.now())
            agent_rows.add(uow, agent, clock.now())
            grant = agent_rows.make_grant(uow, agent, clock.now())
        with self.store.begin() as uow:
            self.token = agent_rows.join(uow, grant, clock.now())[1]
            self.certificate = certificate_fingerprint(active_key(uow).certificate)
        self.wire.own_certificate = self.certificate

    def open(self, path: Path, broker: Broker | None = None) -> None:
        self.home = home_of(path, self.settings, self.clock)
        self.store, self.host, self.bell, self.totals = self.home.store, self.home.host, Bell(), Totals()
        self.wire = Wire()
        self.sender = Sender(self.store, self.host, self.home.keyring, self.wire, self.bell, lambda: 0.5)  # type: ignore[arg-type]
        self.reader = ReaderLoop(self.store, self.host, reader_rules(self.home), broker, self.bell)
        gate = Gate(
            self.store, self.host, self.bell, self.totals, self._sign, lambda: self.reader.is_down, mutual=True
        )
        self.peer_app = make_peer_app(gate)
        self.local = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_app(Room(self.store, self.host, self.bell))),
            base_url="http://local",
        )

    def _sign(self, receipt: Any) -> bytes:
        with self.store.reading() as uow:
            fingerprint = active_fingerprint(uow)
        return sign_receipt(self.home.keyring.signing_key(fingerprint), receipt)

    async def hook(self, headers: Mapping[str, str], body: bytes, certificate: str | None) -> httpx.Response:
        """Take a request as the peer listener would hand it to the app."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await self.peer_app(scope | {"state": {"peer_certificate": certificate}}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://peer") as client:
            head = {"content-type": "application/json"} | dict(headers)
            return await client.post("/hooks", headers=head, content=body)

    def send(self, to: str, text: str, **more: Any) -> Submitted:
        return submit(self.store, self.host, Offer(self.agent, to, UntrustedText(text), **more))

    def inbox(self) -> list[InboxItem]:
        return read_inbox(self.store, self.host, self.agent)

    def go(self, peer: str | None = None, **more: Any) -> list[Switched]:
        return give_go(self.store, self.host, Go("tester", peer, causes=causes(self.store, self.home.path), **more))

    def stop(self, peer: str | None = None) -> list[Switched]:
        return give_stop(self.store, self.host, Actor("tester"), peer)

    def tick(self, *, after_sleep: bool = False, telegram: bool = False) -> None:
        tick(
            self.store,
            self.host,
            self.home.keyring,
            self.home.path,
            self.totals,
            after_sleep=after_sleep,
            telegram=telegram,
        )

    def link(self, peer: str) -> Link:
        with self.store.reading() as uow:
            row = uow.get(Link, peer)
        assert row is not None
        return row

    def message(self, message_id: str) -> Message:
        with self.store.reading() as uow:
            row = uow.one(Message, Message.id == message_id)
        assert row is not None
        return row

    def messages(self) -> list[Message]:
        with self.store.reading() as uow:
            return uow.all(Message)

    def rows(self, table: Any) -> list[Any]:
        with self.store.reading() as uow:
            return uow.all(table)

    def verify(self) -> bool:
        with self.store.reading() as uow:
            return verify(uow).ok


class GovernorPair:
    """Max's and Eva's governors, paired and confirmed, both closed until GO."""

    def __init__(self, folder: Path, *, broker: Broker | None = None, paired: bool = True, **settings: Any) -> None:
        self.clock = FakeClock()
        self.max = Governor(folder / "max", "max-host", "max", self.clock, broker, **settings)
        self.eva = Governor(folder / "eva", "eva-host", "eva", self.clock, broker, **settings)
        self.connect()
        if paired:
            self.pair()

    def connect(self) -> None:
        self.max.wire.governor, self.eva.wire.governor = self.eva, self.max
        self.max.wire.own_certificate, self.eva.wire.own_certificate = self.max.certificate, self.eva.certificate

    def pair(self) -> None:
        for one, other in ((self.max, self.eva), (self.eva, self.max)):
            with one.store.begin() as uow:
                line = make_offer(uow, one.host, one.home.keyring, one.home.url, self.clock.now(), public_tls=False)
            with other.store.begin() as uow:
                accept_offer(uow, other.host, line, self.clock.now(), loopback=True)
                confirm(uow, one.host.name, self.clock.now())

    def go(self) -> None:
        for one, peer in ((self.max, "eva-host"), (self.eva, "max-host")):
            assert one.go(peer)[0].switch is Switch.RUNNING

    async def settle(self) -> None:
        """Let everything happen that is due now: send, read, answer, until nothing is left to do."""
        while True:
            begun = 0
            for one in (self.max, self.eva):
                begun += await one.sender.start_due()
                await one.sender.drain()
                begun += await one.reader.start_due()
                await one.reader.drain()
            if begun == 0:
                return

    def close(self) -> None:
        for one in (self.max, self.eva):
            one.store.close()


def run(coroutine: Any) -> Any:
    """Run a coroutine in the main thread's own loop."""
    return asyncio.run(coroutine)
