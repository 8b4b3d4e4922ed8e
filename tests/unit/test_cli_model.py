"""`governor model`: what it says, where the file goes, and what it refuses."""

import io
from pathlib import Path

import pytest
from command_line import governor

from governor.cli.model import Progress, fetched
from governor.config import load_settings
from governor.model.pinned import PINNED

STAND_IN = Path(__file__).parents[1] / "stand_in"


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def shown(*done: int, total: int, terminal: bool) -> str:
    stream = Stream(terminal=terminal)
    progress = Progress(total, stream)
    for each in done:
        progress(each)
    progress.end()
    return stream.getvalue()


def test_a_terminal_sees_a_bar() -> None:
    said = shown(0, 1, 500_000_000, 1_000_000_000, total=1_000_000_000, terminal=True)
    assert said.split("\r")[1:] == [
        f"[{'.' * 40}] 0 of 1000 MB",
        f"[{'#' * 20}{'.' * 20}] 500 of 1000 MB",
        f"[{'#' * 40}] 1000 of 1000 MB\n",
    ]


def test_elsewhere_there_is_a_line_now_and_then() -> None:
    total = 1_000_000_000
    said = shown(*range(0, total + 1, total // 100), total=total, terminal=False)
    assert said.splitlines() == [f"{tenth * 100} of 1000 MB" for tenth in range(11)]


def test_another_file_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF of somebody else")
    said = governor("model", "fetch", "--from", other, home=tmp_path / "home")
    assert said.code == 2
    assert f"{other} is not {PINNED.name}" in said.err
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "home" / "models").iterdir()) == []


def test_a_source_that_does_not_answer_is_told_as_json(tmp_path: Path) -> None:
    said = governor("model", "fetch", "--from", "http://127.0.0.1:1/m", "--json", home=tmp_path)
    assert said.code == 2
    assert said.document["error"] == "model"
    assert "--from FILE" in said.document["message"]


@pytest.mark.parametrize(("is_new", "word"), [(True, "now"), (False, "already")])
def test_a_fetched_file_is_named_with_the_line_for_the_settings(
    tmp_path: Path, *, is_new: bool, word: str
) -> None:
    path = PINNED.beside(tmp_path)
    answer = fetched(path, tmp_path, is_new=is_new)
    assert f"is {word} at {path}, SHA-256 verified" in answer.lines[0]
    setting = answer.document["setting"]
    assert answer.lines[1].endswith(f"under [reader] in {tmp_path / 'governor.toml'}: {setting}")
    (tmp_path / "governor.toml").write_text(f"name = 'a'\n[reader]\n{setting}\n")
    assert tmp_path / load_settings(tmp_path).reader.model_file == path


def test_status_says_what_is_missing_and_whether_it_is_the_pinned_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(STAND_IN)
    said = governor("model", "status", home=tmp_path)
    assert (said.code, said.out.splitlines()[1]) == (1, "The settings name no model_file.")
    assert "governor model fetch" in said.out
    (tmp_path / "mine.gguf").write_bytes(b"GGUF and so on")
    (tmp_path / "governor.toml").write_text("name = 'a'\n[reader]\nmodel_file = 'mine.gguf'\n")
    said = governor("model", "status", "--json", home=tmp_path)
    assert (said.code, said.document) == (
        0,
        {"ok": True, "file": str(tmp_path / "mine.gguf"), "pinned": False, "used": True, "fault": None},
    )
    said = governor("model", "status", home=tmp_path)
    assert "another one than the pinned one" in said.out
    assert "The reader uses it." in said.out


def test_serve_wants_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(STAND_IN)
    said = governor("model", "serve", "--socket", tmp_path / "s", home=tmp_path)
    assert said.code == 2
    assert str(PINNED.beside(tmp_path)) in said.err
