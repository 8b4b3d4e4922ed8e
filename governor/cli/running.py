"""`governor run`: serves until it is told to end."""

import argparse
from typing import TYPE_CHECKING

from governor.daemon import run

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `run`."""
    parser = subparsers.add_parser("run", help="run the governor until SIGTERM or Ctrl-C")
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    return run(args.home)
