"""One unit of work = one transaction = one commit. All writing goes through `Store.begin`."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from sqlalchemy import ColumnElement
from sqlmodel import Session, SQLModel, select

from governor.store.connect import BEGIN, store_errors
from governor.store.database import open_engine
from governor.store.tables import HostState

Row = TypeVar("Row", bound=SQLModel)
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class UnitOfWork:
    """An open transaction. `session` reads and writes the rows of `governor.store.tables`."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def all(self, table: type[Row], *where: ColumnElement[bool] | bool) -> list[Row]:
        """Return the rows of table for which every condition holds."""
        return list(self.session.exec(select(table).where(*where)))

    def one(self, table: type[Row], *where: ColumnElement[bool] | bool) -> Row | None:
        """Return the only row for which every condition holds, or None."""
        return self.session.exec(select(table).where(*where)).one_or_none()

    def get(self, table: type[Row], key: object) -> Row | None:
        """Return the row with this primary key, or None."""
        return self.session.get(table, key)

    def add(self, row: SQLModel) -> None:
        """Add a new row; it is written at once, so a broken constraint shows here."""
        self.session.add(row)
        self.session.flush()

    def fact(self, key: str) -> str | None:
        """Return a single fact of this host."""
        row = self.session.get(HostState, key)
        return row.value if row else None

    def set_fact(self, key: str, value: str) -> None:
        """Remember a single fact of this host."""
        self.session.merge(HostState(key=key, value=value))


class Store:
    """The database of one home. `run` keeps commits off the event loop, one after the other."""

    def __init__(self, path: Path) -> None:
        """Open (and where needed make or upgrade) the database; raises StoreError."""
        self.path = path
        self.engine = open_engine(path)
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    @contextmanager
    def begin(self) -> Iterator[UnitOfWork]:
        """Open a writing transaction; it is committed at the end and undone by any exception."""
        with (
            store_errors(self.path),
            Session(self.engine, expire_on_commit=False) as session,
            session.begin(),
        ):
            session.connection()  # takes the lock now: what is loaded next is what will be decided on
            yield UnitOfWork(session)

    @contextmanager
    def reading(self) -> Iterator[UnitOfWork]:
        """Open a transaction that only reads; it never waits for a writer."""
        with store_errors(self.path), Session(self.engine, expire_on_commit=False) as session:
            session.connection(execution_options={BEGIN: "DEFERRED"})
            yield UnitOfWork(session)

    async def run(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Run a use case in the writer thread; shielded, so that a commit under way is never torn."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._writer, partial(work, *args, **kwargs)))

    def close(self) -> None:
        """Wait for the work under way and close the file."""
        self._writer.shutdown(wait=True)
        self.engine.dispose()
