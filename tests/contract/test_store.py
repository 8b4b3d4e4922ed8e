"""The store against a real file, real processes, and the ways in which a disk lets one down."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from governor.errors import StoreError
from governor.store.tables import Agent, HostState, Link, Peer
from governor.store.unit_of_work import Store, UnitOfWork

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)

OPENING = "import sys; from pathlib import Path; from governor.store.unit_of_work import Store\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governor.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


def start(code: str, path: Path) -> subprocess.Popen[str]:
    """Run code in a process of its own; it finds the file in `sys.argv[1]`."""
    return subprocess.Popen(
        [sys.executable, "-c", OPENING + code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@contextmanager
def killed_after(process: subprocess.Popen[str], lines: int) -> Iterator[None]:
    """Read so many lines of its output, run the block, then kill it as no handler can stop."""
    assert process.stdout is not None
    for _ in range(lines):
        assert process.stdout.readline() != "", process.communicate()[1]
    try:
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)


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


def test_an_exception_undoes_the_whole_unit_of_work(store: Store) -> None:
    with pytest.raises(RuntimeError), store.begin() as uow:
        uow.set_fact("a", "1")
        uow.add(Agent(name="eva", added_at=NOW))
        raise RuntimeError
    assert keys(store) == []


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


def test_processes_that_write_at_once_wait_for_each_other(store: Store, path: Path) -> None:
    code = """
store = Store(Path(sys.argv[1]))
for _ in range(30):
    with store.begin() as uow:
        uow.set_fact("n", str(int(uow.fact("n") or 0) + 1))
"""
    for process in [start(code, path) for _ in range(3)]:
        finish(process)
    with store.reading() as uow:
        assert uow.fact("n") == "90"


def test_processes_that_make_the_file_at_once_both_succeed(path: Path) -> None:
    code = """
sys.stdin.readline()
Store(Path(sys.argv[1])).close()
"""
    processes = [start(code, path) for _ in range(3)]
    for process in processes:
        finish(process)
    Store(path).close()


def test_killed_in_a_transaction_nothing_of_it_is_there(path: Path) -> None:
    code = """
store = Store(Path(sys.argv[1]))
with store.begin() as uow:
    for n in range(2000):
        uow.set_fact(f"k{n}", "x" * 1000)
    uow.session.flush()
    print("all written, none committed", flush=True)
    sys.stdin.readline()
"""
    with killed_after(start(code, path), lines=1):
        pass
    store = Store(path)
    assert keys(store) == []
    store.close()


def test_killed_at_any_moment_each_transaction_is_there_whole_or_not_at_all(path: Path) -> None:
    code = """
store = Store(Path(sys.argv[1]))
for n in range(1_000_000):
    with store.begin() as uow:
        uow.set_fact(f"{n}-a", "x")
        uow.set_fact(f"{n}-b", "x")
    print(n, flush=True)
"""
    with killed_after(start(code, path), lines=25):
        pass
    store = Store(path)
    found = keys(store)
    store.close()
    numbers = {key.split("-")[0] for key in found}
    assert sorted(f"{n}-{half}" for n in numbers for half in "ab") == found
    assert numbers >= {str(n) for n in range(25)}


def test_held_by_another_process_is_said_and_passes(path: Path) -> None:
    Store(path).close()
    code = """
store = Store(Path(sys.argv[1]))
with store.begin() as uow:
    print("held", flush=True)
    sys.stdin.readline()
"""
    with killed_after(start(code, path), lines=1):
        store = Store(path)  # opening only reads
        on_each_connection(store, "PRAGMA busy_timeout=100")
        with (
            pytest.raises(StoreError, match=r"governor\.db is held by another process; end that"),
            store.begin(),
        ):
            pytest.fail("two writers at once")
        assert keys(store) == []
    with store.begin() as uow:
        uow.set_fact("a", "1")
    assert keys(store) == ["a"]
    store.close()


def on_each_connection(store: Store, pragma: str) -> None:
    store.engine.dispose()
    event.listen(store.engine, "connect", lambda raw, _record: raw.execute(pragma))


def write_pairs(store: Store) -> None:
    for n in range(1000):
        with store.begin() as uow:
            uow.set_fact(f"a{n}", "x" * 5000)
            uow.set_fact(f"b{n}", "x" * 5000)


def test_a_full_disk_is_said_loses_nothing_and_passes(path: Path) -> None:
    store = Store(path)
    on_each_connection(store, "PRAGMA max_page_count=80")
    with pytest.raises(StoreError, match=r"governor\.db cannot grow: the disk is full; free some space"):
        write_pairs(store)
    found = keys(store)
    assert found == sorted(f"{half}{n}" for half in "ab" for n in range(len(found) // 2))
    assert len(found) > 2
    store.close()

    store = Store(path)
    with store.begin() as uow:
        uow.set_fact("more", "x" * 50_000)
    assert "more" in keys(store)
    store.close()


def test_a_write_that_the_system_refuses_is_said_and_undone(path: Path) -> None:
    Store(path).close()
    code = """
import resource
from governor.errors import StoreError
store = Store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    with store.begin() as uow:
        uow.set_fact("a", "x" * 1_000_000)
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with store.begin() as uow:
    assert uow.fact("a") is None
    uow.set_fact("b", "1")
"""
    assert "cannot be read or written; check the disk's health, space" in finish(start(code, path))
    store = Store(path)
    assert keys(store) == ["b"]
    store.close()


def test_a_file_that_is_no_database_is_said_and_left_alone(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(
        StoreError, match=r"governor\.db is not a database; stop the governor and restore a backup"
    ):
        Store(path)
    assert path.read_bytes() == b"Dear diary, " * 1000


def test_a_damaged_file_is_said_at_the_start(path: Path) -> None:
    store = Store(path)
    with store.begin() as uow:
        for n in range(300):
            uow.set_fact(f"k{n}", "x" * 1000)
    store.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(os.urandom(8192))
    with pytest.raises(StoreError, match=r"is damaged.* stop the governor and restore a backup"):
        Store(path)


def test_damage_met_while_running_is_said(path: Path) -> None:
    store = Store(path)
    with store.begin() as uow:
        for n in range(300):
            uow.set_fact(f"k{n}", "x" * 1000)
    store.engine.dispose()  # a checkpoint: all is in the main file
    with path.open("r+b") as file:
        for page in range(4, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"\xff" * 64)
    with pytest.raises(StoreError, match="is damaged; stop the governor and restore a backup"):
        keys(store)
    store.close()


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened: No such file or directory; check its folder"):
        Store(tmp_path / "none" / "governor.db")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter, as pytest's own may not be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("folder", "file", "message"),
    [
        (0o500, None, "cannot be opened: Permission denied; check its folder and owner"),
        (0o500, 0o600, "cannot be written; check the owner and permissions of it and its folder"),
        (0o700, 0o000, None),  # its owner may open it to himself again
    ],
)
def test_a_folder_that_may_not_be_written_is_said(
    open_folder: Path, folder: int, file: int | None, message: str | None
) -> None:
    home = open_folder / "home"
    home.mkdir()
    path = home / "governor.db"
    if file is not None:
        Store(path).close()
        path.chmod(file)
    home.chmod(folder)
    code = """
import os
import alembic.command
from governor.errors import StoreError
import sqlalchemy.dialects.sqlite
os.chdir(Path(sys.argv[1]).parent)
if os.getuid() == 0:
    os.chown(".", 65534, 65534)
    if Path("governor.db").exists():
        os.chown("governor.db", 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
try:
    Store(Path("governor.db"))
except StoreError as error:
    print(error)
"""
    try:
        out = finish(start(code, path))
    finally:
        home.chmod(0o700)
    assert (message in out) if message else (out == ""), out


def test_the_store_is_closed_after_an_opening_that_failed(path: Path) -> None:
    path.write_bytes(b"no database at all")
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        with pytest.raises(StoreError):
            Store(path)
    after = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    assert after == before


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


def test_an_unknown_trouble_is_one_clear_error_too(store: Store) -> None:
    with (
        pytest.raises(StoreError, match="cannot be used: no such table: nonsense; run `governor doctor`"),
        store.begin() as uow,
    ):
        uow.session.connection().exec_driver_sql("SELECT * FROM nonsense")


def test_rows_stay_usable_after_the_unit_of_work(store: Store) -> None:
    def make(uow: UnitOfWork) -> Peer:
        peer = Peer(name="eva-host", state="offered", url="https://eva", agents=["eva"], paired_at=NOW)
        uow.add(peer)
        return peer

    with store.begin() as uow:
        peer = make(uow)
    assert (peer.name, peer.agents) == ("eva-host", ["eva"])
