"""Hold a lock, so that one process of this host polls with a bot's token."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from governor.errors import ConfigError


@contextmanager
def sole_poller(lock_path: Path) -> Iterator[None]:
    """Hold the lock while the block runs; it ends with the process, however that ends.

    Raise `ConfigError`, naming the process, if another one holds it.
    """
    try:
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(
            f"the lock {lock_path} cannot be opened: {error.strerror}; set its rights"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            raise ConfigError(
                f"process {holder} already polls Telegram with this bot's token (lock {lock_path}); "
                "stop that governor, or give this one a bot of its own"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        yield
    finally:
        os.close(descriptor)
