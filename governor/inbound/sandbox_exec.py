"""macOS: the profile under which a reader is started. It denies all but the start of this interpreter.

Written from the documented behaviour of sandbox-exec(1). Its text is tested on every platform; whether it
holds, the child finds out by trying (`reader.sandbox.confined`), and what it finds is judged.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

PROGRAM: Final = "/usr/bin/sandbox-exec"

_SYSTEM = ("/usr/lib", "/System/Library", "/System/Volumes/Preboot/Cryptexes", "/private/var/db/dyld")
"""Where the dynamic linker finds what every program is made of."""

_DEVICES = ("/dev/null", "/dev/urandom")


class Interpreter(NamedTuple):
    """Where an interpreter lives: what of it is started as a program, and what it reads at its start."""

    programs: frozenset[Path]
    files: frozenset[Path]


def prefix(reader: Path) -> list[str]:
    """Return what stands before the command of a child; `reader` is the folder of the reader's own files."""
    return [PROGRAM, "-p", profile(interpreter(), reader)]


def interpreter() -> Interpreter:
    """Return the interpreter in use, with links and their targets: the kernel sees the targets only."""
    base = Path(sys.base_prefix)
    # the program of a framework build only starts the one inside it
    programs = _with_targets([Path(sys.executable), base / "Resources" / "Python.app"])
    files = _with_targets([base, Path(os.__file__).parent, Path(sys.prefix) / "pyvenv.cfg"])
    return Interpreter(programs, programs | files)


def profile(found: Interpreter, reader: Path) -> str:
    """Return the profile, in the language of sandbox profiles: later rules win."""
    readable = found.files | _with_targets([reader]) | set(map(Path, _SYSTEM))
    return "\n".join(
        [
            "(version 1)",
            "(deny default)",
            *(f"(allow process-exec (subpath {_quoted(path)}))" for path in sorted(found.programs)),
            *(f"(allow file-read* (subpath {_quoted(path)}))" for path in sorted(readable)),
            *(f"(allow file-read* file-write-data (literal {_quoted(path)}))" for path in _DEVICES),
            "(allow file-read-metadata)",
            "(allow sysctl-read)",
        ]
    )


def _with_targets(paths: Iterable[Path]) -> frozenset[Path]:
    return frozenset(each for path in paths for each in (path, path.resolve()))


def _quoted(path: Path | str) -> str:
    return json.dumps(str(path), ensure_ascii=False)
