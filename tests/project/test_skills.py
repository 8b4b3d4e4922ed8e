import os
import pty
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from skills_ref import read_properties, validate

from governor.cli.failure import Exit
from governor.cli.skill_folders import write
from governor.cli.skill_template import render_skill
from governor.errors import LocalError

SEND_CODES = (Exit.OK, Exit.FAILED, Exit.USAGE, Exit.REFUSED, Exit.UNREACHABLE, Exit.NO_GOVERNOR, 127)
Done = subprocess.CompletedProcess[bytes]
Run = Callable[..., tuple[Done, list[str], bytes]]

SHIPPED = Path(__file__).parents[2] / "skills"
SHELLS = [shell for shell in ("sh", "dash", "bash", "busybox") if shutil.which(shell)]
HOSTILE = {
    "quotes": b'it\'s "quoted" `id` $(id) ${HOME} $HOME \\n %s !!\n',
    "heredoc end": b"EOF\nrm -rf /\nEOF\n",
    "options": b"--to max --help -\n",
    "not utf-8": bytes(range(1, 256)),
    "nul": b"before\0after",
    "no newline": "déjà vu \u202e\u200b".encode(),
    "empty": b"",
    "long": b"x" * 100_000,
}


def commands() -> list[str]:
    """Every shell example in the text of a skill."""
    return re.findall(
        r"^```sh\n(.*?)^```$", (SHIPPED / "send-to-eva/SKILL.md").read_text(), re.MULTILINE | re.DOTALL
    )


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """A stand-in for the `governor` command that keeps what it was given and ends as it is told."""
    path = tmp_path / "a folder" / "governor"
    path.parent.mkdir()
    path.write_text(
        '#!/bin/sh\nfor word in "$@"; do printf "%s\\0" "$word"; done > "$RECORD.argv"\n'
        'cat > "$RECORD.stdin"\nexit "${RECORD_CODE:-0}"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def run(tmp_path: Path, recorder: Path) -> Run:
    """Run a shell command line in a skill's folder with the recorder on PATH; return what it saw."""

    def run(line: str, text: bytes = b"", shell: str = "sh", **environ: str) -> tuple[Done, list[str], bytes]:
        record = tmp_path / "record"
        done = subprocess.run(
            ["busybox", "sh", "-c", line] if shell == "busybox" else [shell, "-c", line],
            cwd=SHIPPED / "send-to-eva",
            input=text,
            capture_output=True,
            timeout=30,
            check=False,
            env={"PATH": f"{recorder.parent}:{os.defpath}", "RECORD": str(record), **environ},
        )
        argv = record.with_suffix(".argv")
        words = argv.read_bytes().decode().split("\0")[:-1] if argv.exists() else []
        seen = record.with_suffix(".stdin").read_bytes() if argv.exists() else b""
        return done, words, seen

    return run


@pytest.mark.parametrize("agent", ["max", "eva"])
def test_a_shipped_skill_is_what_install_writes(agent: str) -> None:
    skill = render_skill(agent)
    folder = SHIPPED / skill.name
    shipped = {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    assert shipped == skill.files
    assert os.access(folder / "scripts/send.sh", os.X_OK)


def test_no_other_skill_is_shipped() -> None:
    assert sorted(path.name for path in SHIPPED.iterdir()) == ["send-to-eva", "send-to-max"]


@pytest.mark.parametrize("agent", ["max", "eva", "eva@eva-host", "123", "no"])
def test_the_real_validator_accepts_every_skill(agent: str, tmp_path: Path) -> None:
    skill = render_skill(agent)
    write(tmp_path, skill)
    folders = [tmp_path / skill.name, *([SHIPPED / skill.name] if (SHIPPED / skill.name).exists() else [])]
    for folder in folders:
        validator = Path(sysconfig.get_path("scripts")) / "agentskills"
        done = subprocess.run([validator, "validate", folder], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@given(st.from_regex(r"[a-z0-9-]{1,32}(@[a-z0-9-]{1,32})?", fullmatch=True))
def test_every_agent_gets_a_valid_skill_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, agent: str
) -> None:
    try:
        skill = render_skill(agent)
    except LocalError:
        event("refused")
        assert not re.fullmatch(r"[a-z0-9]{1,16}(-[a-z0-9]{1,8})?(@[a-z0-9]{1,16})?", agent)
        return
    folder = tmp_path_factory.mktemp("skills")
    write(folder, skill)
    assert validate(folder / skill.name) == []
    assert read_properties(folder / skill.name).metadata["recipient"] == agent


def test_frontmatter_has_only_fields_of_the_specification() -> None:
    text = (SHIPPED / "send-to-eva/SKILL.md").read_text()
    fields = re.findall(r"^([a-z-]+):", text.split("---\n")[1], re.MULTILINE)
    assert fields == ["name", "description", "license", "compatibility", "metadata"]
    assert len(text.splitlines()) < 500


def test_the_text_explains_every_exit_code_once() -> None:
    text = (SHIPPED / "send-to-eva/SKILL.md").read_text()
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(int(code)) for code in SEND_CODES]
    assert "Accepted is not delivered" in text
    assert '"content from another agent, not from your user"' in text


def test_no_example_puts_the_text_on_the_command_line(run: Run) -> None:
    sent = 0
    for line in commands():
        done, words, seen = run(line.replace("message.txt", "/dev/null"))
        assert done.returncode == 0, done.stderr
        if words[0] == "send":
            sent += 1
            assert words[1:3] == ["--to", "eva"]
            assert words[-1] == "-"
            assert not any(" " in word for word in words)
            body = re.search(r"<<'EOF'\n(.*?)EOF\n", line, re.DOTALL)
            assert seen.decode() == (body[1] if body else "")
    assert sent == 3


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_script_hands_hostile_text_on_unchanged(run: Run, shell: str, text: bytes) -> None:
    interpreter = "busybox sh" if shell == "busybox" else shell
    done, words, seen = run(f"{interpreter} scripts/send.sh", text, shell)
    assert (done.returncode, words, seen) == (0, ["send", "--to", "eva", "-"], text)
    assert done.stdout == done.stderr == b""


@pytest.mark.parametrize("code", SEND_CODES)
def test_script_keeps_the_exit_code(run: Run, code: int) -> None:
    assert run("scripts/send.sh", b"hi", RECORD_CODE=str(int(code)))[0].returncode == code


def test_script_hands_options_on_but_keeps_the_recipient(run: Run) -> None:
    _, words, _ = run("scripts/send.sh --reply-to m1 --to max --conversation 'a b'", b"hi")
    assert words == ["send", "--reply-to", "m1", "--to", "max", "--conversation", "a b", "--to", "eva", "-"]


def test_script_takes_the_command_from_governor_cli(run: Run, recorder: Path) -> None:
    done, words, seen = run("scripts/send.sh", b"hi", PATH=os.defpath, GOVERNOR_CLI=str(recorder))
    assert (done.returncode, words[0], seen) == (0, "send", b"hi")


def test_governor_cli_is_a_name_and_no_command_line(run: Run, tmp_path: Path) -> None:
    done, words, _ = run("scripts/send.sh", b"hi", GOVERNOR_CLI=f"touch {tmp_path}/pwned;")
    assert (done.returncode, words) == (127, [])
    assert not (tmp_path / "pwned").exists()


def test_script_says_when_the_command_is_missing(run: Run) -> None:
    done, _, _ = run("scripts/send.sh", b"hi", PATH=os.defpath)
    assert done.returncode == 127
    assert b"put it on PATH or name it in GOVERNOR_CLI" in done.stderr


def test_script_does_not_wait_for_a_person_to_type(recorder: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [SHIPPED / "send-to-eva/scripts/send.sh"],
            stdin=theirs,
            capture_output=True,
            timeout=30,
            check=False,
            env={"PATH": f"{recorder.parent}:{os.defpath}", "RECORD": str(tmp_path / "record")},
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert b"standard input" in done.stderr
