"""Ports of 127.0.0.1 for governors that are started later, perhaps again and again."""

import itertools
import os
import socket
from collections.abc import Iterator

_WORKERS, _EACH = 16, 1_250
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS


def _candidates() -> Iterator[int]:
    """Go round this worker's own range, which lies below the ports that systems give to connections."""
    first = 10_000 + _WORKER * _EACH
    for step in itertools.count(os.getpid()):
        yield first + step % _EACH


_CANDIDATES = _candidates()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now and no other worker will ask for."""
    return list(itertools.islice(filter(_is_free, _CANDIDATES), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
