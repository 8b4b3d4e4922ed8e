"""POSTs webhooks to peers, and to nothing else: no redirect, no proxy, no cookie, bounded in all.

httpx is used at its transport, below everything that a client would do of itself.
"""

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import httpx

from governor.errors import LocalError, TransportError
from governor.webhook.peer_url import is_local, read_peer_url
from governor.webhook.tls import client_context, public_context

ANSWER_LIMIT: Final = 16 * 1024
"""Longest body of an answer in bytes."""

CONNECT_WITHIN: Final = timedelta(seconds=5)
ANSWER_WITHIN: Final = timedelta(seconds=15)
"""For the whole of a POST, its wait for a place included."""

RETRY_LIMIT: Final = timedelta(hours=1)
"""Longest Retry-After that is believed."""

_PLACES: Final = 4  # messages in flight per peer
_URGENT_PLACES: Final = 2  # kept free of them, so that a STOP never waits for a slow answer
_KEEP_ALIVE_S: Final = 30.0  # shorter than the listener's, so that we never reuse what it is closing


class Fault(StrEnum):
    """What went wrong between the two governors."""

    ADDRESS = "address"  # the URL, or what its name leads to, is not permitted
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    CUT = "cut"  # the connection broke, or the peer was forgotten
    ANSWER = "answer"  # not HTTP, or too long


_BEFORE_SENDING: Final = frozenset({Fault.ADDRESS, Fault.CONNECT})


class PostError(TransportError):
    """The POST gave no answer; `left` tells whether bytes of it may have reached the peer."""

    def __init__(self, kind: Fault, peer: str, *, left: bool) -> None:
        super().__init__(f"The governor of {peer} gave no answer ({kind}). Look at: governor peers")
        self.kind = kind
        self.left = left


@dataclass(frozen=True, slots=True)
class PeerAddress:
    """A peer's name, its confirmed URL and its pinned certificates (DER), current and old.

    `public_tls`: a proxy shows a certificate of a public authority at that URL instead.
    """

    name: str
    url: str
    certificates: tuple[bytes, ...]
    public_tls: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the peer's listener said; `date` is its clock, to show a difference to ours."""

    status: int
    body: bytes
    retry_after: timedelta | None = None
    date: datetime | None = None
