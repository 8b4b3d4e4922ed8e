"""A system that cannot lock a reader in: the governor says so at its start, and runs only where it was told to.

An older kernel is played by a filter of system calls that answers as such a kernel would.
"""

import platform
import signal
import struct
import sys
from pathlib import Path

import pytest

from governor.errors import ConfigError
from governor.inbound.reader_locks import Sandbox
from governor.inbound.reader_process import child_command
from governor.inbound.reader_trial import try_reader
from reader.contract import locked_line
from tests.ports import free_ports
from tests.real_processes import RealSide

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the locks are Linux's"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no table of system calls"),
]

PRCTL = {"x86_64": 157, "aarch64": 167}.get(platform.machine(), 0)
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
FAIL, ALLOW, ENOSYS, EINVAL = 0x50000, 0x7FFF0000, 38, 22

LACKS = {
    "landlock": [
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, 444),
        (RETURN, 0, 0, FAIL | ENOSYS),
        (RETURN, 0, 0, ALLOW),
    ],
    "seccomp": [
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 3, PRCTL),
        (LOAD, 0, 0, 16),
        (JUMP_IF_EQUAL, 0, 1, 22),
        (RETURN, 0, 0, FAIL | EINVAL),
        (RETURN, 0, 0, ALLOW),
    ],
}

AGE = """
import ctypes, struct
program = ctypes.create_string_buffer({program!r})
prctl = ctypes.CDLL(None).prctl
assert prctl(38, ctypes.c_long(1), ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0)) == 0
assert prctl(22, ctypes.c_long(2), struct.pack("HP", {length}, ctypes.addressof(program))) == 0
"""


def aged(lack: str) -> str:
    """Return code that makes its process run on a kernel that lacks this."""
    steps = LACKS[lack]
    return AGE.format(program=b"".join(struct.pack("=HBBI", *step) for step in steps), length=len(steps))


def old_child(lack: str) -> list[str]:
    *start, code = child_command()
    return [*start, f"{aged(lack)}\n{code}"]


def saying(line: bytes) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"import os; os.write(1, {line!r})"]


async def test_here_a_reader_is_held_by_all_locks() -> None:
    held = await try_reader(Sandbox.REQUIRED)
    assert held.keys() >= {"limits", "landlock", "seccomp", "no_new_privs"}
    assert held == await try_reader(Sandbox.BEST)


@pytest.mark.parametrize("lack", LACKS)
async def test_what_is_missing_is_named_with_the_way_out(lack: str) -> None:
    with pytest.raises(ConfigError) as error:
        await try_reader(Sandbox.REQUIRED, command=old_child(lack))
    assert f"Missing: {lack}: " in error.value.message
    assert 'sandbox = "best"' in error.value.message


@pytest.mark.parametrize("lack", LACKS)
async def test_told_so_it_reads_with_less(lack: str) -> None:
    held = await try_reader(Sandbox.BEST, command=old_child(lack))
    assert held.keys() == (await try_reader(Sandbox.REQUIRED)).keys() - {lack}


async def test_less_has_a_floor() -> None:
    with pytest.raises(ConfigError, match=r"Missing: parent_death: .* Use a newer system") as error:
        await try_reader(
            Sandbox.BEST, command=saying(locked_line({"limits": 1, "undumpable": 1, "no_new_privs": 1}))
        )
    assert "best" not in error.value.message


@pytest.mark.parametrize("command", [["/nonexistent/python"], saying(b""), saying(b"hello\n")])
@pytest.mark.parametrize("sandbox", Sandbox)
async def test_a_reader_that_does_not_start_is_another_fault(sandbox: Sandbox, command: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"could not be started.*-m reader"):
        await try_reader(sandbox, command=command)


@pytest.fixture
def side(tmp_path: Path) -> RealSide:
    """A governor on a kernel without Landlock."""

    class OldSide(RealSide):
        def program(self) -> list[str]:
            run = f"from governor.cli.main import main; sys.exit(main(['--home', {str(self.home)!r}, 'run']))"
            return [sys.executable, "-c", f"import sys\n{aged('landlock')}\n{run}"]

    return OldSide("max-host", "max", tmp_path / "max", *free_ports(2)).make()


@pytest.mark.processes
def test_a_governor_refuses_to_run_or_runs_with_less_as_it_was_told(side: RealSide) -> None:
    ended = side.run_to_end()
    assert ended.code == 2, ended.err
    [line] = ended.lines
    assert line.startswith("governor: ")
    assert "Missing: landlock: " in line
    assert not side.socket.exists()
    side.set(reader={"sandbox": "best"})
    side.start()
    try:
        assert (
            '"locks": "parent_death, undumpable, no_new_privs, limits, no_capabilities, seccomp"' in side.log
        )
    finally:
        side.signal(signal.SIGTERM)
        assert side.exit_code() == 0
