"""`governor model serve` as a process: bounded, private, gone with its parent; and once with the real model."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from model_server import told
from real_processes import WITHIN_S, is_gone
from stand_in import STAND_IN

from governor.cli.demo_stage import wait_for
from governor.clock import SystemClock
from governor.errors import ConfigError, GovernorError, ModelError
from governor.inbound.model_broker import ModelBroker, ModelSettings
from governor.model.pinned import PINNED
from governor.model.serving import READY, check_servable, has_runtime, serve
from reader.contract import model_request
from reader.prompt import question

ASK = question("Build 7731 is green, 120 of 120 tests pass.", "0123456789abcdef")

Serving = subprocess.Popen[str]
Start = Callable[..., Serving]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF and so on")
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "private" / "m.sock"


@pytest.fixture
def start(file: Path, place: Path) -> Iterator[Start]:
    with contextlib.ExitStack() as started:

        def start(*words: object, **changes: str) -> Serving:
            command = [sys.executable, "-m", "governor.cli.main", "model", "serve"]
            process = subprocess.Popen(
                [*command, "--file", str(file), "--socket", str(place), *map(str, words)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | STAND_IN | changes,
                text=True,
            )
            started.callback(lambda: (process.kill(), process.communicate()))
            return process

        yield start


def heard(process: Serving) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def asked(place: Path) -> str:
    settings = ModelSettings("local", socket=str(place), seconds=600, extra_body={"temperature": 0})
    broker = ModelBroker(settings, SystemClock())
    try:
        return await broker.ask(ASK, lambda _call: None)
    finally:
        await broker.close()


def refusal(process: Serving) -> str:
    _out, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 2, err
    assert err.count("\n") == 1
    return err


def test_it_answers_on_a_private_socket_with_bounds(start: Start, file: Path, place: Path) -> None:
    process = start()
    assert heard(process) == READY
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert '"nonce": "0123456789abcdef"' in asyncio.run(asked(place))
    if sys.platform == "linux":
        memory = 2 * file.stat().st_size + (2 << 30)
        assert resource.prlimit(process.pid, resource.RLIMIT_AS) == (memory, memory)
        assert resource.prlimit(process.pid, resource.RLIMIT_CORE) == (0, 0)


def test_the_runtime_is_told_to_keep_to_the_schema_and_to_keep_nothing(start: Start, place: Path) -> None:
    assert heard(start()) == READY
    settings = json.loads(Path(f"{place}.settings").read_text())
    schema = model_request("")["output_config"]["format"]["schema"]
    assert settings["sampling"] == {"temp": 0.0, "grammar": ["user", f"grammar of {json.dumps(schema)}"]}
    assert (settings["n_parallel"], settings["n_ctx"]) == (1, 16_384)
    assert settings["cache_ram_mib"] == 0
    assert settings["ui"] is settings["endpoint_slots"] is settings["cache_idle_slots"] is False


def test_it_ends_when_its_parent_is_another(start: Start, place: Path) -> None:
    process = start("--parent", 1)
    assert heard(process) == READY
    process.communicate(timeout=WITHIN_S)
    assert process.returncode == 0
    assert not place.exists()


def test_it_ends_with_the_process_that_started_it(file: Path, place: Path) -> None:
    code = f"""
import os, signal, subprocess, sys
from pathlib import Path
from governor.model.keeper import serve_command
command = serve_command(sys.executable, Path({str(file)!r}), Path({str(place)!r}))
child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
print(child.stdout.readline().strip(), child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | STAND_IN, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    said, _, pid = ended.stdout.strip().rpartition(" ")
    assert said == READY
    assert wait_for(lambda: is_gone(int(pid)), WITHIN_S)


def test_ctrl_c_ends_it_and_leaves_no_socket(start: Start, place: Path) -> None:
    process = start()
    assert heard(process) == READY
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=WITHIN_S)
    assert (process.returncode, err) == (130, "")
    assert not place.exists()


def test_a_socket_that_a_crash_left_is_replaced_one_in_use_is_not(start: Start, place: Path) -> None:
    first = start()
    assert heard(first) == READY
    assert "another model is served there" in refusal(start())
    first.kill()
    first.wait()
    assert place.exists()
    assert heard(start()) == READY


def test_a_folder_that_others_can_enter_is_refused(start: Start, place: Path) -> None:
    place.parent.mkdir(mode=0o750)
    assert "chmod 700" in refusal(start())


def test_a_path_too_long_for_a_socket_is_refused(start: Start, tmp_path: Path) -> None:
    assert "too long" in refusal(start("--socket", tmp_path / ("x" * 100)))


def test_what_is_in_the_way_is_left_alone(start: Start, place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    place.write_text("notes")
    assert "in the way" in refusal(start())
    assert place.read_text() == "notes"


def test_without_the_extra_it_says_how_to_install_it(start: Start) -> None:
    if has_runtime():
        pytest.skip("the extra `local` is installed here")
    assert "pip install 'bridge-governor[local]'" in refusal(start(PYTHONPATH=""))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"PK and so on", "GGUF is needed"), (b"GGUF broken", "cannot be served"), (b"GGUF mute", "no answer")],
)
def test_a_file_that_is_no_model_is_refused(start: Start, file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)
    message = refusal(start())
    assert said in message
    assert "Try" in message or "governor model fetch" in message


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the stand-in in this process too."""
    monkeypatch.syspath_prepend(STAND_IN["PYTHONPATH"].partition(os.pathsep)[0])
    yield
    sys.modules.pop("xllamacpp", None)


@pytest.mark.usefixtures("runtime")
def test_here_too_it_is_ready_and_ends_when_its_parent_is_another(file: Path, place: Path) -> None:
    before, said = os.umask(0o022), []
    try:
        serve(file, place, said.append, parent=1)
    finally:
        assert os.umask(before) == 0o022  # as it was
    assert said == [READY]
    assert not place.exists()


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("content", "error"), [(b"PK", ConfigError), (b"GGUF broken", ModelError), (b"GGUF mute", ModelError)]
)
def test_here_too_a_file_that_is_no_model_is_refused(
    file: Path, place: Path, content: bytes, error: type[GovernorError]
) -> None:
    file.write_bytes(content)
    with pytest.raises(error):
        serve(file, place, pytest.fail)
    assert not place.exists()


@pytest.mark.usefixtures("runtime")
def test_here_too_the_place_is_private_and_short(file: Path, place: Path) -> None:
    with pytest.raises(ConfigError, match="too long"):
        serve(file, place.with_name("x" * 100), pytest.fail)
    place.parent.mkdir(mode=0o750)
    with pytest.raises(ConfigError, match="chmod 700"):
        serve(file, place, pytest.fail)


@pytest.mark.usefixtures("runtime")
def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        check_servable(tmp_path / "nowhere.gguf")


@pytest.mark.slow
def test_the_real_model_retells(start: Start, place: Path) -> None:
    found = os.environ.get("GOVERNOR_TEST_MODEL", str(PINNED.beside(Path("~/.bridge-governor").expanduser())))
    if not has_runtime() or not Path(found).exists():
        pytest.skip("needs the extra `local` and a model file: make model, or GOVERNOR_TEST_MODEL=FILE")
    process = start("--file", found, PYTHONPATH="")
    assert heard(process) == READY
    with socket.socket(socket.AF_UNIX) as probe:
        assert probe.connect_ex(str(place)) == 0
    answer = json.loads(asyncio.run(asked(place)))
    assert answer.keys() == json.loads(told("", "", "", [], [])).keys()
    assert answer["nonce"] == "0123456789abcdef"
    assert "7731" in json.dumps(answer)
