"""Locks the process in: limits on what it may use, no new rights, an end together with the governor."""

import os
import resource
import sys
from collections.abc import Callable

from reader.sandbox import process_rights

CPU_SECONDS = 20
MEMORY_BYTES = 256 * 1024 * 1024

_LIMITS: tuple[tuple[int, int], ...] = (
    (resource.RLIMIT_CPU, CPU_SECONDS),
    (resource.RLIMIT_AS, MEMORY_BYTES),
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),  # no file can grow; pipes are none
    (resource.RLIMIT_NPROC, 0),  # no fork, except as root
    (resource.RLIMIT_NOFILE, 0),  # nothing more can be opened: no file, no socket, no import
)

_NOT_ENFORCED = {"darwin": {resource.RLIMIT_AS}}
"""macOS refuses to lower it."""


def lock(
    parent: int,
    *,
    platform: str = sys.platform,
    set_limit: Callable[[int, tuple[int, int]], None] = resource.setrlimit,
    give_up: Callable[[], None] = process_rights.give_up,
) -> list[str]:
    """Give up what a reader does not need and return the names of the locks.

    `parent` is the pid of the governor. Raises OSError or ValueError where a lock cannot be had:
    then there is no reader. Everything must have been imported and opened before.
    """
    locks = []
    if platform == "linux":
        give_up()
        locks += ["parent_death", "undumpable", "no_new_privs"]
    if os.getppid() != parent:  # it died before we asked to die with it
        raise ProcessLookupError
    for which, most in _LIMITS:
        if which not in _NOT_ENFORCED.get(platform, ()):
            set_limit(which, (most, most))
    return [*locks, "limits"]
