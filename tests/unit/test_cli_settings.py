import os
from pathlib import Path

import pytest
from command_line import governor

from governor.config import known_keys, settings_file

SECRET = "sk-ant-very-secret"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GOVERNOR_")]:
        monkeypatch.delenv(name)
    (tmp_path / "governor.toml").write_text(settings_file("max-host"))
    return tmp_path


def shown(home: Path) -> dict[str, tuple[object, str]]:
    said = governor("config", "--json", home=home)
    assert said.code == 0, said
    assert SECRET not in said.out
    return {key: (row["value"], row["source"]) for key, row in said.document["settings"].items()}


def test_every_setting_is_shown_with_its_source(home: Path) -> None:
    found = shown(home)
    assert list(found) == [key for key in known_keys() if not key.startswith("links.")]
    assert found["name"] == ("max-host", "file")
    assert {source for key, (_, source) in found.items() if key != "name"} == {"default"}
    assert found["limits.watch_for"] == ("5m", "default")
    assert found["reader.key"] == ("not set", "default")
    assert found["secrets.canaries"] == ([], "default")


def test_file_and_environment_are_told_apart(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (home / "governor.toml").open("a") as file:
        file.write('[links.eva-host]\ndirection = "out"\n')
    text = (home / "governor.toml").read_text()
    text = text.replace("# messages = 50", "messages = 7").replace("# warn_at = 40", "warn_at = 5")
    (home / "governor.toml").write_text(text)
    monkeypatch.setenv("GOVERNOR_LIMITS__MESSAGES", "9")
    monkeypatch.setenv("GOVERNOR_READER", '{"model": "m"}')
    found = shown(home)
    assert found["limits.messages"] == (9, "environment")
    assert found["limits.warn_at"] == (5, "file")
    assert found["limits.text"] == (10_000, "default")
    assert found["reader.model"] == ("m", "environment")
    assert found["reader.base_url"] == ("", "default")
    assert found["links.eva-host.direction"] == ("out", "file")
    assert found["links.eva-host.reader"] == ("", "default")


def test_no_secret_is_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVERNOR_READER__KEY", SECRET)
    monkeypatch.setenv("GOVERNOR_READER__BASE_URL", f"https://user:{SECRET}@model.example/v1")
    monkeypatch.setenv("GOVERNOR_SECRETS__CANARIES", f'["{SECRET}", "{SECRET}2"]')
    monkeypatch.setenv("GOVERNOR_SUPERVISION__TELEGRAM__TOKEN", SECRET)
    found = shown(home)
    assert found["reader.key"] == ("set", "environment")
    assert found["reader.base_url"] == ("https://model.example/v1", "environment")
    assert found["secrets.canaries"] == ("2 set", "environment")
    assert found["supervision.telegram.token"] == ("set", "environment")
    assert SECRET not in governor("config", home=home).out


def test_lines_for_people(home: Path) -> None:
    lines = governor("config", home=home).out.splitlines()
    assert lines[0] == 'name = "max-host"  # file'
    assert "limits.messages = 50  # default" in lines
    assert "supervision.telegram.operators = []  # default" in lines
