import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from governor.errors import ConfigError
from governor.sole_governor import sole_governor


def test_the_lock_names_who_holds_it_and_ends_with_the_block(tmp_path: Path) -> None:
    with sole_governor(tmp_path):
        assert stat.S_IMODE((tmp_path / "governor.lock").stat().st_mode) == 0o600
        with pytest.raises(ConfigError, match=rf"process {os.getpid()}\. Stop it: kill {os.getpid()}"):
            sole_governor(tmp_path).__enter__()
    with sole_governor(tmp_path):
        pass


def test_no_child_keeps_it(tmp_path: Path) -> None:
    """A reader outlives a killed governor by an instant; the next start does not wait for it."""
    code = "print(flush=True); input()"
    with sole_governor(tmp_path):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
    with sole_governor(tmp_path):
        pass
    child.communicate(b"\n", timeout=30)


def test_a_shorter_number_replaces_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "governor.lock").write_text("123456789012345\n")
    with sole_governor(tmp_path):
        assert (tmp_path / "governor.lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_home_that_is_none(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "home"
    if kind == "file":
        home.touch()
    with pytest.raises(ConfigError, match="governor init"):
        sole_governor(home).__enter__()


def test_a_lock_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "governor.lock").mkdir()
    with pytest.raises(ConfigError, match=r"governor\.lock cannot be opened"):
        sole_governor(tmp_path).__enter__()
