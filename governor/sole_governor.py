"""One governor a home: the lock that says so, and who holds it."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from governor.errors import ConfigError

_FILE: Final = "governor.lock"


@contextlib.contextmanager
def sole_governor(home: Path) -> Iterator[None]:
    """Hold the home's lock while the block runs; it ends with the process, however that ends.

    Raises ConfigError when there is no such home, or another process holds it, which is named.
    """
    if not home.is_dir():
        raise ConfigError(f"No governor lives in {home}. Make one: governor init --name NAME --agent AGENT")
    try:
        descriptor = os.open(home / _FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"{home / _FILE} cannot be opened: {error.strerror}. Mend that.") from None
    try:
        _lock(descriptor, home)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, home: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
        raise ConfigError(f"A governor runs in {home} already: process {pid}. Stop it: kill {pid}") from None
    with contextlib.suppress(OSError):  # a full disk; without the number the lock holds all the same
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
