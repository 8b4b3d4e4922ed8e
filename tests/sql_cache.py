"""Lets all databases of a test run share compiled statements.

Compiling is most of what a fresh database costs, a test opens two of them, and a governor one in its life.
"""

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

_STATEMENTS: LRUCache[object, object] = LRUCache(2_000)


def share_compiled_statements() -> None:
    """Use one cache from here on; its keys hold the dialect, so all of SQLite's have to be alike."""
    SQLiteDialect_pysqlite.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]
    SQLiteDialect_pysqlite.__hash__ = lambda one: hash(type(one))  # type: ignore[method-assign]
    event.listen(Engine, "engine_connect", _share)


def _share(connection: Connection) -> None:
    connection.engine._compiled_cache = _STATEMENTS
