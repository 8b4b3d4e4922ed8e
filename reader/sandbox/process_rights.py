"""What a Linux process can ask of its kernel about itself: prctl(2)."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

CALLS: tuple[tuple[int, int], ...] = (
    (_PR_SET_PDEATHSIG, signal.SIGKILL),
    (_PR_SET_DUMPABLE, 0),  # no core, no ptrace by others of this user; exec would reset it
    (_PR_SET_NO_NEW_PRIVS, 1),  # no set-uid program can give back what we give up
)


def give_up(calls: tuple[tuple[int, int], ...] = CALLS) -> None:
    """Die with the thread that started us, be readable to nobody, gain no rights. Raises OSError."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    for option, value in calls:
        if prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
