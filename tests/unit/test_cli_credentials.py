import json
import os
from pathlib import Path

import pytest

from governor.cli.credentials import Credential, Place, load_credential, make_private, save_credential
from governor.cli.failure import Failure

PLACE = Place("/run/g.sock", "127.0.0.1:18801")


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOVERNOR_AGENT", raising=False)


def save(home: Path, *agents: str) -> None:
    for agent in agents:
        save_credential(home, Credential(agent, f"bgt_{agent}", PLACE))


def message(home: Path, who: str | None = None) -> str:
    with pytest.raises(Failure) as failure:
        load_credential(home, who)
    assert failure.value.exit == 2
    return failure.value.message


def test_the_only_credential_is_taken(tmp_path: Path) -> None:
    save(tmp_path, "max")
    assert load_credential(tmp_path, None) == Credential("max", "bgt_max", PLACE)


def test_who_speaks_is_named_by_option_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "max", "mia")
    assert load_credential(tmp_path, "mia").token == "bgt_mia"
    monkeypatch.setenv("GOVERNOR_AGENT", "max")
    assert load_credential(tmp_path, None).token == "bgt_max"
    assert load_credential(tmp_path, "mia").token == "bgt_mia"


def test_with_several_the_choices_are_named(tmp_path: Path) -> None:
    save(tmp_path, "mia", "max")
    assert message(tmp_path) == "Which agent speaks? Say --as NAME or set GOVERNOR_AGENT: max, mia"


@pytest.mark.parametrize("who", ["eva", "../credentials/max", "max.json", "MAX", ""])
def test_an_unknown_agent_is_answered_with_those_there_are(tmp_path: Path, who: str) -> None:
    save(tmp_path, "mia", "max")
    assert message(tmp_path, who).endswith(("There are: max, mia", "GOVERNOR_AGENT: max, mia"))


def test_without_any_the_next_step_is_named(tmp_path: Path) -> None:
    assert "governor agent add NAME" in message(tmp_path)
    (tmp_path / "file").write_text("")
    assert "governor agent add NAME" in message(tmp_path / "file")
    assert "governor agent add NAME" in message(tmp_path, "max")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o660, 0o777])
def test_a_credential_that_others_can_reach_is_not_used(tmp_path: Path, mode: int) -> None:
    save(tmp_path, "max")
    path = tmp_path / "credentials/max.json"
    path.chmod(mode)
    assert message(tmp_path) == f"{path} can be read by others, so it is not used. Close it: chmod 600 {path}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"[" * 9_000,
        json.dumps({"token": "a\r\nX: y", "socket": "/s", "tcp": ""}).encode(),
        json.dumps({"token": "t", "socket": "s", "tcp": ""}).encode(),
        json.dumps({"token": "t", "socket": "/s", "tcp": "10.0.0.1:1"}).encode(),
        json.dumps({"token": "t", "socket": "/s", "tcp": "", "more": "x" * 20_000}).encode(),
    ],
)
def test_what_is_no_credential_is_refused(tmp_path: Path, content: bytes) -> None:
    save(tmp_path, "max")
    (tmp_path / "credentials/max.json").write_bytes(content)
    assert "max.json is no credential" in message(tmp_path)
    assert "governor agent token max" in message(tmp_path)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_files_and_folders_are_the_owners_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = save_credential(tmp_path / "home", Credential("max", "bgt_max", PLACE))
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent, path.parent.parent)] == [
        0o600,
        0o700,
        0o700,
    ]
    assert list(path.parent.iterdir()) == [path]


def test_a_home_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    save(tmp_path, "max")
    assert tmp_path.stat().st_mode & 0o777 == 0o750


def test_make_private_closes_an_open_folder(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir(mode=0o755)
    make_private(tmp_path / "x")
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o700


def test_other_files_in_the_folder_are_no_agents(tmp_path: Path) -> None:
    save(tmp_path, "max")
    for name in ("notes.txt", "MAX.json", ".json", "max.json.bak"):
        (tmp_path / "credentials" / name).write_text("")
    assert load_credential(tmp_path, None).agent == "max"


def test_the_file_says_where_the_governor_is(tmp_path: Path) -> None:
    save(tmp_path, "max")
    assert json.loads((tmp_path / "credentials/max.json").read_text()) == {
        "agent": "max",
        "token": "bgt_max",
        "socket": "/run/g.sock",
        "tcp": "127.0.0.1:18801",
    }
