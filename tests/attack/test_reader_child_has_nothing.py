"""P6: no tools, no credentials, no network, no files, no memory of another message."""

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer

import reader
from governor.clock import SystemClock
from governor.errors import ReadingError
from governor.inbound.model_broker import ModelBroker, ModelCall, ModelSettings
from governor.inbound.reader_process import child_command, read_message
from reader.contract import Job, Mode

NONCE = "0123456789abcdef"
JOB = Job("Please look at a.py.", Mode.REWRITE, NONCE)

PROBE = """
import json, os, sys
def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
found = {
    "environment": dict(os.environ), "folder": os.listdir("."), "path": sys.path,
    "descriptors": [descriptor for descriptor in range(256) if is_open(descriptor)],
    "modules": sorted(sys.modules), "session": os.getsid(0) == os.getpid(),
    "flags": [sys.flags.isolated, sys.flags.no_site, sys.flags.utf8_mode, sys.flags.dont_write_bytecode],
}
from reader.sandbox.lock import lock
"""
AFTER_LOCK = """
def attempt(deed):
    try:
        deed()
    except BaseException as error:
        return type(error).__name__
    return "done"
import socket
report = os.open(REPORT, os.O_WRONLY | os.O_CREAT)
lock(PARENT)
found["deeds"] = {
    "read": attempt(lambda: open("/etc/hosts")),
    "connect": attempt(lambda: socket.create_connection(("127.0.0.1", 9))),
    "import": attempt(lambda: __import__("anthropic")),
    "write": attempt(lambda: open("x", "w")),
}
"""


def probe(report: Path) -> list[str]:
    """Return the command of a real child that looks around instead of serving."""
    *start, code = child_command()
    imports, called, _ = code.rpartition("main(")
    assert called
    look = f"{PROBE}REPORT = {str(report)!r}\nPARENT = {os.getpid()}\n{AFTER_LOCK}"
    # a pipe to the parent would do, but it is the parent's protocol: a file opened before the lock does better
    return [*start, f"{imports.rstrip('; ')}\n{look}os.truncate(report, 0) if False else None\n{WRITE}"]


WRITE = "os.write(1, b'x' * 8) if False else None"
