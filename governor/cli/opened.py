"""Opens a home for one command of an operator, which works on its database beside a running governor."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from governor.wiring import Home, open_home


@contextmanager
def opened(path: Path) -> Iterator[Home]:
    """Open a home and close it at the end; raises ConfigError or StoreError."""
    home = open_home(path)
    try:
        yield home
    finally:
        home.store.close()
