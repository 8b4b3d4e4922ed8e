"""Which model retells in the demo, and the one server of a local model that both governors ask."""

import argparse
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from governor.errors import ModelError
from governor.model.keeper import READY_WITHIN_S, environment, serve_command
from governor.model.pinned import PINNED
from governor.model.serving import READY, has_runtime

HOSTED_MODEL: Final = "claude-haiku-4-5"


class Choice(NamedTuple):
    """How the demo's messages are read: the reader's mode, what to say of it, the settings of both homes.

    `file` is a model to be served first; `within` is how long a message may take, in seconds.
    """

    mode: str
    said: str
    settings: dict[str, str]
    file: Path | None = None
    within: float = 75.0


def choose(args: argparse.Namespace) -> Choice:
    """Choose a model that was named, else a local file, else none; and say how to get a better one."""
    file = PINNED.beside(args.home)
    if args.base_url or os.environ.get("ANTHROPIC_API_KEY"):
        model = args.model or HOSTED_MODEL
        said = f"Each message is retold by {model} at {args.base_url or 'its vendor'}."
        return Choice("rewrite", said, {"model": model, "base_url": args.base_url})
    if file.exists() and has_runtime():
        said = (
            f"Each message is retold by {PINNED.name} on this machine, one server for both governors;"
            " to load it takes a minute.\n"
            "A larger model retells better: set ANTHROPIC_API_KEY, or: governor demo --base-url URL --model NAME"
        )
        settings = {"model": PINNED.name, "deadline": "5m"}
        return Choice("rewrite", said, settings, file, within=600.0)
    said = (
        "No model: messages arrive as typed values only (paths, numbers, dates), without prose.\n"
        f"For a retelling: make model demo (fetches {PINNED.size // 10**6} MB once), or set ANTHROPIC_API_KEY,\n"
        "or name a server: governor demo --base-url URL --model NAME"
    )
    return Choice("values", said, {})


@contextlib.contextmanager
def served(choice: Choice, folder: Path) -> Iterator[dict[str, str]]:
    """Serve the model of a choice as long as the block runs; yield the settings that lead to it."""
    if choice.file is None:
        yield choice.settings
        return
    place = folder / "model" / "s.sock"
    with subprocess.Popen(
        serve_command(sys.executable, choice.file, place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as process:
        too_late = threading.Timer(READY_WITHIN_S, process.kill)
        too_late.start()
        try:
            said = process.stdout.readline() if process.stdout else ""
            if said.strip() != READY:
                raise ModelError("The model was not served. See why: governor model serve --socket PATH")
            too_late.cancel()
            yield choice.settings | {"base_url": f"unix:{place}"}
        finally:
            too_late.cancel()
            process.kill()
