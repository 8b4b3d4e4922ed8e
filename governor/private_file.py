"""Writes a file that only its owner can read, in one step."""

import os
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """Write a 0600 file; a crash leaves the old content or the new, never a part of it."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)  # whatever the umask, and whoever made the file
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
