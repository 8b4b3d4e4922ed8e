"""The store among other processes, on full and damaged disks, and killed at the worst moment."""

import multiprocessing
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from sqlalchemy import event

from governor.errors import StoreError
from governor.store.tables import HostState
from governor.store.unit_of_work import Store

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["alembic.command", "governor.store.unit_of_work", "pytest"])

Work = Callable[[Path, Connection], None]
"""What another process does with the file; it talks through the connection."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "governor.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path)
    yield opened
    opened.close()


@contextmanager
def elsewhere(work: Work, path: Path) -> Iterator[tuple[BaseProcess, Connection]]:
    """Run work in a process of its own; if it is still there after the block, kill it."""
    ours, theirs = processes.Pipe()
    process = processes.Process(target=work, args=(path, theirs))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()  # SIGKILL: no handler of it runs
        process.join(60)
        ours.close()


def heard(connection: Connection) -> object:
    assert connection.poll(60), "the other process says nothing"
    return connection.recv()


def all_succeed(work: Work, path: Path, many: int) -> None:
    with ExitStack() as stack:
        started = [stack.enter_context(elsewhere(work, path)) for _ in range(many)]
        for _, connection in started:
            connection.send("go")
        for process, _ in started:
            process.join(60)
            assert process.exitcode == 0


def keys(store: Store) -> list[str]:
    with store.reading() as uow:
        return sorted(row.key for row in uow.all(HostState))


def count_to_thirty(path: Path, connection: Connection) -> None:
    store = Store(path)
    connection.recv()
    for _ in range(30):
        with store.begin() as uow:
            uow.set_fact("n", str(int(uow.fact("n") or 0) + 1))


def test_processes_that_write_at_once_wait_for_each_other(store: Store, path: Path) -> None:
    all_succeed(count_to_thirty, path, many=3)
    with store.reading() as uow:
        assert uow.fact("n") == "90"


def open_once(path: Path, connection: Connection) -> None:
    connection.recv()
    Store(path).close()


def test_processes_that_make_the_file_at_once_all_succeed(path: Path) -> None:
    all_succeed(open_once, path, many=3)
    assert not list(path.parent.glob("*.before-*")), "one made it, the others took it as it was"
    Store(path).close()


def write_and_wait(path: Path, connection: Connection) -> None:
    with Store(path).begin() as uow:
        for n in range(300):
            uow.add(
                HostState(key=f"k{n}", value="x" * 20_000)
            )  # more than the cache holds: some is on the disk
        connection.send("all written, none committed")
        connection.recv()


def test_killed_in_a_transaction_nothing_of_it_is_there(path: Path) -> None:
    with elsewhere(write_and_wait, path) as (_, connection):
        heard(connection)
    store = Store(path)
    assert keys(store) == []
    store.close()


def write_pairs_for_ever(path: Path, connection: Connection) -> None:
    store = Store(path)
    for n in count():
        with store.begin() as uow:
            uow.set_fact(f"{n}-a", "x")
            uow.set_fact(f"{n}-b", "x")
        connection.send(n)


def test_killed_at_any_moment_each_transaction_is_there_whole_or_not_at_all(path: Path) -> None:
    with elsewhere(write_pairs_for_ever, path) as (_, connection):
        committed = {heard(connection) for _ in range(25)}
    store = Store(path)
    found = keys(store)
    store.close()
    numbers = {int(key.split("-")[0]) for key in found}
    assert sorted(f"{n}-{half}" for n in numbers for half in "ab") == found
    assert numbers >= committed == set(range(25))


def hold(path: Path, connection: Connection) -> None:
    with Store(path).begin():
        connection.send("held")
        connection.recv()


def test_held_by_another_process_is_said_and_passes(path: Path) -> None:
    Store(path).close()
    with elsewhere(hold, path) as (_, connection):
        heard(connection)
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


def write_too_much(path: Path, connection: Connection) -> None:
    store = Store(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    try:
        with store.begin() as uow:
            uow.set_fact("a", "x" * 1_000_000)
    except StoreError as error:
        connection.send(str(error))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with store.begin() as uow:
        uow.set_fact("b", "1")


def test_a_write_that_the_system_refuses_is_said_and_undone(path: Path) -> None:
    Store(path).close()
    with elsewhere(write_too_much, path) as (process, connection):
        assert "cannot be read or written; check the disk's health, space" in str(heard(connection))
        process.join(60)
        assert process.exitcode == 0
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


def open_as_nobody(path: Path, connection: Connection) -> None:
    """Open as a user who owns file and folder; root, who may do anything, becomes one first."""
    with tempfile.TemporaryDirectory() as folder:
        Store(Path(folder) / "governor.db").close()  # loads what that user may not be able to read
    os.chdir(path.parent)
    if os.getuid() == 0:
        for file in (path.parent, path):
            if file.exists():
                os.chown(file, 65534, 65534)
        os.setegid(65534)
        os.seteuid(65534)
    try:
        Store(Path("governor.db"))
    except StoreError as error:
        connection.send(str(error))
    else:
        connection.send(None)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter, as pytest's own may not be."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("folder", "file", "message"),
    [
        (0o500, None, "governor.db cannot be opened: Permission denied; check its folder and owner."),
        (
            0o500,
            0o600,
            "governor.db cannot be written; check the owner and permissions of it and its folder.",
        ),
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
    try:
        with elsewhere(open_as_nobody, path) as (_, connection):
            assert heard(connection) == message
    finally:
        home.chmod(0o700)


def test_the_store_is_closed_after_an_opening_that_failed(path: Path) -> None:
    path.write_bytes(b"no database at all")
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        with pytest.raises(StoreError):
            Store(path)
    after = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    assert after == before


def test_an_unknown_trouble_is_one_clear_error_too(store: Store) -> None:
    with (
        pytest.raises(StoreError, match="cannot be used: no such table: nonsense; run `governor doctor`"),
        store.begin() as uow,
    ):
        uow.session.connection().exec_driver_sql("SELECT * FROM nonsense")
