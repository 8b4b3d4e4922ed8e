"""Brings the tables up to date: all steps in one transaction, a copy of the file first."""

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine

from governor.errors import StoreError
from governor.store.connect import BEGIN
from governor.store.triggers import TRIGGERS
from governor.store.views import VIEWS

if TYPE_CHECKING:
    from alembic.config import Config


@dataclass(frozen=True, slots=True)
class Scripts:
    """Where the migrations are, and their revisions, oldest first."""

    folder: Path
    revisions: tuple[str, ...]

    @property
    def head(self) -> str:
        """The revision this program works with."""
        return self.revisions[-1]


OURS = Scripts(Path(__file__).parent / "migrations", ("0001",))


def upgrade(engine: Engine, path: Path, scripts: Scripts = OURS) -> None:
    """Bring the database to the newest revision; with data in it, keep `<file>.before-<revision>`.

    Raises StoreError for a file of a newer program or of another program; nothing is changed then.
    """
    with engine.connect().execution_options(**{BEGIN: "DEFERRED"}) as connection:
        if _revision(connection, path, scripts) == scripts.head:
            return
    with engine.connect() as connection:
        # rebuilding a table drops it: with foreign keys on, its rows' references would break. SQLite
        # ignores this pragma inside a transaction, so it comes first: sqlite.org/lang_altertable.html
        _raw(connection).execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            current = _revision(connection, path, scripts)  # another process may have been quicker
            if current != scripts.head:
                if current is not None:
                    _copy_aside(path, scripts.head)
                _run(connection, scripts)
    engine.dispose()  # no connection goes on without foreign keys


def _revision(connection: Connection, path: Path, scripts: Scripts) -> str | None:
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise StoreError(f"{path} belongs to another program; move it away or choose another home.")
    revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if revision not in scripts.revisions:
        raise StoreError(f"{path} was made by a newer governor (revision {revision}); install that version.")
    return str(revision)


def _copy_aside(path: Path, revision: str) -> None:
    copy = Path(f"{path}.before-{revision}")
    copy.unlink(missing_ok=True)
    os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    source, target = sqlite3.connect(path), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()


def _run(connection: Connection, scripts: Scripts) -> None:
    from alembic import command  # noqa: PLC0415 - 0.4 s, which only an upgrade has to pay

    _drop_views_and_triggers(connection)
    command.upgrade(alembic_config(connection, scripts), scripts.head)
    for name, query in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")
    for name, body in TRIGGERS.items():
        connection.exec_driver_sql(f"CREATE TRIGGER {name} {body}")
    if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise StoreError(f"the upgrade would break references of table {broken[0]}; nothing was changed.")


def alembic_config(connection: Connection, scripts: Scripts) -> "Config":
    """Tell alembic where the scripts are, and give `env.py` the open transaction to work in."""
    from alembic.config import Config  # noqa: PLC0415 - 0.4 s, which only an upgrade has to pay

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(scripts.folder).replace("%", "%%"))
    return config


def _drop_views_and_triggers(connection: Connection) -> None:
    """Clear the way: a table cannot be rebuilt under a view, and rebuilding one loses its triggers."""
    made = connection.exec_driver_sql(
        "SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger')"
    )
    for kind, name in made.all():
        connection.exec_driver_sql(f'DROP {kind} "{name}"')


def _raw(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)  # noqa: S101 - for the type checker
    return raw
