"""Rules of docs/design.md, section 9, as far as a machine can see them."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = sorted([*ROOT.glob("governor/**/*.py"), *ROOT.glob("reader/**/*.py")])
BANNED = {"utils", "helpers", "common", "base", "manager", "core"}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_files_are_short() -> None:
    assert {path.name for path in CODE if len(path.read_text().splitlines()) > 330} == set()


def test_names_say_something() -> None:
    assert {path.stem for path in CODE} & BANNED == set()


@pytest.mark.parametrize("path", sorted(ROOT.glob("reader/**/*.py")), ids=lambda path: path.stem)
def test_the_reader_needs_the_standard_library_only(path: Path) -> None:
    tops = {name.partition(".")[0] for name in imports(path)}
    assert tops <= set(sys.stdlib_module_names) | {"reader"}


def test_only_the_clock_reads_the_time() -> None:
    """The demo's stage waits for real processes and codes; it is no part of the governor."""
    reads = re.compile(r"\btime\.(time|monotonic)\(|datetime\.(now|utcnow)\(")
    found = {
        path.relative_to(ROOT).as_posix() for path in CODE if reads.search(path.read_text(encoding="utf-8"))
    }
    assert found <= {
        "governor/clock.py",
        "governor/cli/demo_stage.py",
        "governor/cli/local_client.py",
        "governor/cli/service_machine.py",
    }


def test_files_named_in_the_documents_exist() -> None:
    named = set()
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        named |= set(re.findall(r"\btests/[a-z_/]+\.py\b", page.read_text(encoding="utf-8")))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
