"""Locks the process in, step by step, and tells which locks hold."""

import contextlib
import os
import sys
from collections.abc import Callable

from reader.sandbox import confined, landlock, limits, process_rights, seccomp

Step = tuple[str, Callable[[], int | None]]

STEPS: dict[str, tuple[Step, ...]] = {
    "linux": (
        ("parent_death", process_rights.die_with_parent),
        ("undumpable", process_rights.be_undumpable),
        ("no_new_privs", process_rights.gain_no_rights),
        ("landlock", landlock.restrict),  # needs a descriptor for a moment, so it comes before the limits
        ("limits", limits.limit),
        ("no_capabilities", process_rights.drop_capabilities),
        ("seccomp", seccomp.allow_only_listed),  # last: it allows none of the steps above
    ),
    "darwin": (("sandbox_exec", confined.confirm), ("limits", limits.limit)),
}
"""By platform: what each lock is called in `reader.contract.LOCKS`, and what takes it."""

ANYWHERE: tuple[Step, ...] = (("limits", limits.limit),)


def lock(parent: int, steps: tuple[Step, ...] = STEPS.get(sys.platform, ANYWHERE)) -> dict[str, int]:
    """Give up what a reader does not need and return the locks that hold, by name, with their degree.

    The degree is 1, and for Landlock the version of its interface. `parent` is the pid of the governor,
    who judges whether these locks are enough. Raises ProcessLookupError when it is gone. Everything
    must have been imported and opened before, in a process of one thread.
    """
    held: dict[str, int] = {}
    for name, take in steps:
        if os.getppid() != parent:  # it may have died before we asked to die with it
            raise ProcessLookupError
        with contextlib.suppress(OSError, ValueError):  # not to be had here
            held[name] = take() or 1
    return held
