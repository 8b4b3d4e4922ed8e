"""What an operator does at the command line, in real homes."""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyotp
import pytest
from command_line import Said, Terminal, governor

from governor.audit.verify import verify
from governor.cli.home_making import Wanted, make_home
from governor.clock import SystemClock
from governor.directory.agents import who_is
from governor.errors import CredentialError
from governor.store.tables import AuditRecord, HostKey, Link, OperatorCode
from governor.store.unit_of_work import Row, Store

SCRIPT = Path(sysconfig.get_path("scripts")) / "governor"


@dataclass
class Home:
    """A home with its operator, made by the commands."""

    path: Path
    secret: str = ""

    def run(self, *words: object, stdin: bytes = b"") -> Said:
        return governor(*words, home=self.path, stdin=stdin)

    def must(self, *words: object, stdin: bytes = b"") -> dict[str, Any]:
        said = self.run(*words, "--json", stdin=stdin)
        assert said.code == 0, said
        return said.document

    def code(self) -> str:
        """A code of this moment; that an earlier one was of the same is forgotten."""
        with self.opened() as store, store.begin() as uow:
            row = uow.get(OperatorCode, 1)
            assert row is not None
            row.last_step = 0
        return pyotp.TOTP(self.secret).now()

    def opened(self) -> "Opened":
        return Opened(self.path)

    def rows(self, table: type[Row]) -> list[Row]:
        with self.opened() as store, store.reading() as uow:
            return uow.all(table)

    def events(self) -> list[str]:
        return [row.event for row in sorted(self.rows(AuditRecord), key=lambda row: row.seq)]

    def token(self, agent: str) -> str:
        return str(json.loads((self.path / f"credentials/{agent}.json").read_text())["token"])

    def speaks(self, token: str) -> str | None:
        with self.opened() as store, store.reading() as uow:
            try:
                return who_is(uow, token)
            except CredentialError:
                return None


class Opened:
    def __init__(self, path: Path) -> None:
        self.store = Store(path / "governor.db")

    def __enter__(self) -> Store:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.store.close()


@pytest.fixture(autouse=True)
def one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GOVERNOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOVERNOR_LOOPBACK_PEERS", "true")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Home]:
    def make(name: str = "max-host", agent: str = "max", *more: str) -> Home:
        home = Home(tmp_path / name)
        home.must("init", "--name", name, "--agent", agent, *more)
        home.secret = home.must("operator", "enroll")["secret"]
        return home

    return make


@pytest.fixture
def home(make: Callable[..., Home]) -> Home:
    return make()


def paired(make: Callable[..., Home]) -> tuple[Home, Home]:
    one, other = make(), make("eva-host", "eva", "--listen", "127.0.0.1:18812")
    line = other.must("pair", "accept", one.must("pair", "offer")["line"])["line"]
    one.must("pair", "accept", "-", stdin=line.encode())
    one.must("pair", "confirm", "eva-host", "--code", one.code())
    other.must("pair", "confirm", "max-host", "--code", other.code())
    return one, other


def snapshot(path: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(entry.relative_to(path)): (
            entry.stat().st_mode & 0o777,
            entry.read_bytes() if entry.is_file() and not entry.name.startswith("governor.db") else b"",
        )
        for entry in sorted(path.rglob("*"))
        if not entry.name.endswith(("-wal", "-shm"))
    }


# --- init ---


def test_init_makes_a_whole_home_for_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home")
    before = os.umask(0o777)
    try:
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep").chmod(0o755)
        said = home.run("init", "--name", "max-host", "--agent", "max", "--agent", "mia", "--agent", "max")
    finally:
        os.umask(before)
    assert said.code == 0, said.err
    assert said.out == (
        f"Made max-host in {home.path}.\n"
        f"Added agent max. Its credential: {home.path}/credentials/max.json\n"
        f"Added agent mia. Its credential: {home.path}/credentials/mia.json\n"
    )
    assert "governor operator enroll" in said.err
    found = snapshot(home.path)
    assert {mode for name, (mode, _) in found.items() if "." in name} == {0o600}
    assert {mode for name, (mode, _) in found.items() if "." not in name} == {0o700}
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.events() == ["host_made", "agent_added", "agent_added", "agent_joined", "agent_joined"]
    (key,) = home.rows(HostKey)
    assert sorted(path.name for path in (home.path / "keys").iterdir()) == [
        f"{key.fingerprint}.pem",
        f"{key.fingerprint}.sign",
    ]
    assert home.speaks(home.token("mia")) == "mia"


def test_a_second_init_changes_nothing_and_says_so(home: Home) -> None:
    before, records = snapshot(home.path), home.rows(AuditRecord)
    said = home.run("init", "--name", "max-host", "--agent", "max")
    assert (said.code, said.out) == (0, f"max-host lives in {home.path} already.\nNothing was changed.\n")
    assert snapshot(home.path) == before
    assert [row.hash for row in home.rows(AuditRecord)] == [row.hash for row in records]
    assert home.must("init", "--name", "max-host", "--agent", "max")["changed"] is False


def test_a_second_init_adds_a_further_agent(home: Home) -> None:
    document = home.must("init", "--name", "max-host", "--agent", "max", "--agent", "mia")
    assert (document["changed"], list(document["credentials"])) == (True, ["mia"])


def test_a_second_init_leaves_an_agent_of_another_user_alone(home: Home) -> None:
    home.must("agent", "add", "mia", "--grant")
    assert home.must("init", "--name", "max-host", "--agent", "mia")["changed"] is False
    assert not (home.path / "credentials/mia.json").exists()


def test_listen_and_url_become_settings(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.must("init", "--name", "m", "--listen", "100.64.0.7:18802", "--url", "https://max.example:18802")
    text = (home.path / "governor.toml").read_text()
    assert '\nlisten = "100.64.0.7:18802"\n' in text
    assert '\nurl = "https://max.example:18802"\n' in text
    home.must("init", "--name", "m", "--listen", "100.64.0.7:18802")
    said = home.run("init", "--name", "m", "--listen", "100.64.0.8:18802")
    assert said.code == 2
    assert (
        f"listen is '100.64.0.7:18802' here already. To change it, edit {home.path}/governor.toml."
        in said.err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--name", "other"), "is the home of 'max-host'. A governor of another name needs another one"),
        (("--name", "Max"), "is no name for a governor: use 1 to 32 of a-z, 0-9 and '-'."),
        (("--name", "max-host", "--agent", "operator"), "'operator' is reserved"),
        (("--name", "max-host", "--agent", "a b"), "is no name for an agent"),
        (("--name", "max-host", "--listen", "nonsense"), "is no address to listen on"),
        (("--name", "max-host", "--listen", "1.2.3.4:70000"), "is no address to listen on"),
        (("--name", "max-host", "--url", "http://max.example"), "is no URL for peers"),
        (("--name", "max-host", "--url", 'https://x"\ny'), "is no URL for peers"),
    ],
)
def test_a_wrong_init_changes_nothing(home: Home, words: tuple[str, ...], message: str) -> None:
    before = snapshot(home.path)
    said = home.run("init", *words)
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert snapshot(home.path) == before


def test_a_wrong_init_makes_no_home(tmp_path: Path) -> None:
    assert governor("init", "--name", "m", "--listen", "nonsense", home=tmp_path / "h").code == 2
    assert governor("init", "--name", "m", "--url", "ftp://x", home=tmp_path / "h").code == 2
    assert not (tmp_path / "h").exists()


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "Documents").mkdir(mode=0o755)
    (tmp_path / "Documents/letter.txt").write_text("dear")
    said = governor("init", "--name", "m", home=tmp_path / "Documents")
    assert said.code == 2
    assert "holds other things (letter.txt)" in said.err
    assert (tmp_path / "Documents").stat().st_mode & 0o777 == 0o755
    assert [path.name for path in (tmp_path / "Documents").iterdir()] == ["letter.txt"]


def test_the_folder_of_an_agents_credentials_becomes_a_home(tmp_path: Path) -> None:
    (tmp_path / "h/credentials").mkdir(parents=True)
    (tmp_path / "h/credentials/bob.json").write_text("{}")
    assert governor("init", "--name", "m", home=tmp_path / "h").code == 0
    assert (tmp_path / "h/credentials/bob.json").read_text() == "{}"


@pytest.mark.parametrize("room", [0, 1_000, 4_096, 20_000, 80_000, 150_000])
def test_an_init_that_ran_out_of_disk_is_completed_by_the_next(tmp_path: Path, room: int) -> None:
    home = Home(tmp_path / "h")
    done = subprocess.run(
        [SCRIPT, "--home", home.path, "init", "--name", "max-host", "--agent", "max"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (1, 2), done.stdout
    assert done.stderr.count("\n") == 1
    assert "bug" not in done.stderr
    assert home.run("init", "--name", "max-host", "--agent", "max").code == 0
    assert home.events() == ["host_made", "agent_added", "agent_joined"]
    assert home.speaks(home.token("max")) == "max"


def test_an_init_stopped_by_a_bad_environment_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path / "h")
    monkeypatch.setenv("GOVERNOR_LISTN", "x")
    said = home.run("init", "--name", "max-host")
    assert said.code == 2
    assert "Unknown setting listn in the environment. Did you mean listen?" in said.err
    monkeypatch.delenv("GOVERNOR_LISTN")
    assert home.run("init", "--name", "max-host").code == 0


def test_an_agent_whose_credential_cannot_be_written_is_not_added(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.path.mkdir()
    (home.path / "credentials").write_text("in the way")
    said = home.run("init", "--name", "max-host", "--agent", "max")
    assert said.code == 2
    assert "credentials: " in said.err
    assert list((home.path / "keys").iterdir()) == []
    (home.path / "credentials").unlink()
    assert home.must("init", "--name", "max-host", "--agent", "max")["changed"] is True


def test_settings_and_database_of_two_governors_do_not_mix(home: Home) -> None:
    (home.path / "governor.toml").write_text('name = "other"\n')
    said = home.run("init", "--name", "other")
    assert said.code == 2
    assert "is of max-host, its governor.toml of other" in said.err


def test_two_inits_at_once_make_one_home(tmp_path: Path) -> None:
    words = [
        str(SCRIPT),
        "--home",
        str(tmp_path / "h"),
        "init",
        "--name",
        "max-host",
        "--agent",
        "max",
        "--json",
    ]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
    documents = [json.loads(process.communicate(timeout=120)[0]) for process in both]
    assert sorted(document["changed"] for document in documents) == [False, True]
    assert Home(tmp_path / "h").events() == ["host_made", "agent_added", "agent_joined"]


def test_an_init_waits_for_the_one_under_way(tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    folder = os.open(home, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    thread = threading.Thread(target=make_home, args=(home, Wanted("max-host"), SystemClock()))
    thread.start()
    thread.join(1.5)
    assert thread.is_alive()
    assert list(home.iterdir()) == []
    os.close(folder)
    thread.join(60)
    assert governor("init", "--name", "max-host", "--json", home=home).document["changed"] is False


# --- agents ---


def test_an_agent_of_this_user_has_its_credential_at_once(home: Home) -> None:
    said = home.run("agent", "add", "mia")
    assert said.out == f"Added mia. Its credential: {home.path}/credentials/mia.json\n"
    assert home.speaks(home.token("mia")) == "mia"
    said = home.run("agent", "add", "mia")
    assert (said.code, "already" in said.out) == (0, True)


def test_an_agent_of_another_user_gets_a_grant(home: Home) -> None:
    said = home.run("agent", "add", "mia", "--grant")
    assert said.out.startswith("bgjoin1.")
    assert said.out.count("\n") == 1
    assert "governor agent join GRANT" in said.err
    assert [
        (row["agent"], row["joined"], bool(row["credential"])) for row in home.must("agent", "list")["agents"]
    ] == [
        ("max", True, True),
        ("mia", False, False),
    ]
    assert "not yet joined" in home.run("agent", "list").out


def test_a_new_token_ends_the_old_one(home: Home) -> None:
    old = home.token("max")
    grant = home.run("agent", "token", "max", "--grant")
    assert home.speaks(old) == "max"  # until the grant is used
    assert "The old token is good until then" in grant.err
    assert "The old token is dead" in home.run("agent", "token", "max").out
    assert home.speaks(old) is None
    assert home.speaks(home.token("max")) == "max"


def test_a_removed_agent_is_gone_with_its_credential(home: Home) -> None:
    old = home.token("max")
    assert home.run("agent", "remove", "max").out == "Removed max; its token is dead.\n"
    assert home.speaks(old) is None
    assert not (home.path / "credentials/max.json").exists()
    assert "governor agent add NAME" in home.run("agent", "list").out
    home.must("agent", "add", "max")
    assert home.speaks(old) is None


# --- pairing ---


def test_pairing_shows_both_sides_the_same_two_phrases(make: Callable[..., Home]) -> None:
    one, other = make(), make("eva-host", "eva", "--listen", "127.0.0.1:18812")
    offer = one.run("pair", "offer")
    assert offer.out.count("\n") == 1  # so that it can be piped on
    assert "governor pair accept LINE" in offer.err
    here = other.must("pair", "accept", "-", stdin=offer.out.encode())
    there = one.must("pair", "accept", here["line"])
    assert (here["peer"], here["new"], there["peer"]) == ("max-host", True, "eva-host")
    assert (here["ours"], here["theirs"]) == (there["theirs"], there["ours"])
    said = other.run("pair", "accept", offer.out)
    assert f"phrase of eva-host, this governor:  {here['ours']}" in said.out
    assert f"phrase of max-host, the other one:  {here['theirs']}" in said.out
    assert "governor pair confirm max-host --code N" in said.out
    assert here["line"][:100] in said.out
    assert here["theirs"] in other.run("peers").out


def test_confirming_takes_a_code_and_only_then_the_link_can_open(make: Callable[..., Home]) -> None:
    one, other = make(), make("eva-host", "eva", "--listen", "127.0.0.1:18812")
    one.must("pair", "accept", other.must("pair", "offer")["line"])
    said = one.run("go", "eva-host", "--code", one.code())
    assert said.code == 3
    assert "governor pair confirm" in said.out
    assert one.run("pair", "confirm", "eva-host").code == 2
    wrong = one.run("pair", "confirm", "eva-host", "--code", "000 000")
    assert (wrong.code, wrong.err) == (3, "governor: Wrong code.\n")
    assert one.must("peers")["peers"][0]["state"] == "offered"
    said = one.run("pair", "confirm", "eva-host", "--code", one.code())
    assert said.code == 0
    assert "governor go eva-host --code N" in said.out
    assert one.must("pair", "confirm", "eva-host")["changed"] is False  # and no code was needed
    assert one.must("go", "eva-host", "--code", one.code())["links"][0]["switch"] == "running"


def test_an_unknown_peer_uses_up_no_code(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    code = one.code()
    for words in (("pair", "confirm", "nobody"), ("go", "nobody")):
        said = one.run(*words, "--code", code)
        assert said.code == 2
        assert "nobody" in said.err
    assert one.run("go", "eva-host", "--code", code).code == 0


def test_a_governor_that_nobody_can_reach_makes_no_offer(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOVERNOR_LOOPBACK_PEERS")
    said = home.run("pair", "offer")
    assert (said.code, said.out) == (2, "")
    assert "No peer can reach https://127.0.0.1:18802. Set url, or listen, in" in said.err


def test_revoke_ends_a_link_and_frees_the_name(make: Callable[..., Home]) -> None:
    one, other = paired(make)
    assert one.run("revoke", "eva-host").out == "Revoked eva-host: the link has ended.\n"
    assert one.must("revoke", "eva-host")["changed"] is False
    assert one.must("peers")["peers"][0] | {"paired_at": ""} == {
        "peer": "eva-host",
        "state": "revoked",
        "agents": ["eva"],
        "url": "https://127.0.0.1:18812",
        "phrase": None,
        "key": None,
        "paired_at": "",
    }
    assert one.run("revoke", "nobody").code == 2
    assert one.must("pair", "accept", other.must("pair", "offer")["line"])["new"] is True


def test_rotate_announces_a_new_key_once(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    document = one.must("rotate")
    assert document["peers"] == ["eva-host"]
    assert {row.fingerprint: row.state for row in one.rows(HostKey)}[document["key"]] == "incoming"
    before = snapshot(one.path / "keys")
    said = one.run("rotate")
    assert said.code == 2
    assert "A rotation is under way" in said.err
    assert snapshot(one.path / "keys") == before


def test_rotate_without_a_peer(home: Home) -> None:
    assert "There is no peer to tell." in home.run("rotate").out


def test_skills_are_for_the_agents_of_confirmed_peers(make: Callable[..., Home], tmp_path: Path) -> None:
    one, _ = paired(make)
    skills = one.must("skills", "install", "--for", "codex", "--dir", tmp_path / "skills")["skills"]
    assert [row["recipient"] for row in skills] == ["eva"]
    one.must("agent", "add", "eva")  # an agent of our own by that name: only the full one is clear
    skills = one.must("skills", "install", "--for", "codex", "--dir", tmp_path / "skills")["skills"]
    assert [row["recipient"] for row in skills] == ["eva@eva-host"]


# --- the brake ---


def test_go_and_stop_move_the_switch_and_are_recorded(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    assert "awaiting" not in one.run("status").out
    bare = one.run("go", "--code", one.code())
    assert bare.code == 3
    assert "a new link needs a GO with its name" in bare.out
    said = one.run("go", "eva-host", "--code", one.code())
    assert (said.code, "eva-host: running, by cli:code" in said.out) == (0, True)
    said = one.run("stop")
    assert (said.code, "eva-host: stopped, by cli" in said.out) == (0, True)
    (link,) = one.must("status")["links"]
    assert (link["peer"], link["switch"], link["cap"], link["watched_for"]) == (
        "eva-host",
        "stopped",
        50,
        None,
    )
    assert one.must("go", "--code", one.code())["links"][0]["opened"] is True
    (link,) = one.must("status")["links"]
    assert 290 < link["watched_for"] <= 300
    assert [event for event in one.events() if event in ("go", "go_refused", "stop")] == [
        "go_refused",
        "go",
        "stop",
        "go",
    ]
    with one.opened() as store, store.reading() as uow:
        assert verify(uow).ok


def test_an_act_with_a_code_is_human_activity_on_every_open_link(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    third = make("tom-host", "tom", "--listen", "127.0.0.1:18813")
    one.must("pair", "accept", third.must("pair", "offer")["line"])
    one.must("go", "eva-host", "--code", one.code())
    before = {row.peer: row.watched_until for row in one.rows(Link)}
    one.must("pair", "confirm", "tom-host", "--code", one.code())
    after = {row.peer: row.watched_until for row in one.rows(Link)}
    assert after["eva-host"] > before["eva-host"]
    assert after["tom-host"] is None


def test_a_code_counts_once(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    code = one.code()
    assert one.run("go", "eva-host", "--code", code).code == 0
    said = one.run("go", "eva-host", "--code", code)
    assert (said.code, said.err) == (3, "governor: This code was used before. Wait for the next one.\n")


def test_nothing_opens_while_a_file_named_stop_lies_in_the_home(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    (one.path / "STOP").touch()
    said = one.run("go", "eva-host", "--code", one.code())
    assert said.code == 3
    assert f"The file {one.path}/STOP says STOP. Remove it, then say GO." in said.out
    document = one.run("go", "eva-host", "--code", one.code(), "--json").document
    assert (document["ok"], document["error"], document["reason"]) == (False, "refused", "cause_persists")
    assert one.must("status")["links"][0]["switch"] != "running"
    (one.path / "STOP").unlink()
    assert one.run("go", "eva-host", "--code", one.code()).code == 0


def test_stop_of_an_unknown_peer_stops_all(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    one.must("go", "eva-host", "--code", one.code())
    said = one.run("stop", "eva")
    assert said.code == 0
    assert "There is no peer 'eva'. Paired: eva-host. So all links were stopped." in said.out
    assert one.must("status")["links"][0]["switch"] == "stopped"


def test_a_stop_that_cannot_be_written_names_the_brake_that_needs_no_database(home: Home) -> None:
    (home.path / "governor.toml").write_text("limts = 3\n")
    said = home.run("stop")
    assert said.code == 2
    assert f"To stop a running governor all the same: touch {home.path}/STOP" in said.err


def test_the_brake_without_a_peer_names_the_next_step(home: Home) -> None:
    for words in (("status",), ("stop",), ("go", "--code", home.code())):
        assert "governor pair offer" in home.run(*words).out


# --- the operator's code ---


def test_enroll_shows_the_secret_once_and_as_a_qr(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.must("init", "--name", "max-host")
    said = governor("operator", "enroll", home=home.path)
    assert "otpauth://totp/bridge-governor:max-host?secret=" in said.out
    assert "\\u2588" in said.out  # blocks, on a terminal that has no other characters than ASCII
    again = home.run("operator", "enroll")
    assert again.code == 2
    assert "governor operator enroll --code N" in again.err
    assert (home.path / "keys/operator.totp").stat().st_mode & 0o777 == 0o600


def test_a_new_secret_needs_a_code_of_the_old_one(home: Home) -> None:
    old = home.secret
    assert home.run("operator", "enroll", "--code", "000000").code == 3
    home.secret = home.must("operator", "enroll", "--code", home.code())["secret"]
    assert home.secret != old
    assert home.run("operator", "enroll", "--code", pyotp.TOTP(old).now()).code == 3
    assert home.must("operator", "enroll", "--code", home.code())["ok"] is True


def test_without_an_enrolled_code_the_next_step_is_named(make: Callable[..., Home]) -> None:
    one, other = make(), make("eva-host", "eva", "--listen", "127.0.0.1:18812")
    fresh = Home(one.path.parent / "fresh")
    fresh.must("init", "--name", "fresh", "--agent", "fay")
    fresh.must("pair", "accept", other.must("pair", "offer")["line"])
    said = fresh.run("pair", "confirm", "eva-host", "--code", "123456")
    assert (said.code, "governor operator enroll" in said.err) == (3, True)


def test_what_is_typed_instead_of_a_code_is_told(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    said = governor("go", "eva-host", home=one.path, stdin=b"now\n", typed=Terminal)
    assert said.code == 2
    assert "The operator's code: governor: That is none: an operator's code has 6 digits." in said.err
    digits = one.code()
    spaced = f"{digits[:3]} {digits[3:]}\n".encode()
    assert governor("go", "eva-host", home=one.path, stdin=spaced, typed=Terminal).code == 0


def test_the_code_is_asked_for_on_a_terminal(make: Callable[..., Home]) -> None:
    one, _ = paired(make)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [SCRIPT, "--home", one.path, "go", "eva-host"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.write(ours, f" {one.code()}\n".encode())
    out, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, err
    assert b"eva-host: running" in out
    assert err == b"The operator's code: "


@pytest.mark.parametrize("code", ["12345", "1234567", "abcdef", "\u0661\u0662\u0663\u0664\u0665\u0666", ""])
def test_what_has_not_the_form_of_a_code_is_no_wrong_try(home: Home, code: str) -> None:
    for _ in range(6):
        said = home.run("go", f"--code={code}")
        assert said.code == 2, said
    assert "code_refused" not in home.events()


def test_a_home_of_another_user_is_not_written(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(home.path, 12345, 12345)
    for words in (("status",), ("agent", "add", "mia"), ("init", "--name", "max-host", "--agent", "mia")):
        said = home.run(*words)
        assert said.code == 2
        assert "sudo -u '#12345' governor" in said.err
    assert not (home.path / "credentials/mia.json").exists()


# --- the log, the daemon ---


def test_audit_as_one_object(home: Home) -> None:
    assert [row["event"] for row in home.must("audit")["records"]] == home.events()
    assert home.run("--version").code == 0
    assert home.must("audit", "verify")["count"] == len(home.events())
    assert json.loads(home.run("audit", "--json", "stats").out)["ok"] is True


@pytest.mark.processes
def test_run_serves_the_agents_of_the_home_until_it_is_told_to_end(tmp_path: Path) -> None:
    home = Home(tmp_path / "h")
    home.must("init", "--name", "max-host", "--agent", "max", "--listen", "127.0.0.1:18822")
    environment = os.environ | {"GOVERNOR_LOCAL_API__LISTEN": "127.0.0.1:18821"}
    assert home.must("status")["running"] is False
    process = subprocess.Popen(
        [sys.executable, "-m", "governor.cli.main", "--home", home.path, "run"],
        env=environment,
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )
    try:
        end = time.monotonic() + 120
        while not home.must("status")["running"]:
            assert time.monotonic() < end
            assert process.poll() is None
        assert "max-host is running." in home.run("status").out
        said = home.run("send", "--to", "eva", "hello")
        assert said.code == 3
        assert "No agent 'eva' is known here." in said.err
        second = subprocess.run(
            [SCRIPT, "--home", home.path, "run"], env=environment, capture_output=True, text=True, check=False
        )
        assert second.returncode == 2
        assert f"process {process.pid}" in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert home.run("send", "--to", "eva", "hello").code == 5
