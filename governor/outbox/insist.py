"""Writes down what has happened already: if the database fails now, then as soon as it works again."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec

import structlog

from governor.errors import StoreError
from governor.store.unit_of_work import Store

RETRY_S = 0.5
"""How long the database is left alone after a failure, in seconds."""

Arguments = ParamSpec("Arguments")

log = structlog.get_logger(__name__)


async def insist(
    store: Store, work: Callable[Arguments, object], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> None:
    """Run a use case in the writer thread until its commit holds, or until cancelled.

    For the outcome of a request or of a read (without its row the message would stay under way until
    the next start) and for a STOP.
    """
    failed = False
    while True:
        try:
            await store.run(work, *args, **kwargs)
        except StoreError as error:
            if not failed:  # once: a disk that stays full is not helped by a log that grows
                log.error("store_failed", error=error.message)  # noqa: TRY400 - the message says it all
            failed = True
            await asyncio.sleep(RETRY_S)
        else:
            return
