"""Which model the demo takes, and what it says of it."""

import argparse
import os
import socket
from pathlib import Path

import pytest
from stand_in import STAND_IN

from governor.cli.demo_model import HOSTED_MODEL, Choice, choose, served
from governor.errors import ModelError
from governor.model.pinned import PINNED
from governor.model.serving import has_runtime


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", STAND_IN["PYTHONPATH"])
    monkeypatch.syspath_prepend(STAND_IN["PYTHONPATH"].partition(os.pathsep)[0])


def asked(home: Path, base_url: str = "", model: str = "") -> argparse.Namespace:
    return argparse.Namespace(home=home, base_url=base_url, model=model)


def with_file(home: Path, content: bytes = b"GGUF and so on") -> Path:
    file = PINNED.beside(home)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return file


def test_a_named_server_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_file(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    choice = choose(asked(tmp_path, "http://127.0.0.1:8", "qwen"))
    assert choice.settings == {"model": "qwen", "base_url": "http://127.0.0.1:8"}
    assert (choice.mode, choice.file) == ("rewrite", None)
    assert "qwen at http://127.0.0.1:8" in choice.said


@pytest.mark.usefixtures("runtime")
def test_a_key_comes_before_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_file(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    assert choose(asked(tmp_path)).settings == {"model": HOSTED_MODEL, "base_url": ""}


@pytest.mark.usefixtures("runtime")
def test_a_file_is_served_once_for_both(tmp_path: Path) -> None:
    file = with_file(tmp_path)
    choice = choose(asked(tmp_path))
    assert (choice.mode, choice.file) == ("rewrite", file)
    assert PINNED.name in choice.said
    with served(choice, tmp_path) as settings:
        kind, _, path = settings["base_url"].partition(":")
        with socket.socket(socket.AF_UNIX) as probe:
            assert (kind, probe.connect_ex(path)) == ("unix", 0)
    with socket.socket(socket.AF_UNIX) as probe:
        assert probe.connect_ex(path) != 0


@pytest.mark.usefixtures("runtime")
def test_a_file_that_cannot_be_served_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_file(tmp_path, b"GGUF broken")
    with pytest.raises(ModelError, match="not served"), served(choose(asked(tmp_path)), tmp_path):
        pass
    assert "cannot be served" in capfd.readouterr().err


def test_without_file_or_runtime_there_are_values_only(tmp_path: Path) -> None:
    choice = choose(asked(tmp_path))
    assert (choice.mode, choice.settings, choice.file) == ("values", {}, None)
    assert "make model demo" in choice.said
    if not has_runtime():
        with_file(tmp_path)
        assert choose(asked(tmp_path)) == choice
    with served(choice, tmp_path) as settings:
        assert settings == Choice("values", "", {}).settings
