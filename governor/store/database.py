"""Opens the SQLite file: private, up to date, checked."""

from pathlib import Path

from sqlalchemy import Engine

from governor.errors import StoreError
from governor.store.connect import BEGIN, make_engine, store_errors
from governor.store.migrate import upgrade


def open_engine(path: Path, *, pooled: bool = True) -> Engine:
    """Open the database at path, upgrade it where needed, and check it.

    Raises StoreError when the file is damaged, locked, newer than this program, or cannot be made.
    """
    _keep_private(path)
    engine = make_engine(path, pooled=pooled)
    try:
        with store_errors(path):
            upgrade(engine, path)
            _check(engine, path)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _keep_private(path: Path) -> None:
    """Make the file if there is none; SQLite gives its companions (-wal, -shm) the same mode."""
    try:
        path.touch(mode=0o600)
        path.chmod(0o600)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}; check its folder and owner.") from error


def _check(engine: Engine, path: Path) -> None:
    with engine.connect().execution_options(**{BEGIN: "DEFERRED"}) as connection:
        verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if verdict != "ok":
        fault = " ".join(str(verdict).split())
        raise StoreError(f"{path} is damaged: {fault}; stop the governor and restore a backup.")
