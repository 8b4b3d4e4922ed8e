import json
import os
from pathlib import Path

import pytest
from command_line import governor
from stand_in import STAND_IN

from governor.model.pinned import PINNED


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def played(home: Path) -> str:
    said = governor("demo", "--json", home=home)
    assert said.code == 0, said.out + said.err
    found = json.loads(said.out.splitlines()[-1])
    assert found["ok"] is True
    assert all(step["ok"] for step in found["steps"])
    return found["reader"]


def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    assert played(tmp_path) == "values"


def test_with_a_model_file_it_plays_with_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", STAND_IN["PYTHONPATH"])
    monkeypatch.syspath_prepend(STAND_IN["PYTHONPATH"].partition(os.pathsep)[0])
    file = PINNED.beside(tmp_path)
    file.parent.mkdir()
    file.write_bytes(b"GGUF and so on")
    assert played(tmp_path) == "rewrite"
