"""A governor with a model file of its own: nothing is lost while the model is not up, and it ends with it."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_broker import FakeBroker
from governor_pair import GovernorPair
from real_processes import RealPair, ended_after, is_gone, until
from stand_in import STAND_IN

from governor.message import InboundState
from governor.model.serving import has_runtime

MODEL = {"model": "fake", "base_url": "http://127.0.0.1:9"}
TEXT = "The login test in tests/test_login.py:88 fails since v2.4.1. Could you review PR #482?"


async def test_while_the_model_is_not_up_messages_wait_and_peers_come_back_later(
    make_pair: Callable[..., GovernorPair],
) -> None:
    pair = make_pair(broker=FakeBroker(), reader=MODEL)
    pair.go()
    await pair.settle()
    first = pair.max.send("eva", TEXT)
    await pair.deliver()
    pair.eva.reader.is_ready = lambda: False
    second = pair.max.send("eva", TEXT)
    await pair.settle()
    assert pair.eva.message(first.id).state == InboundState.RECEIVED
    assert (pair.max.message(second.id).state, pair.max.message(second.id).error) == ("queued", "peer_busy")
    pair.eva.reader.is_ready = lambda: True
    pair.pass_time(seconds=60)
    await pair.settle()
    assert {item.id for item in pair.eva.inbox()} == {first.id, second.id}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[RealPair]:
    made = RealPair(tmp_path)
    (made.eva.home / "model.gguf").write_bytes(b"GGUF and so on")
    made.eva.set(reader={"model_file": "model.gguf"})
    made.eva.extra |= STAND_IN
    with ended_after(*made.sides):
        yield made


def server_of(pair: RealPair) -> int:
    """Return the process id of the model's server, once it was ready."""
    return until(lambda: _noted(pair.eva.home / "model.sock.settings"))


def _noted(path: Path) -> int:
    return json.loads(path.read_text())["pid"] if path.exists() and path.read_text().endswith("}") else 0


def retold(pair: RealPair) -> str:
    sent = pair.max.must("send", "--to", "eva", "--no-wait", "-", stdin=TEXT)["id"]
    found = until(lambda: [message for message in pair.eva.inbox() if message["id"] == sent])
    return found[0]["text"]


@pytest.mark.processes
@pytest.mark.parametrize("kill", [False, True])
def test_the_model_is_served_kept_and_ended_with_the_governor(pair: RealPair, *, kill: bool) -> None:
    pair.open()
    assert "The sender says: The login test" in retold(pair)
    first = server_of(pair)
    (pair.eva.home / "model.sock.settings").unlink()
    os.kill(first, signal.SIGKILL)
    second = server_of(pair)
    assert second != first
    assert "The sender says: The login test" in retold(pair)
    if kill:
        pair.eva.kill()
    else:
        pair.eva.signal(signal.SIGTERM)
        assert pair.eva.exit_code() == 0
    assert until(lambda: is_gone(second))


@pytest.mark.processes
@pytest.mark.skipif(has_runtime(), reason="the extra `local` is installed here")
def test_without_the_extra_the_governor_says_so_and_does_not_start(pair: RealPair) -> None:
    pair.eva.extra.clear()
    ended = pair.eva.run_to_end()
    assert ended.code == 2
    (line,) = ended.lines
    assert "pip install 'bridge-governor[local]'" in line
