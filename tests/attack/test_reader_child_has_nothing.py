"""P6: no tools, no credentials, no network, no files, no memory of another message."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer

import reader
from governor.clock import SystemClock
from governor.errors import ReadingError
from governor.inbound.model_broker import ModelBroker, ModelSettings
from governor.inbound.reader_process import child_command, read_message
from reader.contract import Job, Mode

NONCE = "0123456789abcdef"
JOB = Job("Please look at a.py.", Mode.REWRITE, NONCE)
VALUES = JOB._replace(mode=Mode.VALUES)

LOOK_AROUND = """
import json, os
def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
seen = json.dumps({
    "environment": dict(os.environ), "folder": os.listdir("."), "path": sys.path, "modules": sorted(sys.modules),
    "descriptors": [descriptor for descriptor in range(256) if is_open(descriptor)],
    "leads_session": os.getsid(0) == os.getpid(), "files": [getattr(m, "__file__", None) for m in sys.modules.values()],
    "flags": [sys.flags.isolated, sys.flags.no_site, sys.flags.utf8_mode, sys.flags.dont_write_bytecode],
})
open(REPORT, "w").write(seen)
"""


def probe(report: Path) -> list[str]:
    """Return the command of a real child that looks around where it would have begun to serve."""
    *start, code = child_command()
    imports, called, _ = code.rpartition("main(")
    assert called
    return [*start, f"{imports}\nREPORT = {str(report)!r}\n{LOOK_AROUND}"]


@pytest.fixture
async def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a child sees whose parent has secrets in its environment and an inheritable descriptor."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    report = tmp_path / "report"
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        with contextlib.suppress(ReadingError):  # it looked around instead of locking itself
            await read_message(VALUES, None, command=probe(report))
    finally:
        os.close(descriptor)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


async def test_its_environment_and_its_folder_are_empty(seen: dict[str, Any]) -> None:
    assert {
        name for name in seen["environment"] if name not in ("LC_CTYPE", "__CF_USER_TEXT_ENCODING")
    } == set()
    assert seen["folder"] == []


async def test_it_holds_three_descriptors(seen: dict[str, Any]) -> None:
    assert seen["descriptors"] == [0, 1, 2]


async def test_it_is_isolated_in_a_session_of_its_own(seen: dict[str, Any]) -> None:
    assert seen["flags"] == [1, 1, 1, 1]
    assert seen["leads_session"]


async def test_it_can_import_nothing_but_the_standard_library(seen: dict[str, Any]) -> None:
    ours = str(Path(reader.__file__).parent)
    assert str(Path(ours).parent) not in seen["path"]
    assert not [folder for folder in seen["path"] if "site-packages" in folder or not folder]
    assert {name.partition(".")[0] for name in seen["modules"]} <= {
        *sys.stdlib_module_names,
        "__main__",
        "reader",
    }
    assert not [
        file for file in seen["files"] if file and "site-packages" in file and not file.startswith(ours)
    ]


async def test_it_loads_no_network_and_no_process_library(seen: dict[str, Any]) -> None:
    assert not {
        "socket",
        "_socket",
        "ssl",
        "http",
        "urllib.request",
        "asyncio",
        "subprocess",
        "dataclasses",
    } & set(seen["modules"])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
async def test_the_locked_child_itself_has_limits_a_filter_and_no_privileges() -> None:
    class Watching:
        """Looks at the children of this process while one of them waits for the model."""

        def __init__(self) -> None:
            self.limits = self.status = ""

        async def ask(self, _text: str, _on_call: object) -> str:
            pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()  # noqa: ASYNC240 - no disk
            (pid,) = [pid for pid in pids if b"reader.__main__" in Path(f"/proc/{pid}/cmdline").read_bytes()]  # noqa: ASYNC240
            self.status = Path(f"/proc/{pid}/status").read_text()  # noqa: ASYNC240
            with contextlib.suppress(PermissionError):  # undumpable: only root may look
                self.limits = Path(f"/proc/{pid}/limits").read_text()  # noqa: ASYNC240
            return ""

    watching = Watching()
    with pytest.raises(ReadingError, match="contract"):
        await read_message(JOB, watching)
    status = dict(line.split(":\t", 1) for line in watching.status.splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert {status[each].strip("0") for each in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {""}
    if watching.limits:
        opened = next(line for line in watching.limits.splitlines() if line.startswith("Max open files"))
        assert opened.split()[3:5] == ["0", "0"]


async def test_the_request_has_no_tools_and_nothing_of_another_message() -> None:
    with ModelServer() as server:
        broker = ModelBroker(ModelSettings("test-model", server.url, "sk-secret"), SystemClock())
        await read_message(Job("The first is about alpha.py.", Mode.REWRITE, "1" * 16), broker)
        await read_message(Job("The second is about beta.py.", Mode.REWRITE, "2" * 16), broker)
        await broker.close()
    first, second = server.bodies
    for body in (first, second):
        assert body.keys() == {"model", "max_tokens", "system", "messages", "output_config"}
    assert "alpha.py" in json.dumps(first)
    assert "alpha.py" not in json.dumps(second)
    assert first["messages"][:-1] == second["messages"][:-1]


def test_the_job_holds_no_key_and_no_address() -> None:
    assert set(Job._fields) == {"text", "mode", "nonce", "copy_limit", "url_hosts"}


def test_started_by_its_name_it_serves_too() -> None:
    lines = subprocess.run(
        [sys.executable, "-m", "reader"],
        input=b"nonsense\n",
        capture_output=True,
        check=True,
        cwd=Path(reader.__file__).parent.parent,
        timeout=60,
    ).stdout.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["locked", "verdict"]
