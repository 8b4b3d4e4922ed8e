"""Finds out, before the governor serves anybody, whether a reader would be held here as it must be."""

import asyncio
import compileall
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from governor.errors import ConfigError
from governor.inbound.reader_locks import LOCKS, Sandbox, locks_needed
from governor.inbound.reader_process import try_locks
from reader import contract


async def try_reader(sandbox: Sandbox, *, command: Sequence[str] | None = None) -> dict[str, int]:
    """Start a reader that gets no message; return the locks that hold it, by name with their degree.

    Raises ConfigError where they are not enough. Compiles the reader's files first, where the
    installer did not: each reader starts with them, and may not write them itself.
    """
    await asyncio.to_thread(compileall.compile_dir, Path(contract.__file__).parent, quiet=2)
    needed = locks_needed(sandbox)
    held = await try_locks(needed, command)
    if missing := sorted(needed - held.keys()):
        raise ConfigError(_refusal(sandbox, missing) if held else _SILENT)
    return held


_SILENT = (
    "A reader could not be started, so no message can be read. "
    f"See why: {sys.executable} -m reader </dev/null"
)


def _refusal(sandbox: Sandbox, missing: Sequence[str]) -> str:
    machine = os.uname()
    lacking = "; ".join(f"{name}: {LOCKS[name]}" for name in missing)
    less = 'Use a newer system, or accept less with sandbox = "best" in [reader].'
    return (
        f"This system ({machine.sysname} {machine.release}, {machine.machine}) cannot lock a reader in. Missing: {lacking}. "
        + (less if sandbox is Sandbox.REQUIRED else "Use a newer system.")
    )
