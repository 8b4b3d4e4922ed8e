"""Makes the connections: durable pragmas, an explicit BEGIN, errors that name the file."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool

from governor.errors import StoreError

BEGIN = "governor_begin"
"""Execution option: how a connection's transaction starts (IMMEDIATE to write, DEFERRED to read)."""

BUSY_FOR = 5.0
"""Seconds a writer waits for another one."""

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA secure_delete=ON",
)
_PRAGMAS_MACOS = ("PRAGMA fullfsync=1", "PRAGMA checkpoint_fullfsync=1")


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the engine says BEGIN; the driver adds none of its own
    for pragma in _PRAGMAS + (_PRAGMAS_MACOS if sys.platform == "darwin" else ()):
        connection.execute(pragma)


def _on_begin(connection: Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get(BEGIN, 'IMMEDIATE')}")


def make_engine(path: Path, *, pooled: bool = True) -> Engine:
    """Make an engine for the file at path; nothing is opened before the first connection."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=QueuePool if pooled else NullPool,
        connect_args={"check_same_thread": False, "timeout": BUSY_FOR},
        hide_parameters=True,  # an error would repeat the row's values: texts of peers, and secrets
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


_EXPLAINED: dict[int, str] = {
    sqlite3.SQLITE_BUSY: "is held by another process; end that process and try again",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; free some space and try again",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk's health, space and quotas",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its folder exists and is yours",
    sqlite3.SQLITE_PERM: "cannot be opened; check its owner and permissions",
    sqlite3.SQLITE_READONLY: "cannot be written; check the owner and permissions of it and its folder",
    sqlite3.SQLITE_CORRUPT: "is damaged; stop the governor and restore a backup",
    sqlite3.SQLITE_NOTADB: "is not a database; stop the governor and restore a backup",
}


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn the database's errors into one StoreError that names the file and the next step.

    A broken constraint (IntegrityError) is the caller's own affair and passes unchanged.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        # the low byte is the primary code, the rest tells variants of it apart: sqlite.org/rescode.html
        meaning = _EXPLAINED.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
        if meaning is None and isinstance(error, (OperationalError, sqlite3.OperationalError)):
            meaning = f"cannot be used: {cause}; run `governor doctor`"
        if meaning is None:
            raise
        raise StoreError(f"{path} {meaning}.") from error
