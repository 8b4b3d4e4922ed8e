"""Governors as real processes, for tests: homes made by the command line, free ports, TLS, signals, kills.

What the demo plays is played here too (`Side`); tests add looks into the home, and the rougher ends.
"""

import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from governor.cli.demo_stage import Side, wait_for
from governor.cli.opened import opened
from governor.supervision.seeing import causes
from governor.supervision.switching import Go, Switched, give_go
from tests.ports import free_ports

T = TypeVar("T")

WITHIN_S = 90.0
"""How long anything may take before a test gives up: a condition is waited for, never a time."""

ENDS_WITHIN_S = 60.0

_RUNNING = '"event": "running"'
_ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": ""}  # compiled once, not at every start


@dataclass(frozen=True)
class Ended:
    """How `governor run` ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What it said to people: everything but the log."""
        return [line for line in self.err.splitlines() if not line.startswith("{")]


class RealSide(Side):
    """One home, its governor's process, its agent and its operator.

    `file_size_limit` (bytes) is what the next process may write to a file: a disk that is full.
    """

    file_size_limit: int | None = None

    @property
    def database(self) -> Path:
        return self.home / "governor.db"

    @property
    def socket(self) -> Path:
        return self.home / "governor.sock"

    @property
    def log(self) -> str:
        """Everything the governor said since the first start."""
        return (self.home / "governor.log").read_text(encoding="utf-8", errors="replace")

    def make(self, **settings: object) -> Self:
        """Make the home, its operator's code and its settings."""
        address = f"127.0.0.1:{self.peer_port}"
        self.must("init", "--name", self.name, "--agent", self.agent, "--listen", address)
        self.set(**settings)
        self.secret = self.must("operator", "enroll")["secret"]
        return self

    def set(self, **settings: object) -> None:
        """Write the settings anew: two governors on one machine, watched for an hour, and these.

        A section is a dictionary: `limits={"messages": 3}`.
        """
        usual: dict[str, Any] = {
            "name": self.name,
            "listen": f"127.0.0.1:{self.peer_port}",
            "url": f"{'http' if settings.get('tls') == 'proxy' else 'https'}://127.0.0.1:{self.peer_port}",
            "loopback_peers": True,
            "local_api": {"listen": f"127.0.0.1:{self.local_port}"},
            "limits": {"watch_for": "1h"},
        }
        (self.home / "governor.toml").write_text(_toml(usual | settings), encoding="utf-8")

    def start(self) -> None:
        """Start the governor and wait until it serves."""
        before = len(self.log) if (self.home / "governor.log").exists() else 0
        with (self.home / "governor.log").open("ab") as log:
            self.process = self.launch(log, log)
        wait_for(lambda: not self.alive() or _RUNNING in self.log[before:], WITHIN_S)
        assert _RUNNING in self.log[before:], self.log[before:]

    def program(self) -> list[str]:
        """Return the command of the governor."""
        return [sys.executable, "-m", "governor.cli.main", "--home", str(self.home), "run"]

    def launch(self, out: int | IO[bytes], err: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start `governor run` without waiting for anything."""
        environment = os.environ | _ENVIRONMENT | self.extra
        limit = self.file_size_limit

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        return subprocess.Popen(
            self.program(),
            stdin=subprocess.DEVNULL,
            env=environment,
            stdout=out,
            stderr=err,
            preexec_fn=limited,  # noqa: PLW1509 - nothing else runs in the fork
        )

    def run_to_end(self) -> Ended:
        """Run a governor that is expected to end of itself."""
        process = self.launch(subprocess.PIPE, subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Ended(process.returncode, out.decode(), err.decode())

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def exit_code(self) -> int:
        """Wait until the process has ended and return how."""
        assert self.process is not None
        return self.process.wait(ENDS_WITHIN_S)

    def kill(self) -> None:
        """End as a crash does."""
        self.signal(signal.SIGKILL)
        self.exit_code()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def go(self, peer: str) -> list[Switched]:
        """Say GO as an operator in the group does: no code is used up."""
        with opened(self.home) as home:
            return give_go(home.store, home.host, Go("tester", peer, causes=causes(home.store, home.path)))

    def switch(self, peer: str) -> tuple[str, str | None]:
        """Return the switch of the link to a peer, and why it is closed."""
        return self.rows("SELECT switch, reason FROM link WHERE peer = ?", peer)[0]

    def rows(self, query: str, *values: object) -> list[Any]:
        """Ask the database as an auditor does, beside the governor."""
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()

    def states(self, message_id: str) -> list[str]:
        """Return the states of all rows with this id."""
        return [row[0] for row in self.rows("SELECT state FROM message WHERE id = ?", message_id)]

    def send(self, to: str, text: str, *more: str) -> str:
        """Offer a message, which has to be queued, and return its id."""
        return str(self.must("send", "--to", to, "--no-wait", *more, "-", stdin=text)["id"])

    def inbox(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.must("inbox")["messages"]
        return found

    def empty_inbox(self) -> None:
        for message in self.inbox():
            self.must("ack", message["id"])

    def children(self) -> list[int]:
        """Return the pids of the governor's children: its readers."""
        assert self.process is not None
        return [pid for pid, (parent, _) in _processes().items() if parent == self.process.pid]


_IN_TURN = """
import contextlib, io, json, sys
from governor.cli.main import main
for home in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--home", home, "run"])
    print(json.dumps([int(code), out.getvalue(), err.getvalue()]))
"""


def run_in_turn(homes: list[Path]) -> list[Ended]:
    """Run governors that are expected to end of themselves, one after the other in one process."""
    done = subprocess.run(
        [sys.executable, "-c", _IN_TURN, *map(str, homes)],
        env=os.environ | _ENVIRONMENT,
        capture_output=True,
        timeout=2 * WITHIN_S,
        check=True,
    )
    return [Ended(*json.loads(line)) for line in done.stdout.splitlines()]


class RealPair:
    """Max's and Eva's homes, paired and confirmed with the operators' codes; no process runs yet."""

    def __init__(self, folder: Path, **settings: object) -> None:
        ports = free_ports(4)
        self.max = RealSide("max-host", "max", folder / "max", *ports[:2]).make(**settings)
        self.eva = RealSide("eva-host", "eva", folder / "eva", *ports[2:]).make(**settings)
        self.sides = (self.max, self.eva)
        self.pair()

    def pair(self) -> None:
        offer = self.max.must("pair", "offer")["line"]
        answer = self.eva.must("pair", "accept", offer)["line"]
        self.max.must("pair", "accept", answer)
        for side, other in ((self.max, self.eva), (self.eva, self.max)):
            side.must("pair", "confirm", other.name, "--code", side.code(lambda _line: None))

    def open(self) -> None:
        """Have both governors run, both links open, both inboxes empty."""
        for side in self.sides:
            (side.home / "STOP").unlink(missing_ok=True)
            if not side.alive():
                side.start()
        self.open_links()
        for side in self.sides:
            side.empty_inbox()

    def open_links(self) -> None:
        """Say GO at both sides."""
        self.max.go(self.eva.name)
        self.eva.go(self.max.name)

    def end(self) -> None:
        for side in self.sides:
            end(side)


def end(side: RealSide) -> None:
    """End a governor whatever state it is in."""
    if side.alive():
        side.signal(signal.SIGCONT)
        side.signal(signal.SIGTERM)
        try:
            side.exit_code()
        except subprocess.TimeoutExpired:
            side.kill()


def until(look: Callable[[], T], within: float = WITHIN_S) -> T:
    """Return what the look gives as soon as it is true; fail if it never is."""
    seen: T = wait_for(look, within)
    assert seen, "it did not come to that"
    return seen


@contextlib.contextmanager
def ended_after(*sides: RealSide) -> Iterator[None]:
    """End the governors of these sides whatever happens in the block."""
    try:
        yield
    finally:
        for side in sides:
            end(side)


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has, though its parent did not bury it."""
    return _processes().get(pid, (0, "Z"))[1] == "Z"


def _processes() -> dict[int, tuple[int, str]]:
    """Return parent and state of every process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):  # proc(5): pid (name) state ppid ...
        with contextlib.suppress(OSError):
            pid, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
            found[int(pid)] = (int(rest[1]), rest[0])
    if not found:  # no Linux
        listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid=,state="], capture_output=True, check=True)
        for line in listed.stdout.decode().splitlines():
            pid, parent, state = line.split()
            found[int(pid)] = (int(parent), state[0])
    return found


def _toml(settings: dict[str, Any], section: str = "") -> str:
    lines = [f"[{section}]"] if section else []
    lines += [
        f"{key} = {json.dumps(value)}" for key, value in settings.items() if not isinstance(value, dict)
    ]
    for key, value in settings.items():
        if isinstance(value, dict):
            lines.append(_toml(value, f"{section}.{key}" if section else key))
    return "\n".join(lines) + "\n"
