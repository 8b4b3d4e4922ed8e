"""docs/secrets.md: its table is drawn from the code. `UPDATE_DOCS=1` (make docs) writes it."""

import os
import re
from pathlib import Path

from governor.directory.canaries import LOOKS
from governor.policy.known_values import DISTINCT, KNOWN_LENGTH, STRENGTH
from governor.policy.secret_shapes import SHAPES

PAGE = Path(__file__).parents[2] / "docs" / "secrets.md"
DRAWN = re.compile(r"(<!-- drawn: shapes -->\n)(.*?)(<!-- end -->)", re.DOTALL)
SHOWN = 22
"""So much of an example is shown: no scanner of repositories takes it for real."""


def shapes() -> str:
    rows = [
        f"| {shape.kind} | {shape.of} | `{_cell(shape.pattern.pattern)}` | `{_cell(_cut(shape.example))}` |"
        f" {'-' if shape.changes is None else shape.changes} |"
        for shape in SHAPES
    ]
    return "\n".join(
        ["", "| kind | of | pattern | example | runs on |", "|---|---|---|---|---|", *rows, "", ""]
    )


def _cut(example: str) -> str:
    return example if len(example) <= SHOWN else f"{example[:SHOWN]}..."


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("`", "'")


def test_the_table_of_shapes_is_the_codes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = DRAWN.search(text)
    assert found is not None
    if os.environ.get("UPDATE_DOCS") == "1":
        PAGE.write_text(text[: found.start(2)] + shapes() + text[found.end(2) :], encoding="utf-8")
        return
    assert found[2] == shapes(), "run: make docs"


def test_the_figures_of_the_page_are_the_codes() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"fewer than {KNOWN_LENGTH} characters, fewer than {DISTINCT} different ones" in text
    assert f"less than {STRENGTH:g} bits" in text
    assert f"--kind {', '.join(list(LOOKS)[:-1])} or {list(LOOKS)[-1]}" in text
