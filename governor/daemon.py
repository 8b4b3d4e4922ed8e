"""`governor run`: one process, two listeners, a few loops, ended by SIGTERM within five seconds."""

import asyncio
import contextlib
import random
import resource
import socket
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from governor.audit.record import Entry
from governor.bell import Bell
from governor.clock import Clock, SystemClock
from governor.directory.identity import KnownKey, active_fingerprint, known_keys
from governor.directory.links import Actor
from governor.directory.refusals import Refusals
from governor.errors import StoreError
from governor.inbound.reader_locks import described
from governor.inbound.reader_loop import ReaderLoop
from governor.inbound.reader_trial import try_reader
from governor.lifetime import Loop, Loops, Signals, TimelyEnd
from governor.listen_address import split_address
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
from governor.logs import write_logs
from governor.outbox.insist import insist
from governor.outbox.sender import Sender
from governor.sole_governor import sole_governor
from governor.supervision.starting import start, stopped
from governor.supervision.switching import give_stop
from governor.supervision.ticking import Instant, slept, tick
from governor.webhook.app import Gate, make_peer_app
from governor.webhook.client import PeerClient
from governor.webhook.listener import PeerCertificateProtocol
from governor.webhook.receipt import Receipt, sign_receipt
from governor.webhook.tls import PinnedContext, server_context
from governor.wiring import Home, broker_of, keeper_of, limits_of, open_home, reader_rules, telegram_bot

TICK_S: Final = 1.0

DRAIN_WITHIN_S: Final = 3.5
"""How long loops and listeners may take to finish what is under way, in seconds."""

END_WITHIN_S: Final = 4.7
"""How long the end may take in all, in seconds."""

DESCRIPTORS: Final = 2_048
"""Open files that the bounds of the listeners leave room within; macOS begins with 256."""

log = structlog.get_logger(__name__)


def run(home_path: Path, clock: Clock | None = None) -> int:
    """Run the governor of a home until SIGTERM or SIGINT; return the exit code."""
    clock = clock or SystemClock()
    write_logs(clock)
    _allow_descriptors()
    with sole_governor(home_path), TimelyEnd(END_WITHIN_S).awaited() as end:
        asyncio.run(_serve(home_path, clock, end))
    return 0


async def _serve(home_path: Path, clock: Clock, end: TimelyEnd) -> None:
    signals = Signals()  # first of all: a STOP or an end that comes during the start counts
    home = open_home(home_path, clock)
    try:
        await Daemon(home, signals, end).run()
    finally:
        home.store.close()


class Keys(NamedTuple):
    """The keys in use: the fingerprint of our own that signs, and those of the peers."""

    own: str
    known: list[KnownKey]


class Listener(NamedTuple):
    """A server and the socket it serves."""

    server: QuietServer
    sock: socket.socket


class Daemon:
    """The parts of a running governor."""

    def __init__(self, home: Home, signals: Signals, end: TimelyEnd) -> None:
        self.home, self.store, self.host = home, home.store, home.host
        self.signals, self.end = signals, end
        self.bell, self.refusals, self.loops = Bell(), Refusals(), Loops(home.host.clock)
        self.broker, self.keeper = broker_of(home), keeper_of(home, self.bell)
        self.bot = telegram_bot(home, self.bell)
        self.keys = self._read_keys()
        # A damaged key and a list of secrets that cannot be used are found now, not at the first message.
        home.keyring.signing_key(self.keys.own)
        self.host.known_secrets()
        self.context: PinnedContext | None = None
        if home.settings.tls == "mutual":
            self.context = server_context(self._tls_file(), [key.certificate for key in self.keys.known])
        self.sender = Sender(self.store, self.host, home.keyring, self._client(), self.bell, random.random)
        self.reader = ReaderLoop(
            self.store, self.host, reader_rules(home), self.broker, self.bell, self._has_model
        )
        self._ticked = self._instant()

    async def run(self) -> None:
        """Serve until told to end or until a part breaks, whose error is raised at the end."""
        await self._try_reader()
        listeners = self._listeners()  # all are bound before anything is changed
        try:
            chat_id = self.home.settings.supervision.telegram.chat_id
            found = await self.store.run(start, self.store, self.host, limits_of(self.home), chat_id)
            await self._serve(listeners, found)
        finally:
            self.home.socket.unlink(missing_ok=True)

    async def _try_reader(self) -> None:
        sandbox = self.home.settings.reader.sandbox
        held = await try_reader(sandbox)
        log.info("reader_tried", sandbox=sandbox.value, locks=described(held))

    async def _serve(self, listeners: list[Listener], found: str) -> None:
        serving = [asyncio.create_task(each.server.serve(sockets=[each.sock])) for each in listeners]
        looping = [asyncio.create_task(self._for_ever(loop)) for loop in self._loops()]
        told = [asyncio.create_task(self._for_ever(self._supervise))] if self.bot else []
        ready = asyncio.create_task(self._say_ready(listeners, found))
        over = asyncio.create_task(self._until_told())
        parts = [*serving, *looping, *told]
        done, _ = await asyncio.wait([over, *parts], return_when=asyncio.FIRST_COMPLETED)
        self.end.begin()
        self.signals.ending.set()  # ends what was `told`, which may have something to finish
        self.bell.ring_out()
        for listener in listeners:
            listener.server.should_exit = True
        for task in (ready, *looping):
            task.cancel()
        _, late = await asyncio.wait(parts, timeout=DRAIN_WITHIN_S)
        for task in late:
            task.cancel()
        try:
            await self._close()
        finally:
            for task in done:
                task.result()  # what broke ended the governor: let its error be seen

    async def _close(self) -> None:
        await self.sender.client.close()
        if self.broker is not None:
            await self.broker.close()
        now = self.host.clock.now()
        await self.store.run(stopped, self.store, now, self.refusals.take(now, stopping=True))
        log.info("ended")
        self.end.code = 0  # what may still run, such as an import in a thread, has nothing to lose

    async def _say_ready(self, listeners: list[Listener], found: str) -> None:
        for listener in listeners:
            await listener.server.opened.wait()
        with contextlib.suppress(OSError):  # nobody may be there to read it
            print(f"{found} Agents: {self.home.socket}. Peers: {self.home.settings.listen}.", flush=True)  # noqa: T201 - says that it is ready
        log.info("running", found=found)

    def _loops(self) -> list[Loop]:
        # A STOP that came during the start is the first to reach the database.
        loops: list[Loop] = [self._stop_when_told, self._tick, self.sender.run, self.reader.run]
        loops += [self.broker.warm] if self.broker is not None else []
        return [*loops, self.keeper.run] if self.keeper is not None else loops

    def _has_model(self) -> bool:
        return self.keeper is None or self.keeper.is_ready

    async def _for_ever(self, loop: Loop) -> None:
        await self.loops.keep(loop)
        await self._until_told()  # one that has ended of itself ends nothing else

    async def _until_told(self) -> None:
        await self.signals.ending.wait()

    async def _supervise(self) -> None:
        if self.bot is not None:
            await self.bot.run(self.signals.ending)

    async def _stop_when_told(self) -> None:
        while True:
            await self.signals.stop.wait()
            await insist(self.store, give_stop, self.store, self.host, Actor("signal USR1"))
            self.signals.stop.clear()  # only now: until it is written, peers are put off
            self.bell.ring()

    async def _tick(self) -> None:
        failing = False
        while True:
            await asyncio.sleep(TICK_S)
            try:
                await self._tick_once()
            except StoreError as error:
                if not failing:
                    log.error("tick_failed", error=error.message)  # noqa: TRY400 - the message says it all
                failing = True
                continue
            if failing:
                log.info("tick_works_again")
            failing = False
            self.loops.ticked()
            if self.bot is not None:
                self.bot.nudge()

    async def _tick_once(self) -> None:
        instant = self._instant()
        after_sleep = slept(self._ticked, instant)
        if after_sleep:
            await self.sender.client.close()  # connections from before the sleep are dead
        counted = self.refusals.take(instant.wall)
        try:
            keys = await self.store.run(self._write_tick, counted, after_sleep)
        except StoreError:
            self.refusals.give_back(counted)
            raise
        self._ticked = instant  # not before: a sleep that could not be written is found again
        await self._follow(keys)

    def _write_tick(self, counted: list[Entry], after_sleep: bool) -> Keys:
        telegram = self.bot is not None
        home = self.home
        tick(
            self.store,
            self.host,
            home.keyring,
            home.path,
            counted,
            after_sleep=after_sleep,
            telegram=telegram,
        )
        return self._read_keys()

    async def _follow(self, keys: Keys) -> None:
        """Let the listener and the client follow what was paired, revoked or rotated."""
        before, self.keys = self.keys, keys
        if keys.known != before.known:
            if self.context is not None:
                self.context.pin(key.certificate for key in keys.known)
            for peer in {key.peer for key in before.known} - {key.peer for key in keys.known}:
                await self.sender.client.forget(peer)
        if keys.own != before.own:
            if self.context is not None:
                self.context.show(self._tls_file())
            old, self.sender.client = self.sender.client, self._client()
            await old.close()
            log.info("key_changed", key=keys.own)

    def _read_keys(self) -> Keys:
        with self.store.reading() as uow:
            return Keys(active_fingerprint(uow), known_keys(uow, self.host.clock.now()))

    def _listeners(self) -> list[Listener]:
        settings = self.home.settings
        local = split_address(settings.local_api.listen)
        app = make_app(Room(self.store, self.host, self.bell))
        names = frozenset(f"{name}:{local[1]}" for name in ("127.0.0.1", "localhost", "[::1]"))
        gate = Gate(
            self.store,
            self.host,
            self.bell,
            self.refusals,
            self._sign_receipt,
            lambda: self.reader.is_down or self.signals.stop.is_set(),
            mutual=self.context is not None,
        )
        peers = make_server(make_peer_app(gate), PeerCertificateProtocol, self.context)
        shared = self.home.socket.parent != self.home.path
        return [
            Listener(peers, bind_tcp(*split_address(settings.listen))),
            Listener(make_server(LocalOnly(app, names), BoundedProtocol), bind_tcp(*local)),
            Listener(make_server(app, UnixPeerProtocol), bind_unix(self.home.socket, group=shared)),
        ]

    def _sign_receipt(self, receipt: Receipt) -> bytes:
        return sign_receipt(self.home.keyring.signing_key(self.keys.own), receipt)

    def _client(self) -> PeerClient:
        return PeerClient(self._tls_file(), allow_loopback=self.home.settings.loopback_peers)

    def _tls_file(self) -> Path:
        return self.home.keyring.tls_file(self.keys.own)

    def _instant(self) -> Instant:
        return Instant(self.host.clock.now(), self.host.clock.monotonic())


def _allow_descriptors() -> None:
    """Let this process open as many files as its listeners may need, where the system began with fewer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
