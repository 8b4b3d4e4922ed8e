"""The parts of the lock, one by one, in this process; what they do together is tested in tests/attack/test_escape.py."""

import ctypes
import errno
import os
import resource
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from governor.inbound.reader_locks import LOCKS
from reader.sandbox import confined, landlock, limits, process_rights, seccomp
from reader.sandbox.lock import ANYWHERE, STEPS, lock
from reader.sandbox.system_call import system_call

ROOT = Path(__file__).parents[2]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the calls are Linux's")


class Kernel:
    """Remembers the calls made of it, and answers them from a list."""

    def __init__(self, *answers: int | OSError) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answers = list(answers)

    def __call__(self, *call: Any) -> int:  # noqa: ANN401 - whatever is asked
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else 0
        if isinstance(answer, OSError):
            raise answer
        return answer


# order


def test_the_locks_are_taken_in_order_and_told_with_their_degree() -> None:
    taken: list[str] = []

    def step(name: str, degree: int | None) -> tuple[str, Callable[[], int | None]]:
        def take() -> int | None:
            taken.append(name)
            return degree

        return name, take

    assert lock(os.getppid(), (step("first", None), step("second", 7))) == {"first": 1, "second": 7}
    assert taken == ["first", "second"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSYS, "old kernel"), ValueError("above the limit")])
def test_a_lock_that_cannot_be_had_is_not_told(error: Exception) -> None:
    def fails() -> None:
        raise error

    assert lock(os.getppid(), (("gone", fails), ("there", lambda: None))) == {"there": 1}


def test_an_orphan_does_not_lock() -> None:
    with pytest.raises(ProcessLookupError):
        lock(os.getpid(), (("limits", pytest.fail),))


def test_on_linux_nothing_is_locked_after_the_allow_list_and_landlock_needs_a_descriptor() -> None:
    names = [name for name, _ in STEPS["linux"]]
    assert names[-1] == "seccomp"
    assert names.index("no_new_privs") < names.index("landlock") < names.index("limits")
    assert names[0] == "parent_death"


def test_every_lock_has_a_meaning() -> None:
    assert {name for steps in (*STEPS.values(), ANYWHERE) for name, _ in steps} == LOCKS.keys()


# system calls


@linux
def test_a_refused_call_is_an_error() -> None:
    get_dumpable, unknown = 3, 0x7FFF
    assert system_call("prctl", get_dumpable, 0, 0, 0, 0) in (0, 1)
    with pytest.raises(OSError, match="Invalid argument") as error:
        system_call("prctl", unknown, 0, 0, 0, 0)
    assert error.value.errno == errno.EINVAL


def test_rights_are_given_up_by_prctl() -> None:
    kernel = Kernel()
    process_rights.die_with_parent(kernel)
    process_rights.be_undumpable(kernel)
    process_rights.gain_no_rights(kernel)
    assert kernel.calls == [
        ("prctl", 1, signal.SIGKILL, 0, 0, 0),
        ("prctl", 4, 0, 0, 0, 0),
        ("prctl", 38, 1, 0, 0, 0),
    ]


def test_whoever_holds_capabilities_drops_them_all() -> None:
    class Rooted(Kernel):
        def __call__(self, name: str, header: bytes, sets: Any) -> int:  # noqa: ANN401 - a buffer
            if name == "capget":
                sets[0] = b"\xff"
            return super().__call__(name, header, bytes(sets))

    kernel = Rooted()
    process_rights.drop_capabilities(kernel)
    header = (0x20080522).to_bytes(4, "little") + bytes(4)
    assert [call[:2] for call in kernel.calls] == [("capget", header), ("capset", header)]
    assert kernel.calls[1][2] == bytes(24)


def test_whoever_holds_none_asks_for_nothing() -> None:
    kernel = Kernel()
    process_rights.drop_capabilities(kernel)
    assert [call[0] for call in kernel.calls] == ["capget"]


# Landlock


@pytest.mark.parametrize(
    ("abi", "files", "network", "scopes"),
    [
        (1, 0x1FFF, 0, 0),
        (2, 0x3FFF, 0, 0),
        (3, 0x7FFF, 0, 0),
        (4, 0x7FFF, 3, 0),
        (5, 0xFFFF, 3, 0),
        (6, 0xFFFF, 3, 3),
        (7, 0xFFFF, 3, 3),
        (99, 0xFFFF, 3, 3),
    ],
)
def test_landlock_forbids_all_that_its_version_knows(abi: int, files: int, network: int, scopes: int) -> None:
    assert landlock.ruleset(abi) == struct.pack("<3Q", files, network, scopes)


def test_landlock_is_asked_for_its_version_then_put_in_force_without_a_rule() -> None:
    rules = os.open(os.devnull, os.O_RDONLY)
    kernel = Kernel(6, rules, 0)
    assert landlock.restrict(kernel) == 6
    assert kernel.calls == [
        ("syscall", 444, None, 0, 1),
        ("syscall", 444, landlock.ruleset(6), 24, 0),
        ("syscall", 446, rules, 0),
    ]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(rules)


def test_a_kernel_without_landlock_is_an_error_and_no_descriptor_stays_open() -> None:
    with pytest.raises(OSError, match="not built"):
        landlock.restrict(Kernel(OSError(errno.ENOSYS, "not built")))
    rules = os.open(os.devnull, os.O_RDONLY)
    with pytest.raises(OSError, match="too many"):
        landlock.restrict(Kernel(1, rules, OSError(errno.E2BIG, "too many")))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(rules)


# seccomp: the program, run by a machine of its own

ALLOW, KILL = 0x7FFF0000, 0x80000000
X86, ARM = seccomp.ARCHITECTURES["x86_64"], seccomp.ARCHITECTURES["aarch64"]
I386, ARM32 = 0x40000003, 0x40000028
X32 = 0x40000000


def judged(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """Run a BPF program over one system call, as the kernel would."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack(
        "<IIQ6Q", number & 0xFFFFFFFF, audit, 0xDEAD, *(word & (1 << 64) - 1 for word in words)
    )
    steps = list(struct.iter_unpack("=HBBI", program))
    at = register = 0
    while True:
        code, yes, no, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (register,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                register &= operand
            case 0x15:
                at += yes if register == operand else no
            case 0x06:
                return int(operand)
            case _:
                pytest.fail(f"no such instruction: {code:#x}")


@pytest.mark.parametrize("architecture", [X86, ARM], ids=["x86_64", "aarch64"])
def test_only_the_listed_calls_pass(architecture: seccomp.Architecture) -> None:
    program = seccomp.program(architecture)
    passing = {number for number in range(1_024) if judged(program, architecture.audit, number, 1) == ALLOW}
    free = {"write", "brk", "mremap", "munmap", "clock_gettime", "exit_group"}
    assert passing == {architecture.numbers[name] for name in free}


@pytest.mark.parametrize("architecture", [X86, ARM], ids=["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("read", (0, 0x7F00_0000_0000, 4096), ALLOW),
        *(("read", (descriptor, 0, 1), KILL) for descriptor in (1, 2, 3, 255, -1)),
        *(("write", (descriptor, 0, 1), ALLOW) for descriptor in (1, 2)),
        *(("write", (descriptor, 0, 1), KILL) for descriptor in (0, 3, 255, -1)),
        ("mmap", (0, 4096, 0x3, 0x22, -1, 0), ALLOW),
        ("mmap", (0, 4096, 0x0, 0x4022, -1, 0), ALLOW),
        ("mmap", (0, 4096, 0x7, 0x22, -1, 0), KILL),
        ("mmap", (0, 4096, 0x5, 0x22, -1, 0), KILL),
        ("mmap", (0, 4096, 0x4, 0x22, -1, 0), KILL),
        ("mmap", (0, 4096, 0x3, 0x02, 0, 0), KILL),
        ("mmap", (0, 4096, 0x1, 0x01, 3, 0), KILL),
    ],
)
def test_arguments_are_judged_too(
    architecture: seccomp.Architecture, name: str, arguments: tuple[int, ...], verdict: int
) -> None:
    number = architecture.numbers[name]
    assert judged(seccomp.program(architecture), architecture.audit, number, *arguments) == verdict


def test_another_architecture_is_killed_whatever_it_calls() -> None:
    for number in range(512):
        assert judged(seccomp.program(X86), I386, number, 1) == KILL
        assert judged(seccomp.program(ARM), ARM32, number, 1) == KILL
        assert judged(seccomp.program(X86), ARM.audit, number, 1) == KILL
        assert judged(seccomp.program(X86), X86.audit, X32 | number, 1) == KILL
        assert judged(seccomp.program(X86), X86.audit, 0xFFFFFFFF - number, 1) == KILL


def test_both_tables_name_the_same_calls_and_no_more_than_these() -> None:
    calls = {"read", "write", "brk", "mmap", "mremap", "munmap", "clock_gettime", "exit_group"}
    assert seccomp.ALLOWED.keys() == X86.numbers.keys() == ARM.numbers.keys() == calls


def test_the_program_is_put_in_force_as_a_whole() -> None:
    given: list[bytes] = []

    def kernel(name: str, *arguments: Any) -> int:  # noqa: ANN401 - whatever is asked
        option, mode, where, *rest = arguments
        assert (name, option, mode, rest) == ("prctl", 22, 2, [0, 0])
        length, address = struct.unpack("HP", where)
        given.append(ctypes.string_at(address, length * 8))
        return 0

    for machine in seccomp.ARCHITECTURES:
        seccomp.allow_only_listed(machine, bits_64=True, call=kernel)
    assert given == [seccomp.program(X86), seccomp.program(ARM)]


@pytest.mark.parametrize(("machine", "bits_64"), [("riscv64", True), ("x86_64", False), ("aarch64", False)])
def test_a_machine_without_a_table_has_no_allow_list(machine: str, bits_64: bool) -> None:
    with pytest.raises(OSError, match="no table"):
        seccomp.allow_only_listed(machine, bits_64=bits_64, call=pytest.fail)


# limits


class Limits(dict[int, tuple[int, int]]):
    """Takes limits, under those that the system has set."""

    hard: dict[int, int]
    timer: tuple[int, float]

    def __init__(self, hard: dict[int, int] | None = None) -> None:
        super().__init__()
        self.hard = hard or {}

    def take(self, platform: str, *seconds: float) -> None:
        limits.limit(
            *seconds,
            platform=platform,
            limit_of=lambda which: (0, self.hard.get(which, resource.RLIM_INFINITY)),
            set_limit=self.__setitem__,
            set_timer=self._set_timer,
        )

    def _set_timer(self, which: int, seconds: float) -> None:
        self.timer = which, seconds


def test_limits_leave_memory_time_and_nothing_else() -> None:
    set_ = Limits()
    set_.take("linux")
    assert set_.timer == (signal.ITIMER_PROF, limits.CPU_SECONDS)
    assert set_[resource.RLIMIT_CPU][1] > limits.CPU_SECONDS
    assert set_.pop(resource.RLIMIT_AS) == (limits.MEMORY_BYTES, limits.MEMORY_BYTES)
    assert (
        set_[resource.RLIMIT_NOFILE] == set_[resource.RLIMIT_NPROC] == set_[resource.RLIMIT_FSIZE] == (0, 0)
    )


def test_a_lower_limit_of_the_system_stays() -> None:
    set_ = Limits({resource.RLIMIT_CPU: 3, resource.RLIMIT_AS: 1 << 40})
    set_.take("linux", 4.0)
    assert set_[resource.RLIMIT_CPU] == (3, 3)
    assert set_[resource.RLIMIT_AS] == (limits.MEMORY_BYTES, limits.MEMORY_BYTES)


def test_on_macos_only_limits_that_it_knows() -> None:
    set_ = Limits()
    set_.take("darwin")
    assert resource.RLIMIT_AS not in set_
    assert set_[resource.RLIMIT_NOFILE] == (0, 0)


# macOS


def test_a_child_that_is_refused_a_look_is_confined() -> None:
    def refused(_path: str) -> None:
        raise PermissionError

    confined.confirm(refused)


def test_a_child_that_may_look_is_not() -> None:
    with pytest.raises(OSError, match="not confined"):
        confined.confirm()


# the real thing


def in_child(code: str, without: str = "") -> str:
    """Run code in a process of its own that holds all locks but one; return what it prints."""
    start = (
        f"import sys, os; sys.path.append({str(ROOT)!r})\nfrom reader.sandbox.lock import STEPS, lock\n"
        f"import socket, ctypes; prctl = ctypes.CDLL(None).prctl; signal = ctypes.c_int()\n"
        f"held = lock({os.getpid()}, tuple(step for step in STEPS[sys.platform] if step[0] != {without!r}))\n"
    )
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{start}{code}\nos._exit(0)"],
        capture_output=True,
        check=False,
        timeout=60,
        env={},
    )
    return child.stdout.decode()


@linux
def test_a_locked_process_has_no_rights_to_gain_and_dies_with_its_parent() -> None:
    ask = (
        "prctl(2, ctypes.byref(signal))\n"
        "os.write(1, f'{prctl(39, 0, 0, 0, 0)} {prctl(3, 0, 0, 0, 0)} {signal.value}'.encode())"
    )
    assert in_child(ask, without="seccomp") == "1 0 9"


@linux
def test_the_locks_that_hold_here_are_told() -> None:
    try:
        version = system_call("syscall", 444, None, 0, 1)
    except OSError as error:
        pytest.skip(f"no Landlock here: {error}")
    held = dict.fromkeys((name for name, _ in STEPS["linux"]), 1)
    assert in_child("os.write(1, repr(held).encode())") == repr(held | {"landlock": version})
