"""The tables and pictures in docs/ are drawn from the tables in the code, and are up to date.

`UPDATE_DOCS=1 pytest tests/project/test_diagrams.py` writes them.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from governor.message import InboundState, OutboundState, Switch
from governor.policy.lives import (
    INBOUND,
    INBOUND_FINAL,
    INBOUND_STARTS,
    OUTBOUND,
    OUTBOUND_FINAL,
    OUTBOUND_LEFT,
    OUTBOUND_STARTS,
    InboundEvent,
    OutboundEvent,
)
from governor.policy.state import LinkState
from governor.policy.switch import SWITCH, SwitchEvent, Turn

DOCS = Path(__file__).parents[2] / "docs"
SECTION = re.compile(r"(<!-- drawn: ([a-z ]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)

Arrow = tuple[str, str, str]
"""From, to, what is written on it."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def diagram(arrows: Iterable[Arrow]) -> str:
    labels: dict[tuple[str, str], list[str]] = {}
    for before, after, label in arrows:
        labels.setdefault((before, after), []).append(label)
    lines = [
        f"    {before} --> {after}" + (f": {', '.join(filter(None, events))}" if any(events) else "")
        for (before, after), events in labels.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```", ""])


def switch_cell(turn: Turn) -> str:
    becomes = turn.to.value if turn.to else "keeps" if turn.effects or turn.watches else "-"
    follows = [*(["deadline anew"] if turn.watches else []), *turn.effects]
    return f"{becomes}; {', '.join(follows)}" if follows else becomes


def switch_table() -> str:
    return table(
        ["event", *Switch],
        [[event, *(switch_cell(SWITCH[event][state]) for state in Switch)] for event in SwitchEvent],
    )


def switch_diagram() -> str:
    new = LinkState()
    assert new.reason is not None
    changes = [
        (state.value, turn.to.value, event.value)
        for event, row in SWITCH.items()
        for state, turn in row.items()
        if turn.to
    ]
    return diagram([("[*]", new.switch.value, new.reason.value), *changes, (Switch.REVOKED.value, "[*]", "")])


def outbound_table() -> str:
    def row(event: OutboundEvent) -> list[str]:
        queued = (OutboundState.QUEUED, event)
        cells = [
            OUTBOUND_STARTS.get(event),
            OUTBOUND.get(queued),
            OUTBOUND_LEFT.get(queued, OUTBOUND.get(queued)),
        ]
        others = (OutboundState.HELD, OutboundState.SENDING, OutboundState.UNCONFIRMED)
        return [
            event,
            *(cell or "" for cell in [*cells, *(OUTBOUND.get((state, event)) for state in others)]),
        ]

    head = ["event", "(new)", "queued", "queued, bytes left", "held", "sending", "unconfirmed"]
    return table(head, map(row, OutboundEvent))


def outbound_diagram() -> str:
    return life(
        OUTBOUND_STARTS.items(),
        [
            *((before, after, event.value) for (before, event), after in OUTBOUND.items()),
            *(
                (before, after, f"{event.value} (bytes left)")
                for (before, event), after in OUTBOUND_LEFT.items()
            ),
        ],
        [state for state in OutboundState if state in OUTBOUND_FINAL],
    )


def inbound_table() -> str:
    states = [state for state in InboundState if state not in INBOUND_FINAL]
    rows = [
        [event, INBOUND_STARTS.get(event, ""), *(INBOUND.get((state, event), "") for state in states)]
        for event in InboundEvent
    ]
    return table(["event", "(new)", *states], rows)


def inbound_diagram() -> str:
    arrows = [(before.value, after.value, event.value) for (before, event), after in INBOUND.items()]
    return life(INBOUND_STARTS.items(), arrows, [state for state in InboundState if state in INBOUND_FINAL])


def life(starts: Iterable[tuple[str, str]], arrows: Iterable[Arrow], finals: Iterable[str]) -> str:
    begin = [("[*]", state, str(event)) for event, state in starts]
    return diagram([*begin, *arrows, *((state, "[*]", "") for state in finals)])


SECTIONS = {
    "switch table": switch_table,
    "switch diagram": switch_diagram,
    "outbound table": outbound_table,
    "outbound diagram": outbound_diagram,
    "inbound table": inbound_table,
    "inbound diagram": inbound_diagram,
}


def drawn_anew(text: str) -> str:
    return SECTION.sub(lambda found: f"{found[1]}\n{SECTIONS[found[2]]()}\n{found[4]}", text)


@pytest.mark.parametrize("name", ["switch.md", "lives.md"])
def test_a_page_shows_what_the_code_does(name: str) -> None:
    page = DOCS / name
    text = page.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS") == "1":
        page.write_text(drawn_anew(text), encoding="utf-8")
        text = page.read_text(encoding="utf-8")
    assert text == drawn_anew(text), "draw it anew with UPDATE_DOCS=1"


def test_every_table_and_picture_has_its_place_once() -> None:
    places = [
        found[2]
        for name in ("switch.md", "lives.md")
        for found in SECTION.finditer((DOCS / name).read_text())
    ]
    assert sorted(places) == sorted(SECTIONS)


def test_a_picture_differs_when_its_table_does() -> None:
    arrows = [
        ("[*]", "queued", "submitted"),
        ("queued", "sending", "picked"),
        ("queued", "sending", "pushed"),
    ]
    assert diagram(arrows).splitlines()[2:4] == [
        "    [*] --> queued: submitted",
        "    queued --> sending: picked, pushed",
    ]
    assert diagram(arrows[:2]) != diagram(arrows)
