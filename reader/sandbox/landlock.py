"""Landlock with no rule: whatever this kernel's version can forbid is forbidden (landlock(7))."""

import os
import struct

from reader.sandbox.system_call import Call, system_call

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same on every architecture
_TELL_VERSION = 1

_FILES, _NETWORK, _SCOPES = range(3)
"""The words of `struct landlock_ruleset_attr`."""

HANDLED: tuple[tuple[int, int, int], ...] = (
    (1, _FILES, 0x1FFF),  # execute, read, write, list, make, remove
    (2, _FILES, 0x2000),  # link and rename from folder to folder
    (3, _FILES, 0x4000),  # truncate
    (4, _NETWORK, 0x3),  # bind and connect TCP
    (5, _FILES, 0x8000),  # ioctl on devices
    (6, _SCOPES, 0x3),  # abstract Unix sockets and signals to processes outside
)
"""What is forbidden: (since which version of the interface, which word, which bits)."""


def ruleset(abi: int) -> bytes:
    """Return the attributes of a ruleset that handles all that version `abi` knows."""
    words = [0, 0, 0]
    for since, word, bits in HANDLED:
        if since <= abi:
            words[word] |= bits
    return struct.pack("=3Q", *words)  # zeros beyond what an old kernel knows are no fault to it


def restrict(call: Call = system_call) -> int:
    """Forbid it to this thread for good and return the version of the interface.

    Raises OSError where the kernel has no Landlock or has it switched off.
    """
    abi = call("syscall", _CREATE_RULESET, None, 0, _TELL_VERSION)
    attributes = ruleset(abi)
    rules = call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
    try:
        call("syscall", _RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)
    return abi
