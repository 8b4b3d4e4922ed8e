"""Two whole governors in one process, one clock that only the test moves, the wire a function call.

What is real: the use cases, the database files, the keys, the signatures, both HTTP apps, the reader
children. What is not: TLS and sockets (see tests/contract and tests/journey/test_two_processes.py).
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from governor.audit.log import genesis
from governor.audit.verify import verify
from governor.bell import Bell
from governor.config import Settings
from governor.delivery.inbox import InboxItem, read_inbox, waiting
from governor.directory import agents as agent_rows
from governor.directory.identity import active_fingerprint, active_key
from governor.directory.keyring import Keyring
from governor.directory.links import Actor
from governor.directory.own_keys import add_key
from governor.directory.pairing import accept_offer, confirm, make_offer
from governor.directory.refusals import Refusals
from governor.inbound.model_broker import Broker
from governor.inbound.reader_loop import ReaderLoop
from governor.local_api.app import Room, make_app
from governor.message import Switch, UntrustedText
from governor.outbox.sender import Sender
from governor.outbox.submit import Offer, Submitted, submit
from governor.store.tables import AuditRecord, Link, Message, Notice
from governor.store.unit_of_work import Row, Store
from governor.supervision.revoking import revoke
from governor.supervision.seeing import causes
from governor.supervision.starting import start
from governor.supervision.switching import Go, Switched, give_go, give_stop, note_activity
from governor.supervision.ticking import Instant, slept, tick
from governor.webhook.app import Gate, make_peer_app
from governor.webhook.certificates import certificate_fingerprint
from governor.webhook.client import Answer, Fault, PeerAddress, PostError
from governor.webhook.receipt import Receipt, sign_receipt
from governor.wiring import database_path, home_of, limits_of, reader_rules

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
    """Stands in for `PeerClient`: hands a request to the app of the governor it is for.

    `cut` loses requests, `deaf` loses answers (the request arrives). `before` is awaited before a body
    leaves, `under_way` is called while a request is, `change` may alter the answer. `seen` keeps all
    that left.
    """

    own: "Governor"
    cut: bool = False
    deaf: bool = False
    before: Callable[[bytes], Awaitable[object]] | None = None
    under_way: Callable[[], object] | None = None
    change: Callable[[Answer], Answer] | None = None
    seen: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def post(
        self,
        peer: PeerAddress,
        headers: Mapping[str, str],
        body: bytes,
        *,
        urgent: bool = False,  # noqa: ARG002 - there are no places to wait for
    ) -> Answer:
        if self.cut:
            raise PostError(Fault.CONNECT, peer.name, left=False)
        if self.before is not None:
            await self.before(body)
        self.seen.append((dict(headers), body))
        response = await self.own.network[peer.name].hook(headers, body, self.own.certificate)
        if self.under_way is not None:
            self.under_way()
        if self.deaf:
            raise PostError(Fault.CUT, peer.name, left=True)
        retry = response.headers.get("retry-after")
        answer = Answer(
            response.status_code, response.content, timedelta(seconds=int(retry)) if retry else None
        )
        return self.change(answer) if self.change else answer

    async def forget(self, name: str) -> None:
        pass

    async def close(self) -> None:
        pass


@cache
def new_database() -> bytes:
    """Return the file of an empty database, which takes a while to make."""
    with TemporaryDirectory() as folder:
        path = database_path(Path(folder))
        Store(path).close()
        return path.read_bytes()


class Governor:
    """One governor without sockets; its home is made unless the token of its agent there is given."""

    def __init__(
        self,
        path: Path,
        name: str,
        agent: str,
        clock: FakeClock,
        broker: Broker | None,
        token: str = "",
        **settings: object,
    ) -> None:
        self.agent, self.clock, self.broker = agent, clock, broker
        self.network: dict[str, Governor] = {}
        self.settings = Settings(name=name, url=f"https://{name}.example", loopback_peers=True, **settings)
        if token:
            self.open(path)
            self.token = token
        else:
            self._make(path, name)

    def _make(self, path: Path, name: str) -> None:
        path.mkdir(mode=0o700)
        database_path(path).write_bytes(new_database())
        keys = Keyring(path).make(name, [f"{name}.example"], self.clock.now())
        self.open(path)
        with self.store.begin() as uow:
            genesis(uow, self.clock.now(), name, keys.fingerprint)
            add_key(uow, keys, "active", self.clock.now())
        self.token = self.add_agent(self.agent)
        start(self.store, self.host, limits_of(self.home), 0)

    def open(self, path: Path) -> None:
        self.home = home_of(path, self.settings, self.clock)
        self.store, self.host, self.bell, self.refusals = self.home.store, self.home.host, Bell(), Refusals()
        self.wire = Wire(self)
        self.sender = Sender(
            self.store,
            self.host,
            self.home.keyring,
            self.wire,  # type: ignore[arg-type] # a double of the client
            self.bell,
            lambda: 0.5,
        )
        self.reader = ReaderLoop(self.store, self.host, reader_rules(self.home), self.broker, self.bell)
        self.peer_app = self.app_over(self.store)
        self.local_app = make_app(Room(self.store, self.host, self.bell))
        self.local = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.local_app), base_url="http://127.0.0.1:18801"
        )
        self.ticked = Instant(self.clock.now(), self.clock.monotonic())

    def app_over(self, store: Store) -> Starlette:
        """Return the peer API over a database."""
        return make_peer_app(
            Gate(
                store,
                self.host,
                self.bell,
                self.refusals,
                self._sign,
                lambda: self.reader.is_down,
                mutual=True,
                body_within_s=1.0,
            )
        )

    def restart(self, **settings: object) -> None:
        """End as a crash does (nothing is tidied up) and start anew, with other settings if given."""
        if settings:
            self.settings = Settings(**{**self.settings.model_dump(), **settings})
        path = self.home.path
        self.store.close()
        self.open(path)
        start(self.store, self.host, limits_of(self.home), 0)

    @property
    def certificate(self) -> str:
        with self.store.reading() as uow:
            return certificate_fingerprint(active_key(uow).certificate)

    def _sign(self, receipt: Receipt) -> bytes:
        with self.store.reading() as uow:
            fingerprint = active_fingerprint(uow)
        return sign_receipt(self.home.keyring.signing_key(fingerprint), receipt)

    async def hook(
        self, headers: Mapping[str, str], body: bytes, certificate: str | None, **request: object
    ) -> httpx.Response:
        """Take a request as the peer listener would hand it to the app."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self.peer_app(scope | {"state": {"peer_certificate": certificate}}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://peer") as client:
            head = {"content-type": "application/json"} | dict(headers)
            asked = {"method": "POST", "url": "/hooks", "headers": head, "content": body} | request
            return await client.request(**asked)

    async def ask(
        self, method: str, path: str, *, token: str | None = None, **more: object
    ) -> httpx.Response:
        """Ask the local API with an agent's token; by default with that of this governor's agent."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        return await self.local.request(method, path, headers=headers, **more)

    def add_agent(self, name: str) -> str:
        """Register an agent and return its token."""
        now = self.clock.now()
        with self.store.begin() as uow:
            agent_rows.add(uow, name, now)
            return agent_rows.join(uow, agent_rows.make_grant(uow, name, now), now)[1]

    def send(self, to: str, text: str, **more: object) -> Submitted:
        return submit(self.store, self.host, Offer(self.agent, to, UntrustedText(text), **more))

    def inbox(self, agent: str | None = None) -> list[InboxItem]:
        return read_inbox(self.store, self.host, agent or self.agent)

    def waiting(self) -> int:
        return waiting(self.store, self.host, self.agent)

    def go(self, peer: str | None = None, **more: object) -> list[Switched]:
        return give_go(
            self.store, self.host, Go("tester", peer, causes=causes(self.store, self.home.path), **more)
        )

    def stop(self, peer: str | None = None) -> list[Switched]:
        return give_stop(self.store, self.host, Actor("tester"), peer)

    def revoke(self, peer: str) -> bool:
        return revoke(self.store, self.host, peer, Actor("tester"))

    def tick(self, *, telegram: bool = False) -> bool:
        """Tick as the daemon does, which looks at both clocks."""
        instant = Instant(self.clock.now(), self.clock.monotonic())
        after_sleep, self.ticked = slept(self.ticked, instant), instant
        return tick(
            self.store,
            self.host,
            self.home.keyring,
            self.home.path,
            self.refusals.take(instant.wall),
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
        return self.rows(Message)

    def rows(self, table: type[Row]) -> list[Row]:
        with self.store.reading() as uow:
            return uow.all(table)

    def everything(self) -> dict[str, list[Any]]:
        """Return every row of every table, to compare."""
        with self.store.reading() as uow:
            connection = uow.session.connection()
            names = connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).scalars()
            return {
                name: list(connection.exec_driver_sql(f'SELECT * FROM "{name}"'))  # noqa: S608 - our own tables
                for name in names.all()
            }

    def audit(self, event: str) -> list[AuditRecord]:
        return [row for row in self.rows(AuditRecord) if row.event == event]

    def notices(self) -> list[str]:
        return [row.ours for row in self.rows(Notice)]

    def verify(self) -> bool:
        with self.store.reading() as uow:
            return verify(uow).ok


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for what another task brings about, but not for ever."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is a row, which sets no event
            await asyncio.sleep(0.01)


def pair_up(one: Governor, other: Governor) -> None:
    """Exchange the lines and confirm them on both sides."""
    for offering, taking in ((one, other), (other, one)):
        now = offering.clock.now()
        with offering.store.begin() as uow:
            line = make_offer(
                uow, offering.host, offering.home.keyring, offering.home.url, now, public_tls=False
            )
        with taking.store.begin() as uow:
            accept_offer(uow, taking.host, line, now, loopback=True)
            confirm(uow, offering.host.name, now)
    introduce(one, other)


def introduce(one: Governor, other: Governor) -> None:
    """Let the wire of each find the other."""
    one.network[other.host.name], other.network[one.host.name] = other, one


_READY: dict[str, tuple[TemporaryDirectory[str], tuple[str, str]]] = {}


def copy_ready_homes(folder: Path, settings: Mapping[str, object]) -> tuple[str, str]:
    """Copy two homes that were made and paired once, which takes a while; return their agents' tokens."""
    key = repr(settings)
    if key not in _READY:
        made = TemporaryDirectory()
        pair = GovernorPair(Path(made.name), paired=False, **settings)
        pair_up(pair.max, pair.eva)
        pair.close()
        _READY[key] = made, (pair.max.token, pair.eva.token)
    made, tokens = _READY[key]
    for name in ("max", "eva"):
        shutil.copytree(Path(made.name) / name, folder / name)
    return tokens


class GovernorPair:
    """Max's and Eva's governors, paired and confirmed, both closed until GO."""

    def __init__(
        self, folder: Path, *, broker: Broker | None = None, paired: bool = True, **settings: object
    ) -> None:
        self.folder = folder
        self.clock = FakeClock()
        tokens = copy_ready_homes(folder, settings) if paired else ("", "")
        self.max = Governor(folder / "max", "max-host", "max", self.clock, broker, tokens[0], **settings)
        self.eva = Governor(folder / "eva", "eva-host", "eva", self.clock, broker, tokens[1], **settings)
        self.all = [self.max, self.eva]
        if paired:
            introduce(self.max, self.eva)

    def third(self) -> Governor:
        """Add Zoe's governor, paired with Max's."""
        zoe = Governor(self.folder / "zoe", "zoe-host", "zoe", self.clock, None)
        self.all.append(zoe)
        pair_up(self.max, zoe)
        return zoe

    def go(self) -> None:
        for one in self.all:
            for peer in one.network:
                assert one.go(peer)[0].switch is Switch.RUNNING

    def pass_time(self, **by: float) -> None:
        """Let time pass with a human there."""
        self.clock.advance(**by)
        for one in self.all:
            note_activity(one.store, one.host, "tester", self.clock.now())

    async def settle(self) -> None:
        """Let everything happen that is due now: send, read, answer, until nothing is left to do."""
        while await self.deliver() + await self.read():
            pass

    async def deliver(self) -> int:
        """Send what is due now, and nothing else."""
        begun = 0
        for one in self.all:
            begun += await one.sender.start_due()
            await one.sender.drain()
        return begun

    async def read(self) -> int:
        """Read what may be read now, and nothing else."""
        begun = 0
        for one in self.all:
            begun += await one.reader.start_due()
            await one.reader.drain()
        return begun

    def close(self) -> None:
        for one in self.all:
            one.store.close()
