"""A database that can be told to fail, as a full disk does."""

from collections.abc import Iterator
from contextlib import contextmanager

from governor.errors import StoreError
from governor.store.unit_of_work import Store, UnitOfWork


class FailingStore(Store):
    """Refuses to write while `broken`; counts what it refused. `once` is raised in the next commit."""

    broken = False
    refused = 0
    once: Exception | None = None

    @contextmanager
    def begin(self) -> Iterator[UnitOfWork]:
        if self.broken:
            self.refused += 1
            raise StoreError("the disk is full; free some space and try again.")
        with super().begin() as uow:
            yield uow
            error, self.once = self.once, None
            if error is not None:
                raise error
