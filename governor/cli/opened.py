"""Opens a home for one command of an operator, which works on its database beside a running governor."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from governor.errors import ConfigError
from governor.wiring import Home, open_home


@contextmanager
def opened(path: Path) -> Iterator[Home]:
    """Open a home and close it at the end; raises ConfigError or StoreError."""
    check_owner(path)
    home = open_home(path)
    try:
        yield home
    finally:
        home.store.close()


def check_owner(path: Path) -> None:
    """Refuse the home of another user: what root wrote there, the governor could not read."""
    if path.exists() and (owner := path.stat().st_uid) != os.geteuid():
        raise ConfigError(
            f"{path} is the home of another user. Act as that one: sudo -u '#{owner}' governor ..."
        )
