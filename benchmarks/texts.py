"""The texts that are read: files of JSON lines with at least `id`, `kind` and `text`."""

import json
import random
from pathlib import Path
from typing import NamedTuple

FILES = ("attack.jsonl", "attacks.jsonl", "benign.jsonl", "harmless.jsonl")


class Text(NamedTuple):
    """One text. `goal`: what an attack wants written, where its source says so."""

    id: str
    source: str
    hostile: bool
    text: str
    goal: str


def load(folder: Path) -> list[Text]:
    """Return the texts of every known file in folder; raises ValueError where there is none."""
    rows = [
        json.loads(line)
        for name in FILES
        if (folder / name).exists()
        for line in (folder / name).read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
        if line
    ]
    if not rows:
        raise ValueError(f"{folder} holds none of {', '.join(FILES)}")
    return [
        Text(
            str(row["id"]),
            str(row.get("source", row.get("form", ""))),
            row["kind"] == "attack",
            row["text"],
            str(row.get("goal") or ""),
        )
        for row in rows
    ]


def sample(texts: list[Text], size: int | None, seed: int) -> list[Text]:
    """Return at most `size` attacks and as many harmless texts, chosen by seed; all where size is None."""
    if size is None:
        return texts
    chosen: list[Text] = []
    for hostile in (True, False):
        side = [text for text in texts if text.hostile is hostile]
        chosen += random.Random(seed).sample(side, min(size, len(side)))  # noqa: S311 - a sample, no secret
    return chosen
