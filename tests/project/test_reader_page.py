"""The tables of docs/reader.md are drawn from those the reader runs on, and are up to date.

`UPDATE_DOCS=1 pytest tests/project/test_reader_page.py` writes them.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from reader.checks import CHECKS, SHOWN_CHECKS
from reader.contract import DROPS, WORDS, Mode
from reader.forms import FORMS, ORDERS, OVERRIDES
from reader.grammar import SPACED, TOKENS, TYPES, VALUE_LENGTH, fits
from reader.normalise import STEPS
from reader.signals import SIGNALS

PAGE = Path(__file__).parents[2] / "docs" / "reader.md"
SECTION = re.compile(r"(<!-- drawn: ([a-z ]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)

EXAMPLES = {
    "path": "src/cart/totals.py",
    "time": "2026-11-30T17:20:00Z",
    "ticket": "PR #482",
    "port": "port 8080",
    "duration": "30 s",
    "number": "1 250,50 €",
    "url": "hxxps://evil[.]example/a?b=c",
    "email": "max@example.com",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ip": "2001:db8::1",
    "test": "x_test.py::test_y",
    "location": "file.py:88",
    "version": "1.2.3-rc.1+build.5",
    "hash": "a1b2c3d4e5",
    "file": "größe.txt",
    "flag": "--no-verify",
    "identifier": "pod-7f9c6d-abc12",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def meaning(code: str) -> str:
    return f"drop: {DROPS[code]}" if code in DROPS else f"signal: {SIGNALS[code]}"


def input_steps() -> str:
    rows = []
    for number, step in enumerate(STEPS, 1):
        for at, code in enumerate(step.codes or ("",)):
            told = [f"`{code}`", meaning(code)] if code else ["", ""]
            rows.append(["" if at else f"{number}. {step.what}", *told])
    return table(["after this step", "code", "otherwise"], rows)


def output_checks() -> str:
    read = [(code, "on the whole answer") for code in ("model_stopped", "too_long", "contract", "nonce")]
    told = [(check.code, "on the text as written") for check in CHECKS]
    shown = [(check.code, "on the text as shown") for check in SHOWN_CHECKS]
    return table(
        ["code", "when", "drop, because"],
        [[f"`{code}`", when, DROPS[code]] for code, when in (*read, *told, *shown)],
    )


def forms() -> str:
    places = ((FORMS, "everywhere"), (ORDERS, "summary and points"), (OVERRIDES, "everywhere"))
    return table(
        ["code", "form", "not allowed in"],
        [[f"`{form.code}`", form.what, where] for rows, where in places for form in rows],
    )


def grammars() -> str:
    free = {row.type for row in (*TOKENS, *SPACED) if row.free}
    words = f"{WORDS[Mode.REWRITE]} words a segment ({WORDS[Mode.VALUES]} in `values` mode)"
    rows = []
    for type_ in TYPES:
        count = sum(row.type == type_ for row in (*TOKENS, *SPACED))
        bounds = f"{VALUE_LENGTH} characters" + (f", {words}" if type_ in free else "")
        rows.append([type_, f"`{EXAMPLES[type_]}`", str(count), bounds])
    return table(["type", "example", "forms", "shown up to"], rows)


SECTIONS = {
    "input steps": input_steps,
    "output checks": output_checks,
    "forms": forms,
    "grammars": grammars,
}


def drawn_anew(text: str) -> str:
    return SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found[2]]()}\n{found[4]}", text)


def test_the_page_shows_what_the_reader_does() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS") == "1":
        PAGE.write_text(drawn_anew(text), encoding="utf-8")
        text = PAGE.read_text(encoding="utf-8")
    assert text == drawn_anew(text), "draw it anew with UPDATE_DOCS=1"
    assert [found[2] for found in SECTION.finditer(text)] == list(SECTIONS)


def test_the_examples_are_values() -> None:
    assert EXAMPLES.keys() == set(TYPES)
    assert [text for type_, text in EXAMPLES.items() if not fits(type_, text, 3)] == []


def test_other_pages_lead_to_it() -> None:
    for name in ("README.md", "SECURITY.md"):
        assert "docs/reader.md" in (PAGE.parents[1] / name).read_text(encoding="utf-8")


def test_every_signal_is_of_a_step() -> None:
    assert {code for step in STEPS for code in step.codes if code in SIGNALS} == set(SIGNALS)
