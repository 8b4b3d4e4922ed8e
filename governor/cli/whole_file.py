"""Writes a file so that nobody ever sees half of it."""

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Put content at path with these permissions by one rename, replacing what is there.

    Missing parent folders are made. Raises OSError and leaves what was there if it cannot.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
