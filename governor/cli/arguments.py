"""Arguments that several commands share."""

import argparse
import re
from argparse import ArgumentParser

WAIT_MOST_S = 86_400


def add_json(parser: ArgumentParser) -> None:
    """Let a command print JSON."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_speaker(parser: ArgumentParser) -> None:
    """Let a command of agents say who speaks, and print JSON."""
    parser.add_argument(
        "--as",
        dest="who",
        metavar="NAME",
        help="the agent that speaks; default: $GOVERNOR_AGENT, or the only one",
    )
    add_json(parser)


def add_code(parser: ArgumentParser, what_for: str) -> None:
    """Let a command take the operator's code."""
    parser.add_argument(
        "--code",
        type=code,
        metavar="N",
        help=f"the operator's code, 6 digits, {what_for}; asked for on a terminal",
    )


def code(value: str) -> str:
    """Read a code as authenticator apps show it; what has not the form of one is no wrong try."""
    digits = "".join(value.split())
    if not re.fullmatch(r"[0-9]{6}", digits, re.ASCII):
        raise argparse.ArgumentTypeError("an operator's code has 6 digits")
    return digits


def seconds(value: str) -> float:
    """Read a span of at most a day in seconds."""
    try:
        span = float(value)
    except ValueError:
        span = -1.0
    if not 0 <= span <= WAIT_MOST_S:
        raise argparse.ArgumentTypeError(f"{value!r} is no number of seconds from 0 to {WAIT_MOST_S}")
    return span


def message_id(value: str) -> str:
    """Read the id of a message; it becomes a part of a path."""
    if not re.fullmatch(r"[A-Za-z0-9_]{1,64}", value, re.ASCII):
        raise argparse.ArgumentTypeError(f"{value!r} is not an id; copy it from: governor inbox")
    return value
