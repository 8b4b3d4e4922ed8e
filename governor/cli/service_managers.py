"""launchd and systemd, driven by their own commands `launchctl` and `systemctl`."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from governor.errors import GovernorError

Command = tuple[str, ...]

_POLLS = 60
_POLL_SECONDS = 0.5  # 30 s in all: a governor has 20 s to end before launchd kills it

# Exit codes of launchctl, which are not documented; seen on macOS 12 to 26.
_NO_DOMAIN = frozenset({112, 125})  # nobody of that uid is logged in at the screen
_IN_PROGRESS = 37
_SETTLING = frozenset({5, _IN_PROGRESS})  # the last bootout is not over (5 also: the file is not acceptable)


@dataclass(frozen=True, slots=True)
class Completed:
    """How a command ended: its exit code, and all it printed."""

    code: int
    output: str


class Runner(Protocol):
    """Runs a command and waits for its end; raises GovernorError if it cannot be run at all."""

    def __call__(self, command: Command) -> Completed:
        """Run one command."""
        ...


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs commands for real, each for at most `seconds`, found by the PATH of `environ`."""

    environ: Mapping[str, str]
    seconds: float = 90

    def __call__(self, command: Command) -> Completed:
        """Run one command."""
        try:
            done = subprocess.run(
                command,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self.seconds,
                check=False,
            )
        except FileNotFoundError:
            raise GovernorError(
                f"{command[0]} was not found here. Start `governor run` by the means of this system instead."
            ) from None
        except subprocess.TimeoutExpired:
            raise GovernorError(
                f"`{' '.join(command)}` did not end within {self.seconds:g} s. Run it by hand to see why."
            ) from None
        return Completed(done.returncode, (done.stdout + done.stderr).strip())


@dataclass(frozen=True, slots=True)
class Status:
    """What the manager says of the service; `detail` is its own word for the state."""

    running: bool
    pid: int | None
    detail: str


class Manager(Protocol):
    """A service manager, bound to the one service of a governor."""

    def starting(self) -> list[Command]:
        """Return the commands of a start, in order, for people to read."""
        ...

    def stopping(self) -> list[Command]:
        """Return the commands of a stop, in order, for people to read."""
        ...

    def start(self) -> None:
        """Take the service file up and run it, ending an older one; raises GovernorError."""
        ...

    def stop(self) -> None:
        """End the service and let go of it, if it is there; raises GovernorError."""
        ...

    def status(self) -> Status:
        """Tell how the service is; raises GovernorError."""
        ...

    def forget(self) -> None:
        """Let the manager notice that the service file is gone; raises GovernorError."""
        ...

    def log(self) -> str:
        """Tell people where the service's output is."""
        ...


@dataclass(frozen=True, slots=True)
class Launchd:
    """launchd: `domain` is `gui/UID` for a LaunchAgent and `system` for a LaunchDaemon."""

    domain: str
    label: str
    file: Path
    run: Runner
    sleep: Callable[[float], None]

    def starting(self) -> list[Command]:
        """Return the commands of a start."""
        return [*self.stopping(), self._enable(), self._bootstrap(), self._kickstart()]

    def stopping(self) -> list[Command]:
        """Return the commands of a stop."""
        return [("launchctl", "bootout", self._target())]

    def start(self) -> None:
        """Boot an older one out, wait until it is gone, bootstrap the new one and see that it runs."""
        self.stop()
        self._check(self._enable(), self.run(self._enable()))
        for _ in range(_POLLS):
            done = self.run(self._bootstrap())
            if done.code not in _SETTLING:
                break
            self.sleep(_POLL_SECONDS)
        self._check(self._bootstrap(), done)
        kickstart = self.run(self._kickstart())
        if kickstart.code != _IN_PROGRESS:  # RunAtLoad may be starting it at this moment
            self._check(self._kickstart(), kickstart)

    def stop(self) -> None:
        """Boot the service out. `bootout` returns before it is over, so ask until it is."""
        if not self._loaded():
            return
        (bootout,) = self.stopping()
        done = self.run(bootout)
        for _ in range(_POLLS):
            if not self._loaded():
                return
            self.sleep(_POLL_SECONDS)
        raise _failure(bootout, done.output or "the service is still there")

    def status(self) -> Status:
        """Read `launchctl print`, whose form is not promised: what is not understood is not running."""
        done = self.run(self._print())
        self._refuse_missing_domain(done)
        if done.code != 0:
            return Status(running=False, pid=None, detail="not loaded")
        state = re.search(r"^\s*state = ([a-z ]{1,40})$", done.output, re.MULTILINE)
        pid = re.search(r"^\s*pid = (\d{1,10})$", done.output, re.MULTILINE)
        detail = state[1] if state else "unknown"
        return Status(detail == "running", int(pid[1]) if pid else None, detail)

    def forget(self) -> None:
        """Do nothing: launchd let go of the service when it was booted out."""

    def log(self) -> str:
        """Tell people where the service's output is."""
        return "service.log in the governor's home"

    def _loaded(self) -> bool:
        done = self.run(self._print())
        self._refuse_missing_domain(done)
        return done.code == 0

    def _refuse_missing_domain(self, done: Completed) -> None:
        if done.code in _NO_DOMAIN:
            raise GovernorError(
                "launchd runs agents only for a user who is logged in at the screen. "
                "Log in there, or install for the whole system: sudo governor service install --system"
            )

    def _check(self, command: Command, done: Completed) -> None:
        self._refuse_missing_domain(done)
        if done.code != 0:
            raise _failure(command, done.output)

    def _target(self) -> str:
        return f"{self.domain}/{self.label}"

    def _print(self) -> Command:
        return ("launchctl", "print", self._target())

    def _enable(self) -> Command:
        return ("launchctl", "enable", self._target())

    def _bootstrap(self) -> Command:
        return ("launchctl", "bootstrap", self.domain, str(self.file))

    def _kickstart(self) -> Command:
        return ("launchctl", "kickstart", self._target())


@dataclass(frozen=True, slots=True)
class Systemd:
    """systemd: `scope` is `("--user",)` for a user's own manager and empty for the system's."""

    scope: tuple[str, ...]
    unit: str
    run: Runner

    def starting(self) -> list[Command]:
        """Return the commands of a start."""
        return [
            self._systemctl("daemon-reload"),
            *(self._systemctl(verb, self.unit) for verb in ("enable", "restart")),
        ]

    def stopping(self) -> list[Command]:
        """Return the commands of a stop."""
        return [self._systemctl("disable", "--now", self.unit)]

    def start(self) -> None:
        """Have the unit read, enabled and (re)started."""
        self._all(self.starting())

    def stop(self) -> None:
        """Stop and disable the unit, unless systemd does not know it."""
        if self.status().detail != "not loaded":
            self._all(self.stopping())

    def status(self) -> Status:
        """Read `systemctl show`."""
        command = self._systemctl("show", "--property=LoadState,ActiveState,MainPID", self.unit)
        done = self.run(command)
        if done.code != 0:
            raise _failure(command, done.output)
        facts = dict(line.partition("=")[::2] for line in done.output.splitlines())
        if facts.get("LoadState") != "loaded":
            return Status(running=False, pid=None, detail="not loaded")
        detail, pid = facts.get("ActiveState", "unknown"), facts.get("MainPID", "0")
        return Status(detail == "active", int(pid) if pid.isdecimal() and pid != "0" else None, detail)

    def forget(self) -> None:
        """Have systemd read its units anew."""
        self._all([self._systemctl("daemon-reload")])

    def log(self) -> str:
        """Tell people where the service's output is."""
        return " ".join(("journalctl", *self.scope, "-u", self.unit))

    def _systemctl(self, *words: str) -> Command:
        return ("systemctl", *self.scope, *words)

    def _all(self, commands: list[Command]) -> None:
        for command in commands:
            done = self.run(command)
            if done.code != 0:
                raise _failure(command, done.output)


def _failure(command: Command, output: str) -> GovernorError:
    return GovernorError(
        f"`{' '.join(command)}` failed: {output or 'it said nothing'}. Mend that and try again."
    )
