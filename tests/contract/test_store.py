"""The store against a real file: what a unit of work promises."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from governor.errors import StoreError
from governor.store.tables import Agent, HostState, Link, Peer
from governor.store.unit_of_work import Store, UnitOfWork

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governor.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


def keys(store: Store) -> list[str]:
    with store.reading() as uow:
        return sorted(row.key for row in uow.all(HostState))


def test_what_is_written_in_one_unit_of_work_is_there_in_the_next(store: Store) -> None:
    east = timezone(timedelta(hours=9))
    with store.begin() as uow:
        uow.add(Agent(name="eva", added_at=NOW.astimezone(east)))
        uow.set_fact("tick", "1")
        uow.set_fact("tick", "2")
        assert uow.fact("tick") == "2"
    with store.reading() as uow:
        agent = uow.get(Agent, "eva")
        assert agent is not None
        assert (agent.added_at, agent.added_at.tzinfo) == (NOW, UTC)
        assert uow.one(Agent, Agent.name == "eva") is agent
        assert uow.all(Agent, Agent.name == "max") == []
        assert uow.fact("tick") == "2"
        assert (uow.fact("none"), uow.get(Agent, "none"), uow.one(Agent, Agent.name == "none")) == (None,) * 3


def test_times_are_stored_as_text_in_utc(store: Store, path: Path) -> None:
    with store.begin() as uow:
        uow.add(Agent(name="eva", added_at=NOW.astimezone(timezone(timedelta(hours=9)))))
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT added_at FROM agent").fetchone() == ("2026-01-02 03:04:05.000006",)


def write_and_fail(uow: UnitOfWork) -> None:
    uow.set_fact("a", "1")
    uow.add(Agent(name="eva", added_at=NOW))
    raise ZeroDivisionError


def test_an_exception_undoes_the_whole_unit_of_work(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.begin() as uow:
        write_and_fail(uow)
    assert keys(store) == []
    with store.reading() as uow:
        assert uow.all(Agent) == []


def try_to_add(uow: UnitOfWork, row: Agent) -> None:
    uow.set_fact("reached", "yes")
    uow.add(row)
    pytest.fail("a second row of one token was taken")


def test_a_broken_constraint_shows_at_once_and_undoes_the_unit_of_work(store: Store) -> None:
    with store.begin() as uow:
        uow.add(Agent(name="eva", token_sha256="t", added_at=NOW))
    with pytest.raises(IntegrityError, match="UNIQUE"), store.begin() as uow:
        try_to_add(uow, Agent(name="max", token_sha256="t", added_at=NOW))
    with store.reading() as uow:
        assert [agent.name for agent in uow.all(Agent)] == ["eva"]
        assert uow.fact("reached") is None


def test_a_row_cannot_refer_to_what_is_not_there(store: Store) -> None:
    with pytest.raises(IntegrityError, match="FOREIGN KEY"), store.begin() as uow:
        uow.add(Link(peer="nobody", switch="paused", version=1))


def test_reading_sees_one_moment_and_neither_waits_for_a_writer_nor_stops_one(store: Store) -> None:
    with store.begin() as uow:
        uow.set_fact("a", "1")
    with store.reading() as reader:
        assert reader.fact("a") == "1"
        with store.begin() as writer:
            writer.set_fact("a", "2")
            with store.reading() as other:
                assert other.fact("a") == "1"
        reader.session.expire_all()
        assert reader.fact("a") == "1"
    assert keys(store) == ["a"]


def test_the_file_and_its_companions_are_for_their_owner_only(path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(path)
        with store.begin() as uow:
            uow.set_fact("a", "1")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        store.close()
    finally:
        os.umask(before)
    assert modes == {"governor.db": 0o600, "governor.db-wal": 0o600, "governor.db-shm": 0o600}


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    Store(path).close()
    path.chmod(0o644)
    Store(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_commit_is_on_the_disk_before_it_is_reported(store: Store) -> None:
    with store.reading() as uow:
        connection = uow.session.connection()
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA secure_delete").scalar() == 1


@pytest.mark.parametrize("name", ["a b", "100%", "what?x=1#y", "ü"])
def test_the_path_may_hold_any_character(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    Store(tmp_path / name / "governor.db").close()
    assert (tmp_path / name / "governor.db").stat().st_size > 0


async def test_run_works_off_the_event_loop_and_one_at_a_time(store: Store) -> None:
    threads: list[str] = []
    inside: list[int] = []

    def work(n: int, *, extra: str = "") -> str:
        threads.append(threading.current_thread().name)
        inside.append(n)
        with store.begin() as uow:
            uow.set_fact(f"k{n}", extra)
            assert inside[-1] == n
        return f"{n}{extra}"

    assert await asyncio.gather(*(store.run(work, n, extra="!") for n in range(10))) == [
        f"{n}!" for n in range(10)
    ]
    assert len(set(threads)) == 1
    assert threads[0] != threading.current_thread().name


async def test_run_hands_the_exception_on(store: Store) -> None:
    def work() -> None:
        with store.begin() as uow:
            uow.set_fact("a", "1")
            raise StoreError

    with pytest.raises(StoreError):
        await store.run(work)
    assert keys(store) == []


async def test_a_cancelled_wait_does_not_tear_the_commit_under_way(store: Store) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with store.begin() as uow:
            uow.set_fact("a", "1")
            begun.set()
            assert go_on.wait(30)
            uow.set_fact("b", "1")

    task = asyncio.create_task(store.run(work))
    await asyncio.to_thread(begun.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.to_thread(store.close)
    with closing(sqlite3.connect(store.path)) as raw:
        assert raw.execute("SELECT key FROM host_state ORDER BY key").fetchall() == [("a",), ("b",)]


async def test_a_cancelled_wait_does_not_take_back_what_waits_its_turn(store: Store) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold_the_writer() -> None:
        begun.set()
        assert go_on.wait(30)

    def work() -> None:
        with store.begin() as uow:
            uow.set_fact("a", "1")

    holding = asyncio.create_task(store.run(hold_the_writer))
    await asyncio.to_thread(begun.wait, 30)
    queued = asyncio.create_task(store.run(work))
    await asyncio.sleep(0)  # one turn of the loop, in which it is handed to the writer
    queued.cancel()
    go_on.set()
    await holding
    await store.run(lambda: None)  # behind it in the line
    assert keys(store) == ["a"]


def test_rows_stay_usable_after_the_unit_of_work(store: Store) -> None:
    def make(uow: UnitOfWork) -> Peer:
        peer = Peer(name="eva-host", state="offered", url="https://eva", agents=["eva"], paired_at=NOW)
        uow.add(peer)
        return peer

    with store.begin() as uow:
        peer = make(uow)
    assert (peer.name, peer.agents) == ("eva-host", ["eva"])
