"""Addresses: whose they are, and how they are shown when nobody vouched for their host."""

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+\-]{0,30})://", re.ASCII)
_BARE_DOT = re.compile(r"(?<!\[)\.(?!\])")
_AUTHORITY_ENDS = re.compile(r"[/?#]")


def host_of(url: str) -> str:
    """Return the host in lower case: after any `user@`, before any port (RFC 3986, section 3.2)."""
    return _split(url)[1].rpartition("@")[2].partition(":")[0].lower().rstrip(".")


def defang(url: str) -> str:
    """Write a URL so that no program links or fetches it: `hxxps://evil[.]example/x`. Idempotent."""
    scheme, authority, rest = _split(url)
    if scheme.lower() in ("http", "https", "hxxp", "hxxps"):
        start = f"hxxp{scheme[4:].lower()}://"
    else:
        start = scheme and f"{scheme}[:]//"
    return start + _BARE_DOT.sub("[.]", authority) + rest.replace("://", "[:]//")


def is_shown_safely(url: str, hosts: frozenset[str]) -> bool:
    """Tell whether a URL is of one of these hosts or defanged."""
    return host_of(url) in hosts or defang(url) == url


def _split(url: str) -> tuple[str, str, str]:
    """Return scheme (empty where there is none), authority and the rest."""
    scheme = _SCHEME.match(url)
    after = url[scheme.end() :] if scheme else url
    end = _AUTHORITY_ENDS.search(after)
    at = end.start() if end else len(after)
    return scheme[1] if scheme else "", after[:at], after[at:]
