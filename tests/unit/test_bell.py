import asyncio

import pytest

from governor.bell import Bell


async def test_a_ring_wakes_all_who_wait_and_the_next_waits_anew() -> None:
    bell = Bell()
    waiting = [asyncio.create_task(bell.wait(60)) for _ in range(2)]
    await asyncio.sleep(0)
    bell.ring()
    await asyncio.wait_for(asyncio.gather(*waiting), 10)
    later = asyncio.create_task(bell.wait(60))
    await asyncio.sleep(0)
    assert not later.done()
    bell.ring_out()
    await asyncio.wait_for(later, 10)
    assert bell.is_over


async def test_without_a_ring_the_time_ends_the_wait() -> None:
    await Bell().wait(0.01)


async def test_who_is_cancelled_as_the_bell_rings_is_cancelled() -> None:
    bell = Bell()

    async def for_ever() -> None:
        while True:
            await bell.wait(60)

    loop = asyncio.create_task(for_ever())
    await asyncio.sleep(0)
    bell.ring()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(loop, 10)
