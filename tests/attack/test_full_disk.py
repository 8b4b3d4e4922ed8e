"""A database that cannot be written in the middle of an exchange: nothing passes unseen, and it goes on after."""

import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator

import pytest
from model_server import ModelServer

from tests.real_processes import RealPair, RealSide, end, ended_after, until

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason="a running process's limits are set by prlimit(2)"),
]

REQUEST = "Build 7731 of src/app.py:12 is green."


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer("honest") as model:
        yield model


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[RealPair]:
    reader = {"model": "test-model", "base_url": model.url}
    made = RealPair(tmp_path_factory.mktemp("full"), reader=reader)
    with ended_after(*made.sides):
        yield made


@pytest.fixture
def pair(homes: RealPair) -> RealPair:
    homes.open()
    return homes


@contextlib.contextmanager
def full(side: RealSide) -> Iterator[None]:
    """Let the governor write no byte more to any file, its log included."""
    assert side.process is not None
    pid = side.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        if side.alive():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def attempts(side: RealSide, message_id: str) -> int:
    return side.rows("SELECT attempts FROM message WHERE id = ?", message_id)[0][0]


def shown(side: RealSide) -> list[str]:
    return [message["id"] for message in side.inbox()]


def failed(side: RealSide, *words: str) -> str:
    """Run a command that cannot do its work; return what it said."""
    answered = side.command(*words, stdin=REQUEST)
    assert answered.code == 1, answered
    assert answered.document["error"] == "store"
    return str(answered.document["message"])


def test_a_receiver_without_room_takes_nothing_and_shows_nothing(pair: RealPair) -> None:
    waits = pair.max.send("eva", REQUEST)
    until(lambda: pair.eva.states(waits) == ["ready"])
    before = pair.eva.rows("SELECT count(*) FROM audit_record")
    with full(pair.eva):
        sent = pair.max.send("eva", REQUEST)
        until(lambda: pair.max.rows("SELECT error FROM message WHERE id = ?", sent) == [("peer_busy",)])
        until(lambda: attempts(pair.max, sent) >= 2)
        assert pair.max.states(sent)[0] in {"queued", "sending"}
        assert pair.eva.states(sent) == []
        assert "space" in failed(pair.eva, "inbox")
        assert "space" in failed(pair.eva, "send", "--to", "max", "-")
        assert pair.eva.rows("SELECT count(*) FROM audit_record") == before
        assert pair.eva.alive()
    until(lambda: set(shown(pair.eva)) == {waits, sent})
    assert pair.eva.states(sent) == ["ready"]
    assert pair.max.states(sent) == ["accepted"]
    answer = pair.eva.must("send", "--to", "max", "--wait", "60", "-", stdin=REQUEST)
    assert answer["state"] == "accepted"
    assert all(side.command("audit", "verify").code == 0 for side in pair.sides)


def test_a_sender_without_room_learns_the_outcome_when_there_is_some(pair: RealPair) -> None:
    first = pair.max.must("send", "--to", "eva", "--wait", "60", "-", stdin=REQUEST)["id"]
    pair.eva.signal(signal.SIGSTOP)
    sent = pair.max.send("eva", REQUEST)
    until(lambda: pair.max.states(sent) == ["sending"])
    with full(pair.max):
        pair.eva.signal(signal.SIGCONT)
        until(lambda: set(shown(pair.eva)) == {first, sent})
        assert pair.max.states(sent) == ["sending"]
        before = pair.max.rows("SELECT count(*) FROM message")
        assert "space" in failed(pair.max, "send", "--to", "eva", "-")
    until(lambda: pair.max.states(sent) == ["accepted"])
    assert pair.eva.states(sent) == ["ready"]
    assert pair.max.rows("SELECT count(*) FROM message") == before


def test_what_a_reader_made_is_kept_until_it_can_be_written(pair: RealPair, model: ModelServer) -> None:
    asked = len(model.bodies)
    model.behaviour = "slow"
    sent = pair.max.send("eva", REQUEST)
    until(lambda: len(model.bodies) > asked)
    with full(pair.eva):
        model.behaviour = "honest"
        model._released.set()
        until(lambda: not pair.eva.children())
        assert pair.eva.states(sent) == ["reading"]
    until(lambda: sent in shown(pair.eva))
    assert pair.eva.rows("SELECT count(*) FROM model_call WHERE message_id = ?", sent) == [(1,)]
    model._released.clear()


def test_a_stop_given_by_signal_without_room_holds_as_soon_as_there_is_some(pair: RealPair) -> None:
    with full(pair.eva):
        pair.eva.signal(signal.SIGUSR1)
        sent = pair.max.send("eva", REQUEST)
        until(lambda: attempts(pair.max, sent) >= 1)
    until(lambda: pair.eva.switch("max-host")[0] == "stopped")
    assert pair.eva.states(sent) == []
    until(lambda: pair.max.switch("eva-host")[0] == "stopped")  # it is told too


def test_an_end_without_room_comes_in_time_and_says_what_it_could_not_write(pair: RealPair) -> None:
    with full(pair.eva):
        pair.eva.signal(signal.SIGTERM)
        assert pair.eva.exit_code() == 1
    pair.eva.start()
    sent = pair.max.must("send", "--to", "eva", "--wait", "60", "-", stdin=REQUEST)
    assert sent["state"] == "accepted"
    assert pair.eva.command("audit", "verify").code == 0


def test_a_database_held_by_another_process_delays_and_loses_nothing(pair: RealPair) -> None:
    with contextlib.closing(sqlite3.connect(pair.eva.database, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        sent = pair.max.send("eva", REQUEST)
        until(lambda: pair.max.rows("SELECT error FROM message WHERE id = ?", sent) == [("peer_busy",)])
        assert "another process" in failed(pair.eva, "inbox")
        until(lambda: "tick_failed" in pair.eva.log)
        other.execute("ROLLBACK")
    until(lambda: "tick_works_again" in pair.eva.log.partition("tick_failed")[2])
    until(lambda: sent in shown(pair.eva))
    until(lambda: pair.max.states(sent) == ["accepted"])


@contextlib.contextmanager
def on_a_small_disk(side: RealSide) -> Iterator[None]:
    """Move a home to a disk of two megabytes, where this user may make one, and back."""
    aside = side.home.with_name("aside")
    side.home.rename(aside)
    side.home.mkdir()
    made = ["/bin/mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(side.home)]
    try:
        if os.getuid() != 0 or subprocess.run(made, capture_output=True, check=False).returncode != 0:
            pytest.skip("only root can make a disk, and not everywhere")
        try:
            subprocess.run(["/bin/cp", "-a", f"{aside}/.", str(side.home)], check=True)
            yield
        finally:
            end(side)
            subprocess.run(["/bin/umount", "--lazy", str(side.home)], check=True)
    finally:
        side.home.rmdir()
        aside.rename(side.home)


def test_a_disk_that_is_really_full(pair: RealPair) -> None:
    """Not a limit of the process: ENOSPC, for everybody."""
    max_, eva = pair.sides
    end(eva)
    with on_a_small_disk(eva):
        pair.open()
        filler = eva.home / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        sent, code = [], 0
        while code == 0:  # the room that SQLite holds already is used up first
            answered = max_.command("send", "--to", "eva", "--wait", "30", "-", stdin=REQUEST)
            sent.append(answered.document["id"])
            code = answered.code
        assert (code, answered.document["reason"]) == (4, "peer_busy")
        assert eva.states(sent[-1]) == []
        assert eva.alive()
        filler.unlink()
        until(lambda: set(sent) <= set(shown(eva)))
        assert eva.command("audit", "verify").code == 0
