"""Which locks must hold a reader before it gets a message, by platform and setting."""

import sys
from collections.abc import Mapping
from enum import StrEnum

LOCKS: dict[str, str] = {
    "limits": "limits on memory, processor time, files and processes",
    "parent_death": "it dies with the governor",
    "undumpable": "no other process of its user can look into it",
    "no_new_privs": "no program can give it more rights",
    "no_capabilities": "it has none of root's powers",
    "landlock": "no files, no TCP, no signals to others (Landlock, Linux 5.13)",
    "seccomp": "no system call but those on a short list (seccomp, x86-64 and arm64)",
    "sandbox_exec": "no files, no network, no programs (sandbox-exec, macOS)",
}
"""What a child may say that it is held by, and what that means."""


class Sandbox(StrEnum):
    """How much of it must hold: all that the platform is known for, or what can be had nearly anywhere."""

    REQUIRED = "required"
    BEST = "best"


_LINUX_FLOOR = frozenset({"limits", "parent_death", "undumpable", "no_new_privs"})
_LINUX = _LINUX_FLOOR | {"no_capabilities", "landlock", "seccomp"}
_FLOORS = {"linux": _LINUX_FLOOR}
_WHOLE = {"linux": _LINUX, "darwin": frozenset({"limits", "sandbox_exec"})}


def locks_needed(sandbox: Sandbox, platform: str = sys.platform) -> frozenset[str]:
    """Return the names of the locks without which there is no reading.

    A platform that we know no sandbox of is measured by Linux: it has too few, unless `best` will do.
    """
    if sandbox is Sandbox.BEST:
        return _FLOORS.get(platform, frozenset({"limits"}))
    return _WHOLE.get(platform, _LINUX)


def described(held: Mapping[str, int]) -> str:
    """Return locks as one line for people: names, each with its degree where it has one."""
    return ", ".join(
        name if degree == 1 else f"{name} {degree}" for name, degree in held.items() if name in LOCKS
    )
