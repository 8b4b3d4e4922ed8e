"""The profile as text: no Linux machine can try it."""

import os
import re
import sys
from pathlib import Path

import pytest

import reader
from governor.inbound.reader_locks import Sandbox, locks_needed
from governor.inbound.reader_process import child_command
from governor.inbound.sandbox_exec import PROGRAM, Interpreter, interpreter, prefix, profile

FRAMEWORK = Path("/Library/Frameworks/Python.framework/Versions/3.13")
PROGRAMS = frozenset({FRAMEWORK / "bin/python3.13", FRAMEWORK / "Resources/Python.app"})
READER = Path("/Users/max/.venv/lib/python3.13/site-packages/reader")
TEXT = profile(Interpreter(PROGRAMS, PROGRAMS | {FRAMEWORK}), READER)


def rules() -> list[str]:
    return TEXT.splitlines()


def allowed(operation: str) -> set[str]:
    """Return the paths for which an operation is allowed."""
    return {
        match[1]
        for line in rules()
        if (match := re.fullmatch(rf"\(allow {operation} \(\w+ \"(.*)\"\)\)", line))
    }


def test_all_is_denied_first() -> None:
    assert rules()[:2] == ["(version 1)", "(deny default)"]


def test_only_the_interpreter_is_started() -> None:
    assert allowed("process-exec") == {str(path) for path in PROGRAMS}


def test_only_what_a_start_needs_is_read() -> None:
    read = allowed(r"file-read\*")
    assert {str(FRAMEWORK), str(READER), *map(str, PROGRAMS)} <= read
    assert {path for path in read if not path.startswith((str(FRAMEWORK), str(READER)))} == {
        "/usr/lib",
        "/System/Library",
        "/System/Volumes/Preboot/Cryptexes",
        "/private/var/db/dyld",
    }


def test_nothing_else_is_allowed() -> None:
    operations = {re.match(r"\(allow ([a-z\-* ]+?)(?: \(|\))", line)[1] for line in rules()[2:]}  # type: ignore[index]
    assert operations == {
        "process-exec",
        "file-read*",
        "file-read* file-write-data",
        "file-read-metadata",
        "sysctl-read",
    }
    assert allowed(r"file-read\* file-write-data") == {"/dev/null", "/dev/urandom"}


@pytest.mark.parametrize("name", ['a"b', "a\\b", "caf\u00e9", 'x")) (allow default) (("'])
def test_a_path_stays_a_string(name: str) -> None:
    text = profile(Interpreter(frozenset(), frozenset({Path("/opt") / name})), READER)
    [line] = [line for line in text.splitlines() if "/opt/" in line]
    inside = re.fullmatch(r'\(allow file-read\* \(subpath "((?:[^"\\]|\\.)*)"\)\)', line)
    assert inside is not None
    assert re.sub(r"\\(.)", r"\1", inside[1]) == f"/opt/{name}"


def test_links_are_named_with_what_they_lead_to() -> None:
    found = interpreter()
    for path in (Path(sys.executable), Path(os.__file__).parent, Path(sys.base_prefix)):
        assert {path, path.resolve()} <= found.files
    assert {Path(sys.executable), Path(sys.executable).resolve()} <= found.programs <= found.files


def test_it_stands_before_the_command_where_it_is_needed() -> None:
    here = Path(reader.__file__).parent
    before = [PROGRAM, "-p", profile(interpreter(), here)]
    assert prefix(here) == before
    plain = child_command(frozenset({"limits"}))
    assert plain[0] == sys.executable
    assert child_command(locks_needed(Sandbox.REQUIRED, "darwin")) == [*before, *plain]
    assert child_command(locks_needed(Sandbox.BEST, "darwin")) == plain
    assert child_command(locks_needed(Sandbox.REQUIRED, "linux")) == plain
