"""README's tables are the code's; UPDATE_DOCS=1 (make docs) writes them."""

import os
import re
from pathlib import Path

import pytest

from governor.cli.main import COMMANDS, EXIT_CODES
from governor.config import known_keys, toml_value
from governor.delivery.render import render
from reader.contract import Kind, Rewrite, Value

README = Path(__file__).parents[2] / "README.md"


def commands() -> str:
    rows = [f"| `governor {name}` | {command.help} |" for name, command in COMMANDS.items()]
    return "\n".join(["| command | what it does |", "|---|---|", *rows])


def exit_codes() -> str:
    rows = [f"| {int(code)} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def settings() -> str:
    rows = [
        f"| `{key.replace('links.*', 'links.PEER')}` | `{toml_value(field.default)}` | {field.description} |"
        for key, field in known_keys().items()
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def frame() -> str:
    rewrite = Rewrite(
        kind=Kind.REQUEST,
        summary="A review of a rounding change is asked for.",
        points=("The total of an order is off in a few runs.",),
        wants=("A review by the fourth of December.",),
        values=(Value("path", "src/billing/invoice.py:214"), Value("pull", "PR #482")),
        signals=(),
    )
    return render(
        rewrite,
        sender="max@max-host",
        message_id="m_0123456789abcdef0123",
        conversation="c_0123456789abcdef0123",
        in_reply_to=None,
        answer_by=None,
    )


PARTS = {"commands": commands, "exit-codes": exit_codes, "settings": settings}


@pytest.mark.parametrize("name", PARTS)
def test_table_is_the_codes(name: str) -> None:
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"(<!-- {name}: generated[^>]*-->\n)(.*?)(<!-- end -->)", text, re.DOTALL)
    assert found is not None
    wanted = PARTS[name]() + "\n"
    if os.environ.get("UPDATE_DOCS") == "1":
        text = text[: found.start(2)] + wanted + text[found.end(2) :]
        README.write_text(text, encoding="utf-8")
        return
    assert found[2] == wanted, "run: make docs"


def test_the_frame_shown_is_what_agents_get() -> None:
    text = README.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS") == "1":
        text = re.sub(
            r"(whatever the other side wrote:\n\n```text\n).*?(\n```)",
            lambda m: m[1] + frame().strip() + m[2],
            text,
            flags=re.DOTALL,
        )
        README.write_text(text, encoding="utf-8")
        return
    assert frame().strip() in text, "run: make docs"
