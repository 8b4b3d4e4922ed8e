"""Addresses: whose they are, and how they are shown when nobody vouched for their host."""

import re

_START = re.compile(r"(?:([A-Za-z][A-Za-z0-9+\-]{0,30}):)?//|\\\\", re.ASCII)
r"""With a scheme, without one, or of a folder of another machine: `\\host\share`."""
_BARE_DOT = re.compile(r"(?<!\[)\.(?!\])")
_AUTHORITY_ENDS = re.compile(r"[/?#\\]")


def host_of(url: str) -> str:
    """Return the host in lower case: after any `user@`, before any port (RFC 3986, section 3.2)."""
    return _split(url)[1].rpartition("@")[2].partition(":")[0].lower().rstrip(".")


def defang(url: str) -> str:
    """Write a URL so that no program links or fetches it: `hxxps://evil[.]example/x`. Idempotent."""
    start, authority, rest = _split(url)
    scheme, colon, slashes = start.partition(":")
    if scheme.lower() in ("http", "https", "hxxp", "hxxps"):
        start = f"hxxp{scheme[4:].lower()}://"
    elif colon:
        start = f"{scheme}[:]{slashes}"
    return start + (_BARE_DOT.sub("[.]", authority) + rest).replace("://", "[:]//")


def is_shown_safely(url: str, hosts: frozenset[str]) -> bool:
    """Tell whether a URL is of one of these hosts or defanged."""
    return host_of(url) in hosts or defang(url) == url


def _split(url: str) -> tuple[str, str, str]:
    """Return scheme and slashes (empty where there are none), authority and the rest."""
    start = _START.match(url)
    at = start.end() if start else 0
    end = _AUTHORITY_ENDS.search(url, at)
    stop = end.start() if end else len(url)
    return url[:at], url[at:stop], url[stop:]
