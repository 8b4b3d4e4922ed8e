"""What a Linux process can give up of itself: prctl(2) and capabilities(7)."""

import ctypes
import signal
import struct

from reader.sandbox.system_call import Call, system_call

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITY_BYTES = 24
"""Three sets (effective, permitted, inheritable) of 64 bits each."""


def die_with_parent(call: Call = system_call) -> None:
    """Be killed when the thread that started us ends. Raises OSError."""
    _set(_PR_SET_PDEATHSIG, signal.SIGKILL, call)


def be_undumpable(call: Call = system_call) -> None:
    """Leave no core and be readable to no process of the same user. Raises OSError.

    A program resets it when it starts, so only the process itself can do this.
    """
    _set(_PR_SET_DUMPABLE, 0, call)


def gain_no_rights(call: Call = system_call) -> None:
    """Let no set-uid program give back what we give up; Landlock and seccomp ask for it. Raises OSError."""
    _set(_PR_SET_NO_NEW_PRIVS, 1, call)


def drop_capabilities(call: Call = system_call) -> None:
    """Give up what makes root more than a user. Raises OSError.

    Who holds none does not ask: the system may have forbidden capset(2) itself.
    """
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    held = ctypes.create_string_buffer(_CAPABILITY_BYTES)
    call("capget", header, held)
    if any(held.raw):
        call("capset", header, bytes(_CAPABILITY_BYTES))


def _set(option: int, value: int, call: Call) -> None:
    call("prctl", option, value, 0, 0, 0)
