"""What a governor cannot start with: one clear line, the right exit code, and nothing changed."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.ports import free_ports
from tests.real_processes import Ended, RealSide, run_in_turn

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RealSide:
    """A home that is in order."""
    return RealSide("max-host", "max", tmp_path_factory.mktemp("bad") / "max", *free_ports(2)).make()


def copied(made: RealSide, home: Path) -> RealSide:
    shutil.copytree(made.home, home)
    return RealSide(made.name, made.agent, home, made.local_port, made.peer_port)


@pytest.fixture
def side(made: RealSide, tmp_path: Path) -> RealSide:
    """A copy of it, to be spoilt."""
    return copied(made, tmp_path / "max")


def content(home: Path) -> dict[str, bytes]:
    """Return what lies in a home, by name; of a database its rows."""
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.name not in {"governor.lock", "governor.db-wal", "governor.db-shm"}:
            found[str(path.relative_to(home))] = _rows(path) if path.suffix == ".db" else path.read_bytes()
    return found


def _rows(path: Path) -> bytes:
    try:
        with contextlib.closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump()).encode()
    except sqlite3.Error:
        return path.read_bytes()


def check(ended: Ended, code: int, *words: str) -> None:
    """It ended with this code and one line that holds these words."""
    assert ended.code == code, ended.err
    assert len(ended.lines) == 1, ended.err
    [line] = ended.lines
    assert line.startswith("governor: ")
    assert [word for word in words if word not in line] == []
    assert ended.out == ""


def refused(side: RealSide, code: int, *words: str) -> None:
    """Run the governor: it is refused as `check` says and leaves the home as it was."""
    before = content(side.home)
    check(side.run_to_end(), code, *words)
    assert content(side.home) == before
    assert not side.socket.is_socket()


def settings(text: str) -> Callable[[RealSide], None]:
    """Return what gives a home these settings."""

    def spoil(side: RealSide) -> None:
        named = "" if "name =" in text else 'name = "max-host"\n'
        (side.home / "governor.toml").write_bytes((named + text).encode(errors="surrogateescape"))

    return spoil


def key(suffix: str, how: Callable[[Path], None]) -> Callable[[RealSide], None]:
    """Return what spoils a key file."""

    def spoil(side: RealSide) -> None:
        [path] = (side.home / "keys").glob(f"*{suffix}")
        how(path)

    return spoil


def database(how: Callable[[Path], None]) -> Callable[[RealSide], None]:
    """Return what spoils the database."""

    def spoil(side: RealSide) -> None:
        for companion in side.home.glob("governor.db-*"):
            companion.unlink()
        how(side.database)

    return spoil


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(8192))


def _of_another(path: Path) -> None:
    path.write_text("whsk_" + "A" * 43 + "=\n" if path.suffix == ".sign" else "-----BEGIN NOTHING-----\n")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _damaged_pages(path: Path) -> None:
    with path.open("r+b") as file:
        for offset in range(8192, path.stat().st_size, 4096):
            file.seek(offset)
            file.write(os.urandom(2048))


def _of_another_program(path: Path) -> None:
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE bookmark (url TEXT)")


def _newer(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as newer, newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")


def _in_the_way(make: Callable[[Path], None]) -> Callable[[RealSide], None]:
    return lambda side: make(side.socket)


def _damaged_canary(side: RealSide) -> None:
    (side.home / "canaries").mkdir()
    (side.home / "canaries" / "canary-1.json").write_text('{"value": "xK9-mQ2-pL7"')


Case = tuple[Callable[[RealSide], None], int, tuple[str, ...]]

CASES: dict[str, Case] = {
    "no TOML": (settings("name = max-host\n"), 2, ("governor.toml", "line 1")),
    "not UTF-8": (settings("\udcff = 1\n"), 2, ("governor.toml", "not valid TOML")),
    "unknown setting": (settings("lisen = '127.0.0.1:1'\n"), 2, ("lisen", "Did you mean listen?")),
    "unknown in a section": (settings("[limits]\nmessage = 5\n"), 2, ("limits.messages?",)),
    "no number": (settings("[limits]\nmessages = 'many'\n"), 2, ("limits.messages", "integer")),
    "too large": (settings("[limits]\nmessages = 1000000\n"), 2, ("limits.messages", "10000")),
    "no port": (settings("listen = '127.0.0.1:99999'\n"), 2, ("listen", "65535")),
    "not our address": (settings("listen = '192.0.2.1:18802'\n"), 2, ("192.0.2.1:18802", "governor.toml")),
    "local API for all": (
        settings("[local_api]\nlisten = '0.0.0.0:18801'\n"),
        2,
        ("local_api.listen", "loopback"),
    ),
    "proxy for all": (settings("tls = 'proxy'\nlisten = '0.0.0.0:18802'\n"), 2, ("proxy", "loopback")),
    "another name": (settings("name = 'eva-host'\n"), 2, ("max-host", "eva-host")),
    "no URL": (settings("[reader]\nbase_url = 'localhost'\n"), 2, ("reader.base_url",)),
    "a group, no token": (settings("[supervision.telegram]\nchat_id = -5\n"), 2, ("token_file",)),
    "a token that is not there": (
        settings("[supervision.telegram]\nchat_id = -5\ntoken_file = '/no/such/file'\n"),
        2,
        ("/no/such/file",),
    ),
    "a secret that is a word": (
        settings("[secrets]\ncanaries = ['production']\n"),
        2,
        ("[secrets] canaries", "as plain as a word", "longer secret"),
    ),
    "a secret that is not there": (
        settings("[secrets]\nenvironment = ['NOT_SET_HERE']\n"),
        2,
        ("NOT_SET_HERE", "is not set", "[secrets] environment"),
    ),
    "a secret in place of its name": (
        settings("[secrets]\nenvironment = ['xK9-mQ2-pL7']\n"),
        2,
        ("secrets.environment.0", "pattern"),
    ),
    "a damaged canary": (_damaged_canary, 2, ("canaries/canary-1.json", "governor canary remove canary-1")),
    "no database": (database(Path.unlink), 2, ("no database", "governor init")),
    "garbage for a database": (database(_garbage), 1, ("governor.db", "is not a database")),
    "a damaged database": (database(_damaged_pages), 1, ("governor.db", "is damaged")),
    "a database of another program": (database(_of_another_program), 1, ("governor.db", "another program")),
    "a newer database": (database(_newer), 1, ("governor.db", "newer governor")),
    "a file where the socket should be": (_in_the_way(Path.touch), 2, ("governor.sock", "in the way")),
    "a folder where the socket should be": (_in_the_way(Path.mkdir), 2, ("governor.sock", "in the way")),
    **{
        f"{suffix} {how.__name__}": (key(suffix, how), 2, ("/keys/", suffix))
        for suffix in (".sign", ".pem")
        for how in (Path.unlink, _garbage, _of_another, _folder)
    },
}


@pytest.fixture(scope="module")
def endings(made: RealSide, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Ended, bool]]:
    """How each case ended, and whether its home was left as it was."""
    folder = tmp_path_factory.mktemp("cases")
    homes, before = [], []
    for number, (spoil, _code, _words) in enumerate(CASES.values()):
        homes.append(folder / str(number))
        spoil(copied(made, homes[-1]))
        before.append(content(homes[-1]))
    ended = run_in_turn(homes)
    same = [content(home) == old for home, old in zip(homes, before, strict=True)]
    return dict(zip(CASES, zip(ended, same, strict=True), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_used_is_named_and_left_alone(
    endings: dict[str, tuple[Ended, bool]], name: str
) -> None:
    ended, same = endings[name]
    _spoil, code, words = CASES[name]
    check(ended, code, *words)
    assert same


def test_a_home_in_order_runs(side: RealSide) -> None:
    """Without this, all could be refused for another reason."""
    side.start()
    side.signal(signal.SIGTERM)
    assert side.exit_code() == 0


def test_an_unknown_setting_in_the_environment(side: RealSide) -> None:
    side.extra = {"GOVERNOR_LIMITS__MESAGES": "5"}
    refused(side, 2, "limits.mesages", "Did you mean limits.messages?")


@pytest.mark.parametrize("which", ["peer_port", "local_port"])
def test_a_taken_port(side: RealSide, which: str) -> None:
    port = getattr(side, which)
    with socket.create_server(("127.0.0.1", port)) as owner:
        refused(side, 2, f"Port {port}", "taken")
        socket.create_connection(("127.0.0.1", port)).close()
        owner.accept()[0].close()


def test_no_home_and_a_socket_of_somebody_who_listens(side: RealSide, tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("dear diary")
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(str(side.socket))
        owner.listen()
        nothing, diary, used = run_in_turn([tmp_path / "none", tmp_path / "diary", side.home])
        check(nothing, 2, "governor init")
        check(diary, 2, "governor init")
        check(used, 2, str(side.socket), "in use")
        assert side.socket.is_socket()
    assert not (tmp_path / "none").exists()


def test_a_database_that_another_process_holds(side: RealSide) -> None:
    with contextlib.closing(sqlite3.connect(side.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ended = side.run_to_end()
        other.execute("ROLLBACK")
    check(ended, 1, "held by another process")
    assert side.rows("SELECT count(*) FROM audit_record WHERE event = 'started'") == [(0,)]


def test_no_room_on_the_disk(side: RealSide) -> None:
    side.file_size_limit = 1
    refused(side, 1, str(side.database), "space")


class _Unauthorized(BaseHTTPRequestHandler):
    """A Bot API server that knows no token."""

    def do_POST(self) -> None:
        body = json.dumps({"ok": False, "error_code": 401, "description": "Unauthorized"}).encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bot_api() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Unauthorized) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_bot_token_that_telegram_does_not_know(side: RealSide, bot_api: str) -> None:
    side.set(supervision={"telegram": {"chat_id": -5, "token": "11:WRONG-TOKEN", "base_url": bot_api}})
    ended = side.run_to_end()
    assert (ended.code, len(ended.lines)) == (2, 1)  # after it had started
    assert "@BotFather" in ended.lines[0]
    assert "WRONG-TOKEN" not in ended.err + ended.out
    assert side.rows("SELECT event FROM audit_record ORDER BY seq DESC LIMIT 1") == [("stopped_running",)]
