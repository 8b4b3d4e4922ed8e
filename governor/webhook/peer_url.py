"""Where a peer may be reached: the rule for URLs and for the addresses behind their names.

A URL from a pairing line is where this host will POST to. Loopback and link-local addresses lead to
services that trust whoever can reach them, so they are for tests and demonstrations, by a flag.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from governor.errors import LocalError

URL_LIMIT: Final = 300
# The last label begins with a letter: `127.1` and `0x7f000001` are addresses to some resolvers.
_HOST = re.compile(r"([a-z0-9-]{1,63}\.){0,8}[a-z][a-z0-9-]{0,62}", re.ASCII)
_PLAIN = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class PeerUrl:
    """A permitted URL, taken apart: scheme, host without brackets, port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def read_peer_url(url: str, *, allow_loopback: bool = False) -> PeerUrl:
    """Return the URL of a peer's governor, or raise LocalError that says what is wrong.

    `allow_loopback` admits loopback and link-local addresses, and plain http to a loopback address
    (two governors on one machine behind `tls = "proxy"`).
    """
    parts, port = _split(url)
    host = parts.hostname or ""
    address = _address(host)
    local = address is not None and is_local(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and allow_loopback and local):
        raise LocalError(f"A peer's URL begins with https://, not {parts.scheme[:16]!r}. Ask for a new line.")
    if parts.username is not None or parts.password is not None:
        raise LocalError("A peer's URL holds no user name or password. Ask for a new line.")
    if parts.path not in ("", "/") or "?" in url or "#" in url:
        raise LocalError("A peer's URL ends after the host and port. Ask for a new line.")
    if address is None and _HOST.fullmatch(host) is None:
        raise LocalError("The peer's URL names no valid host. Ask for a new line.")
    if not allow_loopback and (local or host == "localhost" or host.endswith(".localhost")):
        raise LocalError(
            f"The peer's URL leads to this machine or link only ({host}). Ask for one with its address."
        )
    return PeerUrl(parts.scheme, host, port)


def is_local(address: str) -> bool:
    """Tell whether an IP address is of this machine or link only, or of no machine at all."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped  # ::ffff:127.0.0.1 is 127.0.0.1
    return ip.is_loopback or ip.is_link_local or ip.is_unspecified or ip.is_multicast


def _split(url: str) -> tuple[SplitResult, int]:
    # urlsplit removes tabs and newlines silently, so they are refused before.
    if len(url) > URL_LIMIT or _PLAIN.fullmatch(url) is None:
        raise LocalError("The peer's URL is too long or holds characters no URL has. Ask for a new line.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise LocalError("The peer's URL cannot be read. Ask for a new line.") from error
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    if port == 0:
        raise LocalError("The peer's URL names no port. Ask for a new line.")
    return parts, port


def _address(host: str) -> str | None:
    try:
        return None if "%" in host else str(ipaddress.ip_address(host))
    except ValueError:
        return None
