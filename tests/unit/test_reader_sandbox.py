import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from reader.sandbox import process_rights
from reader.sandbox.lock import MEMORY_BYTES, lock

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")


class Limits(dict[int, tuple[int, int]]):
    def set(self, which: int, pair: tuple[int, int]) -> None:
        self[which] = pair


def test_on_linux_rights_go_first_then_limits() -> None:
    limits, given = Limits(), []

    def give_up() -> None:
        assert not limits
        given.append(True)

    by = lock(os.getppid(), platform="linux", set_limit=limits.set, give_up=give_up)
    assert by == ["parent_death", "undumpable", "no_new_privs", "limits"]
    assert given == [True]
    assert (
        limits[resource.RLIMIT_NOFILE]
        == limits[resource.RLIMIT_FSIZE]
        == limits[resource.RLIMIT_NPROC]
        == (0, 0)
    )
    assert limits[resource.RLIMIT_AS] == (MEMORY_BYTES, MEMORY_BYTES)


def test_on_macos_only_limits_that_it_knows() -> None:
    limits = Limits()
    by = lock(os.getppid(), platform="darwin", set_limit=limits.set, give_up=pytest.fail)
    assert by == ["limits"]
    assert resource.RLIMIT_AS not in limits
    assert limits[resource.RLIMIT_NOFILE] == (0, 0)


def test_an_orphan_does_not_lock() -> None:
    limits = Limits()
    with pytest.raises(ProcessLookupError):
        lock(os.getpid(), platform="linux", set_limit=limits.set, give_up=lambda: None)
    assert not limits


def in_child(code: str) -> str:
    """Run code in a process of its own after it has locked itself; return what it prints."""
    start = f"import sys, os; sys.path.append({str(ROOT)!r})\nfrom reader.sandbox.lock import lock\n"
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{start}import socket\nlock({os.getpid()})\n{code}\nos._exit(0)"],
        capture_output=True,
        check=False,
        timeout=60,
        env={},
    )
    return child.stdout.decode()


@pytest.mark.parametrize(
    "deed",
    [
        "open('/etc/passwd')",
        "open('/dev/null', 'w')",
        "socket.socket()",
        "os.pipe()",
        "os.dup(1)",
        "__import__('fractions')",
        "bytearray(1 << 30)",
    ],
)
def test_a_locked_process_opens_and_takes_nothing(deed: str) -> None:
    attempt = (
        f"try:\n {deed}\nexcept (OSError, ImportError, MemoryError) as error:\n os.write(1, b'refused')\n"
    )
    assert in_child(attempt) == "refused"


@linux
def test_a_locked_process_has_no_rights_to_gain_and_dies_with_its_parent() -> None:
    ask = (
        "import ctypes; prctl = ctypes.CDLL(None).prctl; signal = ctypes.c_int()\n"
        "prctl(2, ctypes.byref(signal))\n"
        "os.write(1, f'{prctl(39, 0, 0, 0, 0)} {prctl(3, 0, 0, 0, 0)} {signal.value}'.encode())"
    )
    assert in_child(ask) == "1 0 9"


@linux
def test_a_refused_call_is_an_error() -> None:
    get_no_new_privs, unknown = 39, 0x7FFF
    process_rights.give_up(((get_no_new_privs, 0),))
    with pytest.raises(OSError, match="Invalid argument"):
        process_rights.give_up(((get_no_new_privs, 0), (unknown, 0)))
