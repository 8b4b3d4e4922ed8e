"""An allow-list of system calls as a BPF program: whatever is not on it kills the process (seccomp(2)).

A program sees the architecture, the number and the arguments of a call, never what a pointer points
to. Calls of another architecture (`int 0x80`) are killed first; those of x32 have numbers of their own,
which are on no list. Only the low half of an argument is compared: it is all that the kernel reads of a
descriptor, and it holds every flag of mmap(2).
"""

import ctypes
import os
import struct
import sys
from typing import NamedTuple

from reader.sandbox.system_call import Call, system_call

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

_LOAD, _AND, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_ALLOW, _KILL_PROCESS = 0x7FFF_0000, 0x8000_0000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
"""Offsets in `struct seccomp_data`; both architectures are little-endian: the low half comes first."""

_WHOLE = 0xFFFF_FFFF
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20


class Condition(NamedTuple):
    """Argument number `argument`, of which only the bits in `mask` count, must be one of `values`."""

    argument: int
    mask: int
    values: tuple[int, ...]


ALLOWED: dict[str, tuple[Condition, ...]] = {
    "read": (Condition(0, _WHOLE, (0,)),),
    "write": (Condition(0, _WHOLE, (1, 2)),),
    "brk": (),
    "mmap": (Condition(2, _PROT_EXEC, (0,)), Condition(3, _MAP_ANONYMOUS, (_MAP_ANONYMOUS,))),
    "mremap": (),
    "munmap": (),
    "clock_gettime": (),
    "exit_group": (),
}
"""What a reader needs once it is locked: its two pipes, memory, the end (and time, where no vDSO tells it)."""


class Architecture(NamedTuple):
    """What the kernel calls it (`AUDIT_ARCH_...`), and its numbers of the calls (`asm/unistd.h`)."""

    audit: int
    numbers: dict[str, int]


ARCHITECTURES: dict[str, Architecture] = {
    "x86_64": Architecture(
        0xC000_003E,
        {
            "read": 0,
            "write": 1,
            "mmap": 9,
            "munmap": 11,
            "brk": 12,
            "mremap": 25,
            "clock_gettime": 228,
            "exit_group": 231,
        },
    ),
    "aarch64": Architecture(
        0xC000_00B7,
        {
            "read": 63,
            "write": 64,
            "exit_group": 94,
            "clock_gettime": 113,
            "brk": 214,
            "munmap": 215,
            "mremap": 216,
            "mmap": 222,
        },
    ),
}
"""By the machine's name in uname(2)."""


def program(architecture: Architecture) -> bytes:
    """Return the BPF program that allows `ALLOWED` on this architecture and kills for all else."""
    steps = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_JUMP_IF_EQUAL, architecture.audit, yes=1),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER_AT),
    ]
    for name, conditions in ALLOWED.items():
        checked = [step for each in conditions for step in _checked(each)] + [_step(_RETURN, _ALLOW)]
        steps += [_step(_JUMP_IF_EQUAL, architecture.numbers[name], no=len(checked)), *checked]
    return b"".join([*steps, _step(_RETURN, _KILL_PROCESS)])


def allow_only_listed(
    machine: str | None = None, *, bits_64: bool = sys.maxsize > 1 << 32, call: Call = system_call
) -> None:
    """Put the program in force for good; `machine`: this one. Raises OSError where it cannot be had."""
    architecture = ARCHITECTURES.get(machine or os.uname().machine) if bits_64 else None
    if architecture is None:
        raise OSError("no table of system calls for this machine")
    filter_ = program(architecture)
    kept = ctypes.create_string_buffer(filter_, len(filter_))
    where = struct.pack("HP", len(filter_) // len(_step(_RETURN, 0)), ctypes.addressof(kept))
    call("prctl", _PR_SET_SECCOMP, _MODE_FILTER, where, 0, 0)


def _checked(condition: Condition) -> list[bytes]:
    """Return steps that go on where the condition holds, and kill otherwise."""
    left = range(len(condition.values), 0, -1)
    return [
        _step(_LOAD, _ARGUMENTS_AT + _ARGUMENT_BYTES * condition.argument),
        _step(_AND, condition.mask),
        *(_step(_JUMP_IF_EQUAL, value, yes=n) for value, n in zip(condition.values, left, strict=True)),
        _step(_RETURN, _KILL_PROCESS),
    ]


def _step(code: int, operand: int, *, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction; `yes` and `no` are how many steps a jump leaves out."""
    return struct.pack("=HBBI", code, yes, no, operand)
