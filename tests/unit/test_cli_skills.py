import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from governor.cli import skills
from governor.cli.skill_folders import CLIENTS
from governor.cli.skill_template import recipient_of, render_skill

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for client in CLIENTS.values():
        if client.variable:
            monkeypatch.delenv(client.variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `governor skills ...`; return exit code, standard output, standard error."""

    def run(*argv: object, agents: tuple[str, ...] = ("eva",)) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser()
        parser.set_defaults(home=None)
        skills.add_parsers(parser.add_subparsers(), lambda _home: list(agents))
        args = parser.parse_args(["skills", *map(str, argv)])
        code = args.func(args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    ("client", "folder"),
    [
        ("claude-code", ".claude/skills"),
        ("codex", ".agents/skills"),
        ("gemini", ".agents/skills"),
        ("hermes", ".hermes/skills"),
        ("openclaw", ".agents/skills"),
    ],
)
def test_install_writes_where_the_client_looks(run: Run, home: Path, client: str, folder: str) -> None:
    code, out, _ = run("install", "--for", client)
    assert (code, out) == (0, f"created    {home / folder / 'send-to-eva'}\n")
    assert tree(home / folder / "send-to-eva") == render_skill("eva").files


@pytest.mark.parametrize(
    ("client", "variable"),
    [("claude-code", "CLAUDE_CONFIG_DIR"), ("hermes", "HERMES_HOME"), ("openclaw", "OPENCLAW_STATE_DIR")],
)
def test_install_follows_the_variable_by_which_a_client_is_moved(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "moved"))
    run("install", "--for", client)
    assert (tmp_path / "moved/skills/send-to-eva/SKILL.md").exists()


def test_every_client_is_covered() -> None:
    assert set(CLIENTS) == {"claude-code", "codex", "openclaw", "hermes", "gemini"}


def test_install_writes_one_skill_for_each_remote_agent(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(
        "install", "--for", "codex", "--dir", tmp_path / "s", "--json", agents=("eva", "tom@x-host")
    )
    assert code == 0
    assert json.loads(out) == {
        "ok": True,
        "skills": [
            {"name": name, "recipient": recipient, "path": str(tmp_path / "s" / name), "state": "created"}
            for name, recipient in (("send-to-eva", "eva"), ("send-to-tom-at-x-host", "tom@x-host"))
        ],
    }


def test_named_agents_replace_the_peers(run: Run, tmp_path: Path) -> None:
    run("install", "--for", "codex", "--dir", tmp_path / "s", "--peer-agent", "tom", "--peer-agent", "max")
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == ["send-to-max", "send-to-tom"]


def test_a_second_run_changes_nothing_and_says_so(run: Run, tmp_path: Path) -> None:
    run("install", "--for", "codex", "--dir", tmp_path / "s")
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")}
    code, out, _ = run("install", "--for", "codex", "--dir", tmp_path / "s")
    assert (code, out.split()[0]) == (0, "unchanged")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "s").rglob("*")} == before


@pytest.mark.parametrize("spoil", ["text", "script", "mode"])
def test_an_older_skill_of_ours_is_brought_up_to_date(run: Run, tmp_path: Path, spoil: str) -> None:
    folder = tmp_path / "s" / "send-to-eva"
    run("install", "--for", "codex", "--dir", tmp_path / "s")
    match spoil:
        case "text":
            (folder / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes() + b"old\n")
        case "script":
            (folder / "scripts/send.sh").unlink()
        case "mode":
            (folder / "scripts/send.sh").chmod(0o644)
    (folder / "notes.md").write_text("the user's own")
    code, out, _ = run("install", "--for", "codex", "--dir", tmp_path / "s")
    assert (code, out.split()[0]) == (0, "updated")
    assert tree(folder) == {**render_skill("eva").files, "notes.md": b"the user's own"}
    assert (folder / "scripts/send.sh").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link", "for another agent"])
def test_what_we_did_not_write_is_left_alone_and_nothing_else_is_written(
    run: Run, tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "s" / "send-to-eva"
    place.parent.mkdir()
    match kind:
        case "folder":
            place.mkdir()
            (place / "SKILL.md").write_text("---\nname: send-to-eva\n---\n  written-by: bridge-governor\n")
        case "empty folder":
            place.mkdir()
        case "file":
            place.write_text("mine")
        case "dangling link":
            place.symlink_to(tmp_path / "nowhere")
        case "for another agent":
            place.mkdir()
            (place / "SKILL.md").write_bytes(render_skill("max").files["SKILL.md"])
    before = tree(tmp_path / "s")
    code, out, err = run("install", "--for", "codex", "--dir", tmp_path / "s", agents=("max", "eva"))
    assert (code, out) == (2, "")
    assert str(place) in err
    assert "Move that away" in err
    assert tree(tmp_path / "s") == before
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["send-to-eva"]


@pytest.mark.parametrize(
    "name", ["Eva", "eva!", "a--b", "-a", "a-", "operator", "../eva", "eva\n", "", f"{'a' * 32}@{'b' * 32}"]
)
def test_a_name_that_no_skill_can_carry_is_a_usage_error(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        run("install", "--for", "codex", "--dir", tmp_path / "s", f"--peer-agent={name}")
    assert stop.value.code == 2
    assert "--peer-agent" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


def test_two_agents_never_share_a_skill(run: Run, tmp_path: Path) -> None:
    code, _, err = run("install", "--for", "codex", "--dir", tmp_path / "s", agents=("a-at-b", "a@b"))
    assert code == 2
    assert "share" in err
    assert not (tmp_path / "s").exists()


def test_without_any_peer_the_next_step_is_named(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("install", "--for", "codex", "--dir", tmp_path / "s", "--json", agents=())
    assert code == 2
    answer = json.loads(out)
    assert answer["ok"] is False
    assert "governor pair offer" in answer["message"]


def test_a_folder_that_cannot_be_made_is_one_clear_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("install", "--for", "codex", "--dir", tmp_path / "file" / "skills")
    assert code == 2
    assert "cannot be written" in err
    assert "--dir" in err


PROGRAM = """
import argparse, sys
from governor.cli import skills
parser = argparse.ArgumentParser()
parser.set_defaults(home=None)
skills.add_parsers(parser.add_subparsers(), lambda _home: ["eva"])
args = parser.parse_args()
sys.exit(args.func(args))
"""


@pytest.mark.parametrize("present", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, present: bool) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    if present:
        (folder / "send-to-eva").mkdir()
        old = render_skill("eva").files["SKILL.md"] + b"an older text\n"
        (folder / "send-to-eva/SKILL.md").write_bytes(old)
    before = tree(folder)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            *("skills", "install", "--for", "codex", "--dir", folder),
        ],
        cwd=Path(__file__).parents[2],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert tree(folder) == before
    assert [p.name for p in folder.iterdir()] == (["send-to-eva"] if present else [])


def test_list_shows_ours_and_how_they_stand(run: Run, home: Path) -> None:
    run("install", "--for", "codex", agents=("eva", "max"))
    run("install", "--for", "claude-code")
    (home / ".agents/skills/send-to-max/scripts/send.sh").unlink()
    foreign = home / ".agents/skills/send-to-tom"
    foreign.mkdir()
    (foreign / "SKILL.md").write_text("---\nname: send-to-tom\n---\n")
    code, out, _ = run("list", "--json")
    assert code == 0
    assert [(row["name"], row["state"], row["clients"]) for row in json.loads(out)["skills"]] == [
        ("send-to-eva", "current", ["claude-code"]),
        ("send-to-eva", "current", ["codex", "gemini", "openclaw"]),
        ("send-to-max", "outdated", ["codex", "gemini", "openclaw"]),
    ]
    assert run("list", "--for", "codex")[1].splitlines() == [
        f"current    {home}/.agents/skills/send-to-eva  codex",
        f"outdated   {home}/.agents/skills/send-to-max  codex",
    ]
    assert (
        run("list", "--dir", home / ".claude/skills")[1] == f"current    {home}/.claude/skills/send-to-eva\n"
    )


def test_list_of_nothing_names_the_next_step(run: Run) -> None:
    code, out, _ = run("list")
    assert code == 0
    assert "governor skills install" in out


@pytest.mark.parametrize(
    "content",
    [
        b'---\nname: other\nmetadata:\n  written-by: bridge-governor\n  recipient: "eva"\n---\n',
        b'---\nname: x\nmetadata:\n  written-by: bridge-governor\n  recipient: "../../eva"\n---\n',
        b"---\nname: x\nmetadata:\n  written-by: bridge-governor\n---\n",
        b"\xff\xfe",
        b"",
    ],
)
def test_list_ignores_what_only_looks_like_ours(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s/other").mkdir(parents=True)
    (tmp_path / "s/other/SKILL.md").write_bytes(content)
    (tmp_path / "s/third/SKILL.md").mkdir(parents=True)
    assert json.loads(run("list", "--dir", tmp_path / "s", "--json")[1])["skills"] == []


def test_the_mark_counts_in_the_frontmatter_only() -> None:
    assert recipient_of(render_skill("eva@eva-host").files["SKILL.md"]) == "eva@eva-host"
    assert recipient_of(b'---\nname: x\n---\n  written-by: bridge-governor\n  recipient: "eva"\n') is None


def test_a_file_that_cannot_be_replaced_leaves_no_rubbish(run: Run, tmp_path: Path) -> None:
    run("install", "--for", "codex", "--dir", tmp_path / "s")
    script = tmp_path / "s/send-to-eva/scripts/send.sh"
    script.unlink()
    script.mkdir()
    code, _, err = run("install", "--for", "codex", "--dir", tmp_path / "s")
    assert code == 2
    assert "cannot be written: Is a directory" in err
    assert [p.name for p in script.parent.iterdir()] == ["send.sh"]
