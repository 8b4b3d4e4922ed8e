"""`governor canary`: an operator plants bait beside a running governor, and an agent takes it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import governor
from governor_pair import GovernorPair

from governor.errors import RefusedError


@pytest.fixture(autouse=True)
def one_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GOVERNOR_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "max-host"
    assert governor("init", "--name", "max-host", "--agent", "max", home=path).code == 0
    return path


def test_a_canary_is_shown_once_listed_without_its_value_and_removed(home: Path) -> None:
    assert "governor canary plant" in governor("canary", "list", home=home).out
    said = governor("canary", "plant", "--note", "in CLAUDE.md of the shop", home=home)
    assert said.code == 0
    value = said.out.strip()
    assert value.startswith("ghp_")
    assert "CLAUDE.md" in said.err
    assert "environment" in said.err
    assert "not shown again" in said.err

    listed = governor("canary", "list", home=home)
    (row,) = governor("canary", "list", "--json", home=home).document["canaries"]
    assert set(row) == {"canary", "kind", "note", "planted_at"}
    assert (row["kind"], row["note"]) == ("github", "in CLAUDE.md of the shop")
    assert row["canary"] in listed.out
    assert "in CLAUDE.md of the shop" in listed.out
    assert value not in listed.out + json.dumps(row)
    assert value not in governor("audit", "--format", "json", home=home).out

    removed = governor("canary", "remove", row["canary"], "--json", home=home)
    assert removed.document == {"ok": True, "canary": row["canary"]}
    assert governor("canary", "list", "--json", home=home).document["canaries"] == []
    gone = governor("canary", "remove", row["canary"], "--json", home=home)
    assert (gone.code, gone.document["error"]) == (2, "not_found")
    assert "governor canary list" in gone.document["message"]


@pytest.mark.parametrize("kind", ["github", "stripe", "password"])
def test_the_kind_is_chosen(home: Path, kind: str) -> None:
    document = governor("canary", "plant", "--kind", kind, "--json", home=home).document
    assert document["ok"]
    assert document["kind"] == kind
    assert document["note"] == ""
    file = home / "canaries" / f"{document['canary']}.json"
    assert json.loads(file.read_text())["value"] == document["value"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "words",
    [("plant", "--kind", "visa"), ("plant", "--note", "x" * 201), ("remove",), ("remove", "../x"), ()],
)
def test_what_makes_no_sense_is_a_usage_error_in_one_line(home: Path, words: tuple[str, ...]) -> None:
    said = governor("canary", *words, home=home)
    assert said.code == 2
    assert len(said.err.splitlines()) == 1
    assert not (home / "canaries").exists() or not list((home / "canaries").iterdir())


def test_without_a_home_the_next_step_is_named(tmp_path: Path) -> None:
    said = governor("canary", "plant", home=tmp_path / "nowhere")
    assert said.code == 2
    assert "governor init" in said.err


async def test_what_was_planted_beside_a_running_governor_counts_at_its_next_message(
    make_pair: Callable[..., GovernorPair],
) -> None:
    pair = make_pair()
    pair.go()
    pair.max.send("eva", "v1.0.0")
    home = pair.max.home.path
    (home / "governor.toml").write_text('name = "max-host"\n')
    planted = governor("canary", "plant", "--json", home=home).document
    with pytest.raises(RefusedError, match="carries a canary"):
        pair.max.send("eva", f"here you are: {planted['value']}")
    shown = governor("audit", "--format", "json", home=home).out
    assert [line for line in shown.splitlines() if "canary_touched" in line and planted["canary"] in line]
    assert planted["value"] not in shown


def test_a_listed_secret_that_cannot_be_used_stops_no_operator(home: Path) -> None:
    settings = home / "governor.toml"
    settings.write_text(
        settings.read_text().replace("[secrets]", '[secrets]\nenvironment = ["NOT_SET_HERE"]')
    )
    assert governor("config", "--json", home=home).document["settings"]["secrets.environment"]["value"] == [
        "NOT_SET_HERE"
    ]
    for words in (("stop",), ("status",), ("canary", "plant")):
        assert governor(*words, home=home).code == 0
