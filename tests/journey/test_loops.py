"""The loops that send and read, as the daemon runs them: woken by the bell, looking by themselves, ended in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from failing_store import FailingStore
from governor_pair import Governor, GovernorPair, until

from governor.errors import StoreError
from governor.inbound.reader_loop import ReaderLoop
from governor.message import UntrustedText
from governor.outbox.sender import Sender
from governor.outbox.submit import Offer, submit
from governor.store.tables import ControlWebhook
from governor.store.unit_of_work import Store
from governor.wiring import reader_rules


@asynccontextmanager
async def running(pair: GovernorPair) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(loop) for one in pair.all for loop in (one.sender.run(), one.reader.run())]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def over(governor: Governor, store: Store) -> None:
    """Let the governor's loops work over another connection to its database."""
    governor.sender = Sender(
        store,
        governor.host,
        governor.home.keyring,
        governor.wire,  # type: ignore[arg-type]
        governor.bell,
        lambda: 0.5,
    )
    governor.reader = ReaderLoop(store, governor.host, reader_rules(governor.home), None, governor.bell)


async def test_a_message_goes_its_way_by_itself(pair: GovernorPair) -> None:
    pair.go()
    async with running(pair):
        sent = (await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": "v1.0.0"})).json()
        await until(lambda: pair.eva.waiting() == 1)
        answer = await pair.eva.ask("GET", "/v1/inbox?wait=10")
        assert answer.json()["messages"][0]["id"] == sent["id"]


async def test_what_another_process_wrote_is_seen_without_a_ring(pair: GovernorPair) -> None:
    pair.go()
    async with running(pair):
        await until(lambda: {row.state for row in pair.max.rows(ControlWebhook)} == {"done"})
        other = Store(pair.max.home.store.path)
        submit(other, pair.max.host, Offer("max", "eva", UntrustedText("v1.0.0")))
        other.close()
        await until(lambda: pair.eva.waiting() == 1)


async def test_a_reader_under_way_at_the_end_is_killed_and_its_message_read_after_the_start(
    pair: GovernorPair,
) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    reading = asyncio.create_task(pair.eva.reader.run())
    await until(lambda: pair.eva.message(sent.id).state == "reading")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    state = pair.eva.message(sent.id).state
    assert state in ("reading", "ready")  # it may have been quicker
    pair.eva.restart()
    await pair.settle()
    assert [item.id for item in pair.eva.inbox()] == [sent.id]


async def test_a_request_under_way_at_the_end_is_let_finish(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    begun, release = asyncio.Event(), asyncio.Event()

    async def slow(_body: bytes) -> None:
        begun.set()
        await release.wait()

    pair.max.wire.before = slow
    sent = pair.max.send("eva", "v1.0.0")
    sending = asyncio.create_task(pair.max.sender.run())
    await begun.wait()
    sending.cancel()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert pair.max.message(sent.id).state == "accepted"


async def test_a_database_that_fails_ends_the_loop_with_its_error(pair: GovernorPair) -> None:
    pair.go()
    store = FailingStore(pair.max.home.store.path)
    over(pair.max, store)
    pair.max.send("eva", "v1.0.0")
    store.broken = True
    with pytest.raises(StoreError, match="disk is full"):
        await pair.max.sender.run()
    store.close()


async def test_a_rewrite_that_cannot_be_written_is_a_drop(pair: GovernorPair) -> None:
    pair.go()
    sent = pair.max.send("eva", "v1.0.0")
    await pair.deliver()
    store = FailingStore(pair.eva.home.store.path)
    over(pair.eva, store)
    await pair.eva.reader.start_due()
    store.once = ValueError("v1.0.0 in the text of an error")
    await pair.eva.reader.drain()
    row = pair.eva.message(sent.id)
    assert (row.state, row.reason, row.clean) == ("dropped", "reader_valueerror", None)
    store.close()


async def test_readers_at_work_are_bounded(pair: GovernorPair) -> None:
    pair.go()
    for number in range(5):
        pair.max.send("eva", f"v1.0.{number}")
    await pair.max.sender.start_due()
    await pair.max.sender.drain()
    await pair.max.sender.start_due()
    await pair.max.sender.drain()
    assert await pair.eva.reader.start_due() == 2  # [reader] parallel
    assert await pair.eva.reader.start_due() == 0
    await pair.eva.reader.drain()
