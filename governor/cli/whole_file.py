"""Writes a file so that nobody ever sees half of it."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Put content at path with these permissions by one rename, replacing what is there.

    Missing parent folders are made. Raises OSError and leaves what was there if it cannot.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
