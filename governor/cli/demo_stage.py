"""The stage of the demo: two homes in a folder, real governor processes, commands as a person types them."""

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyotp

from governor.errors import ConfigError
from governor.supervision.operator_code import STEP_S, WINDOW

READY_WITHIN_S = 30.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Answered:
    """What a command answered: its exit code and the one JSON object it printed."""

    code: int
    document: dict[str, Any]


@dataclass
class Side:
    """One home with its governor, its agent and its operator."""

    name: str
    agent: str
    home: Path
    local_port: int
    peer_port: int
    secret: str = ""
    last_step: int = 0
    process: subprocess.Popen[bytes] | None = None
    extra: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str, stdin: str | None = None) -> Answered:
        """Run a command of this home, in this process, and return what it answered."""
        from governor.cli.main import main  # noqa: PLC0415 - main loads this module

        printed, source = io.StringIO(), io.TextIOWrapper(io.BytesIO((stdin or "").encode()))
        before, sys.stdin = sys.stdin, source
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                code = main(["--home", str(self.home), *words, "--json"])
        finally:
            sys.stdin = before
        lines = printed.getvalue().strip().splitlines()
        return Answered(code, json.loads(lines[-1]) if lines else {})

    def must(self, *words: str, stdin: str | None = None) -> dict[str, Any]:
        """Run a command that has to succeed, and return its document."""
        answered = self.command(*words, stdin=stdin)
        if answered.code != 0:
            raise ConfigError(f"governor {words[0]} failed in {self.home}: {answered.document}")
        return answered.document

    def code(self, say: Callable[[str], None]) -> str:
        """Return a code of the operator's that was not used yet; wait for the next one if need be."""
        present = int(time.time()) // STEP_S
        step = max(self.last_step + 1, present - WINDOW)
        if step > present + WINDOW:
            say("(waiting for the next code: each counts once)")
            time.sleep((step - WINDOW) * STEP_S - time.time())
        self.last_step = step
        return pyotp.TOTP(self.secret).generate_otp(step)

    def start(self) -> None:
        """Start this side's governor as a process of its own and wait until it serves."""
        log = (self.home / "governor.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "governor.cli.main", "--home", str(self.home), "run"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=os.environ | self.extra,
        )
        if not wait_for(self.is_ready, READY_WITHIN_S):
            tail = (self.home / "governor.log").read_text(errors="replace")[-500:]
            raise ConfigError(f"The governor of {self.name} did not start. Its log ends: {tail}")

    def is_ready(self) -> bool:
        """Tell whether the governor answers on its socket."""
        if self.process is None or self.process.poll() is not None:
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.home / "governor.sock")) == 0

    def end(self) -> int | None:
        """Stop the governor as launchd would (SIGTERM) and return its exit code."""
        if self.process is None:
            return None
        self.process.terminate()
        try:
            return self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def wait_for(look: Callable[[], Any], seconds: float) -> Any:  # noqa: ANN401 - what the look returns
    """Look until it is true or the time is over; return the last look."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen or time.monotonic() >= end:
            return seen
        time.sleep(LOOK_EVERY_S)


def write_settings(side: Side, reader: dict[str, str]) -> None:
    """Make both governors fit on one machine, and the limit small enough to be seen."""
    path = side.home / "governor.toml"
    text = path.read_text(encoding="utf-8")
    changes = {
        "# loopback_peers = false": "loopback_peers = true",
        '# listen = "127.0.0.1:18801"': f'listen = "127.0.0.1:{side.local_port}"',
        "# messages = 50": "messages = 5",
        "# warn_at = 40": "warn_at = 4",
        '# model = ""': f'model = "{reader.get("model", "")}"',
        '# base_url = ""': f'base_url = "{reader.get("base_url", "")}"',
        '# deadline = "1m"': f'deadline = "{reader.get("deadline", "1m")}"',
    }
    for old, new in changes.items():
        text = text.replace(old, new, 1)
    path.write_text(text, encoding="utf-8")


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on now."""
    with contextlib.ExitStack() as held:
        found = []
        for _ in range(count):
            probe = held.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            found.append(int(probe.getsockname()[1]))
        return found


@contextlib.contextmanager
def running(*sides: Side) -> Iterator[None]:
    """Keep the governors of these sides running, and end them whatever happens."""
    try:
        for side in sides:
            side.start()
        yield
    finally:
        for side in sides:
            side.end()
