"""Calls of the Linux kernel that Python has no function for, by the C library."""

import ctypes
import os
from collections.abc import Callable
from typing import Any

Call = Callable[..., int]

_LIBC = ctypes.CDLL(None, use_errno=True)


def system_call(name: str, *arguments: int | bytes | ctypes.Array[Any] | None) -> int:
    """Call the function `name` of the C library and return its result; raises OSError where it is -1.

    Integers are passed as words, bytes and arrays by their address, None as a null pointer.
    """
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = getattr(_LIBC, name)(*words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
