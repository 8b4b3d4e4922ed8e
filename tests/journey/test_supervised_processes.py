"""Two real governors and the operators' group: GO, the mirror, STOP, an orderly end, a bot that is lost."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.real_processes import WITHIN_S, RealPair, end, ended_after
from tests.telegram_server import TelegramServer, eventually

pytestmark = pytest.mark.processes

BOTS = {"max": "11:MAX-SECRET", "eva": "22:EVA-SECRET"}
OPERATOR, STRANGER = 42, 66
REQUEST = "Build 7731 of src/app.py:12 is green."


class Scene:
    """The group and the pair that it watches."""

    def __init__(self, server: TelegramServer, pair: RealPair) -> None:
        self.server, self.pair = server, pair

    def texts(self) -> list[str]:
        return [post.text for post in self.server.posts()]

    async def shown(self, *pieces: str) -> None:
        """Wait until one post holds all these pieces."""
        await eventually(
            lambda: any(all(piece in text for piece in pieces) for text in self.texts()), within=WITHIN_S
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with TelegramServer(time.time) as server:
        for name, token in BOTS.items():
            server.add_bot(token, f"{name}_gov_bot", admin=True)
        pair = await asyncio.to_thread(RealPair, tmp_path)
        for side in pair.sides:
            telegram = {"chat_id": server.chat_id, "operators": [OPERATOR], "base_url": server.url}
            side.set(supervision={"telegram": {**telegram, "token": BOTS[side.agent]}})
        with ended_after(*pair.sides):
            for side in pair.sides:
                await asyncio.to_thread(side.start)
            yield Scene(server, pair)


async def test_people_in_the_group_open_watch_and_stop_two_governors(scene: Scene) -> None:
    pair = scene.pair
    await scene.shown("max-host started")
    await scene.shown("eva-host started")
    scene.server.say(STRANGER, "GO eva-host")
    scene.server.say(OPERATOR, "GO eva-host")
    scene.server.say(OPERATOR, "GO max-host")
    for side, peer in ((pair.max, "eva-host"), (pair.eva, "max-host")):
        await eventually(lambda side=side, peer=peer: side.switch(peer)[0] == "running", within=WITHIN_S)
    assert pair.max.rows("SELECT acted_by FROM link") == [(f"telegram:{OPERATOR}",)]
    sent = await asyncio.to_thread(pair.max.send, "eva", REQUEST)
    await scene.shown("max@max-host -> eva@eva-host", REQUEST)
    await scene.shown("max@max-host -> eva@eva-host", "in 1/50", "src/app.py:12")
    scene.server.say(STRANGER, "STOP it, please")
    for side, peer in ((pair.max, "eva-host"), (pair.eva, "max-host")):
        await eventually(lambda side=side, peer=peer: side.switch(peer)[0] == "stopped", within=WITHIN_S)
    assert (await asyncio.to_thread(pair.eva.must, "inbox"))["messages"] == []
    assert pair.eva.states(sent) == ["ready"]
    for side in pair.sides:  # each in the middle of a long poll
        side.signal(signal.SIGTERM)
        assert await asyncio.to_thread(side.exit_code) == 0
        assert "ended_by_force" not in side.log
        assert not [
            token for token in BOTS.values() if token in side.log or token.partition(":")[2] in side.log
        ]


async def test_a_bot_is_of_one_governor_which_goes_on_when_telegram_forgets_it(scene: Scene) -> None:
    pair = scene.pair
    await scene.shown("max-host started")
    await asyncio.to_thread(end, pair.eva)
    telegram = {"chat_id": scene.server.chat_id, "base_url": scene.server.url, "token": BOTS["max"]}
    pair.eva.set(supervision={"telegram": telegram})
    ended = await asyncio.to_thread(pair.eva.run_to_end)
    assert ended.code == 2
    [line] = ended.lines
    assert f"process {pair.max.process.pid} already polls" in line
    assert BOTS["max"] not in line
    scene.server.fail("getupdates", 401, times=1_000, bot=scene.server.bots[BOTS["max"]])
    await eventually(lambda: "telegram_not_polled" in pair.max.log, within=WITHIN_S)
    assert pair.max.alive()
    pair.max.signal(signal.SIGTERM)
    assert await asyncio.to_thread(pair.max.exit_code) == 0
