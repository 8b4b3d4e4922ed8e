"""`governor run`: one process, two listeners, a few loops, ended by SIGTERM within five seconds."""

import asyncio
import contextlib
import fcntl
import os
import random
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from ipaddress import ip_address
from pathlib import Path

import structlog

from governor.audit.record import Entry
from governor.bell import Bell
from governor.clock import Clock, SystemClock
from governor.directory.identity import active_fingerprint, known_keys
from governor.directory.links import Actor
from governor.directory.refusals import Refusals
from governor.errors import ConfigError, StoreError
from governor.inbound.reader_loop import ReaderLoop
from governor.listening import (
    BoundedProtocol,
    QuietServer,
    UnixPeerProtocol,
    bind_tcp,
    bind_unix,
    make_server,
)
from governor.local_api.app import Room, make_app
from governor.local_api.guard import LocalOnly
from governor.outbox.insist import insist
from governor.outbox.sender import Sender
from governor.supervision.starting import start, stopped
from governor.supervision.switching import give_stop
from governor.supervision.ticking import Instant, slept, tick
from governor.webhook.app import Gate, make_peer_app
from governor.webhook.client import PeerClient
from governor.webhook.listener import PeerCertificateProtocol
from governor.webhook.receipt import Receipt, sign_receipt
from governor.webhook.tls import PinnedContext, server_context
from governor.wiring import Home, broker_of, limits_of, open_home, reader_rules, telegram_bot

TICK_S = 1.0
STORE_RETRY_S = 5.0
END_WITHIN_S = 4.0

log = structlog.get_logger(__name__)


def run(home_path: Path, clock: Clock | None = None) -> int:
    """Run the governor of a home until SIGTERM or SIGINT; return the exit code."""
    with sole_governor(home_path):
        home = open_home(home_path, clock or SystemClock())
        try:
            asyncio.run(Daemon(home).run())
        finally:
            home.store.close()
    return 0


@contextlib.contextmanager
def sole_governor(home: Path) -> Iterator[None]:
    """Hold the home's lock; raises ConfigError that names the process which holds it."""
    if not home.is_dir():
        raise ConfigError(f"No governor lives in {home}. Make one: governor init --name NAME --agent AGENT")
    descriptor = os.open(home / "governor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            pid = lock.read(20).strip() or "unknown"
            raise ConfigError(
                f"A governor runs in {home} already: process {pid}. Stop it: kill {pid}"
            ) from None
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


class Daemon:
    """The parts of a running governor."""

    def __init__(self, home: Home) -> None:
        self.home, self.store, self.host = home, home.store, home.host
        self.bell, self.refusals, self.ending = Bell(), Refusals(), asyncio.Event()
        self.broker = broker_of(home)
        self.bot = telegram_bot(home, self.bell)
        with self.store.reading() as uow:
            self.fingerprint = active_fingerprint(uow)
            self.known = known_keys(uow, self.host.clock.now())
        self.context: PinnedContext | None = None
        if home.settings.tls == "mutual":
            self.context = server_context(self._tls_file(), [key.certificate for key in self.known])
        self.sender = Sender(self.store, self.host, home.keyring, self._client(), self.bell, random.random)
        self.reader = ReaderLoop(self.store, self.host, reader_rules(home), self.broker, self.bell)
        self._ticked = self._instant()
        self._stopping: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until told to end; then finish what is under way and write the last record."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.ending.set)
        loop.add_signal_handler(signal.SIGUSR1, self._stop_by_signal)
        chat_id = self.home.settings.supervision.telegram.chat_id
        servers = self._servers()
        found = await self.store.run(start, self.store, self.host, limits_of(self.home), chat_id)
        serving = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in servers]
        looping = [asyncio.create_task(self._kept(loop_)) for loop_ in self._loops()]
        for server, _sock in servers:
            await server.opened.wait()
        print(f"{found} Agents: {self.home.socket}. Peers: {self.home.settings.listen}.", flush=True)  # noqa: T201 - says that it is ready
        over = asyncio.create_task(self.ending.wait())
        done, _ = await asyncio.wait([over, *serving, *looping], return_when=asyncio.FIRST_COMPLETED)
        await self._end([server for server, _sock in servers], serving, looping)
        for task in done:
            task.result()  # a loop that ended by itself broke: let its error be seen

    async def _end(
        self, servers: list[QuietServer], serving: list[asyncio.Task[None]], looping: list[asyncio.Task[None]]
    ) -> None:
        self.ending.set()
        self.bell.ring()
        for server in servers:
            server.should_exit = True
        for task in looping:
            task.cancel()
        await asyncio.wait([*serving, *looping], timeout=END_WITHIN_S)
        await self.sender.client.close()
        if self.broker is not None:
            await self.broker.close()
        now = self.host.clock.now()
        await self.store.run(stopped, self.store, now, self.refusals.take(now, stopping=True))
        self.home.socket.unlink(missing_ok=True)

    def _loops(self) -> list[Callable[[], Awaitable[None]]]:
        loops: list[Callable[[], Awaitable[None]]] = [self.sender.run, self.reader.run, self._tick]
        if self.broker is not None:
            loops.append(self._warm)
        if self.bot is not None:
            bot = self.bot
            loops.append(lambda: bot.run(self.ending))
        return loops

    async def _kept(self, loop: Callable[[], Awaitable[None]]) -> None:
        """Run a loop again when the database failed: it commits nothing, so nothing passes meanwhile."""
        while not self.ending.is_set():
            try:
                await loop()
            except StoreError as error:
                log.error("store_failed", error=error.message)  # noqa: TRY400 - the message says it all
                await asyncio.sleep(STORE_RETRY_S)
            else:
                await self.ending.wait()

    async def _warm(self) -> None:
        if self.broker is not None:
            await self.broker.warm()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            instant = self._instant()
            after_sleep = slept(self._ticked, instant)
            if after_sleep:
                await self.sender.client.close()  # connections from before the sleep are dead
            counted = self.refusals.take(instant.wall)
            try:
                await self.store.run(self._tick_once, counted, after_sleep)
            except StoreError:
                self.refusals.give_back(counted)
                raise
            self._ticked = instant  # not before: a sleep that could not be written is found again
            await self._follow_keys()
            if self.bot is not None:
                self.bot.nudge()

    def _tick_once(self, counted: list[Entry], after_sleep: bool) -> bool:
        return tick(
            self.store,
            self.host,
            self.home.keyring,
            self.home.path,
            counted,
            after_sleep=after_sleep,
            telegram=self.bot is not None,
        )

    async def _follow_keys(self) -> None:
        """Let the listener and the client follow what was paired, revoked or rotated."""
        with self.store.reading() as uow:
            fingerprint, known = active_fingerprint(uow), known_keys(uow, self.host.clock.now())
        if known != self.known:
            gone = {key.peer for key in self.known} - {key.peer for key in known}
            self.known = known
            if self.context is not None:
                self.context.pin(key.certificate for key in known)
            for peer in gone:
                await self.sender.client.forget(peer)
        if fingerprint != self.fingerprint:
            self.fingerprint = fingerprint
            if self.context is not None:
                self.context.show(self._tls_file())
            old, self.sender.client = self.sender.client, self._client()
            await old.close()

    def _servers(self) -> list[tuple[QuietServer, socket.socket]]:
        """Bind all listeners before anything is served, so that a taken port changes nothing."""
        settings = self.home.settings
        local, peer = _address(settings.local_api.listen), _address(settings.listen)
        if not _is_loopback(local[0]):
            raise ConfigError(
                "local_api.listen must be a loopback address: agents of other hosts use their own governor."
            )
        if settings.tls == "proxy" and not _is_loopback(peer[0]):
            raise ConfigError(
                'With tls = "proxy" the peer listener speaks plain HTTP: listen must be a loopback address.'
            )
        app = make_app(Room(self.store, self.host, self.bell))
        names = frozenset(f"{name}:{local[1]}" for name in ("127.0.0.1", "localhost", "[::1]"))
        gate = Gate(
            self.store,
            self.host,
            self.bell,
            self.refusals,
            self._sign_receipt,
            lambda: self.reader.is_down,
            mutual=self.context is not None,
        )
        shared = self.home.socket.parent != self.home.path
        return [
            (make_server(make_peer_app(gate), PeerCertificateProtocol, self.context), bind_tcp(*peer)),
            (make_server(LocalOnly(app, names), BoundedProtocol), bind_tcp(*local)),
            (make_server(app, UnixPeerProtocol), bind_unix(self.home.socket, group=shared)),
        ]

    def _sign_receipt(self, receipt: Receipt) -> bytes:
        return sign_receipt(self.home.keyring.signing_key(self.fingerprint), receipt)

    def _stop_by_signal(self) -> None:
        task = asyncio.create_task(self._stop_all("signal USR1"))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    async def _stop_all(self, who: str) -> None:
        await insist(self.store, give_stop, self.store, self.host, Actor(who))
        self.bell.ring()

    def _client(self) -> PeerClient:
        return PeerClient(self._tls_file(), allow_loopback=self.home.settings.loopback_peers)

    def _tls_file(self) -> Path:
        return self.home.keyring.tls_file(self.fingerprint)

    def _instant(self) -> Instant:
        return Instant(self.host.clock.now(), self.host.clock.monotonic())


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:  # a name: 127.example.org begins like an address
        return False
