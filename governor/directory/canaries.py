"""Canaries: made-up credentials that an operator hides where an agent may come upon them.

Each is a 0600 file `canaries/<name>.json` in the home with `value`, `kind`, `note` and `planted_at`. It
stands in no database, so that a copy of that for an auditor gives no bait away.
"""

import json
import string
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.errors import ConfigError, LocalError, NotYoursError
from governor.private_file import write_private
from governor.store.unit_of_work import UnitOfWork

NOTE_LIMIT: Final = 200
"""Longest note in characters."""

Choose = Callable[[Sequence[str]], str]
"""Takes one of several at random, as `secrets.choice` does."""

_ALPHANUMERIC: Final = string.ascii_letters + string.digits
_NAME_LENGTH: Final = 6


@dataclass(frozen=True, slots=True)
class Look:
    """What a canary is made to look like: a beginning, then so many random characters out of an alphabet."""

    of: str
    prefix: str
    length: int
    alphabet: str = _ALPHANUMERIC


LOOKS: Final = {
    "github": Look("a GitHub token", "ghp_", 36),
    "stripe": Look("a live Stripe key", "sk_live_", 48),
    "password": Look("a password", "", 24, _ALPHANUMERIC + "!#*+-_"),
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A planted canary; `planted_at` is an ISO 8601 instant in UTC."""

    name: str
    value: str
    kind: str
    note: str
    planted_at: str


def canary_folder(home: Path) -> Path:
    """Return where the canaries of a home lie."""
    return home / "canaries"


def canary_file(home: Path, name: str) -> Path:
    """Return where one canary lies."""
    return canary_folder(home) / f"{name}.json"


def plant(uow: UnitOfWork, home: Path, now: datetime, choose: Choose, *, kind: str, note: str = "") -> Canary:
    """Make a canary, write its file and return it, to be shown once. Raises LocalError.

    The file comes first: a canary that is known and not recorded does no harm.
    """
    if len(note) > NOTE_LIMIT or not note.isprintable():
        raise LocalError(f"A note is one line of at most {NOTE_LIMIT} characters. Make it shorter.")
    look = LOOKS[kind]
    name = f"canary-{_random(choose, string.ascii_lowercase + string.digits, _NAME_LENGTH)}"
    value = look.prefix + _random(choose, look.alphabet, look.length)
    canary = Canary(name, value, kind, note, now.isoformat())
    canary_folder(home).mkdir(mode=0o700, exist_ok=True)
    write_private(canary_file(home, name), json.dumps(asdict(canary)).encode() + b"\n")
    append(uow, now, Entry(AuditEvent.CANARY_PLANTED, reason=name, detail={"kind": kind}))
    return canary


def planted(home: Path) -> list[Canary]:
    """Return all canaries, the oldest first. Raises ConfigError for one that cannot be read."""
    found = (read_canary(path) for path in canary_folder(home).glob("*.json"))
    return sorted((each for each in found if each is not None), key=lambda each: (each.planted_at, each.name))


def read_canary(path: Path) -> Canary | None:
    """Return a canary from its file, None when it has just been removed. Raises ConfigError."""
    try:
        canary = Canary(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, str(error.strerror)) from None
    except (ValueError, TypeError, RecursionError):  # their text could quote it
        raise _unreadable(path, "it is damaged") from None
    if canary.name != path.stem or not all(isinstance(part, str) for part in asdict(canary).values()):
        raise _unreadable(path, "it is damaged")
    return canary


def _unreadable(path: Path, reason: str) -> ConfigError:
    return ConfigError(
        f"The canary {path} cannot be read ({reason}). Take it out: governor canary remove {path.stem}"
    )


def remove(uow: UnitOfWork, home: Path, name: str, now: datetime) -> None:
    """Remove a canary; from now on its value may be sent. Raises NotYoursError."""
    if canary_file(home, name) not in canary_folder(home).glob("*.json"):  # a name is no path
        raise NotYoursError(f"There is no canary {name!r} here. See them: governor canary list")
    canary_file(home, name).unlink(missing_ok=True)
    append(uow, now, Entry(AuditEvent.CANARY_REMOVED, reason=name))


def _random(choose: Choose, alphabet: str, length: int) -> str:
    return "".join(choose(alphabet) for _ in range(length))
