"""How a command answers: lines for people, one JSON document for programs, errors in either form."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from governor.errors import GovernorError

FAILED = 1
"""Exit code of a command that could not do its work; 2 is argparse's, for wrong usage."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command has to say: the same facts as lines and as a JSON document."""

    lines: Sequence[str]
    document: dict[str, Any]
    code: int = 0


def answering(work: Callable[[argparse.Namespace], Answer]) -> Callable[[argparse.Namespace], int]:
    """Make an argparse `func` of work: print its answer or its error, return the exit code.

    With `--json` standard output holds one JSON object: the document with `"ok"`, or
    `{"ok": false, "error": CODE, "message": TEXT}`.
    """

    def func(args: argparse.Namespace) -> int:
        try:
            answer = work(args)
        except GovernorError as error:
            if args.json:
                print(json.dumps({"ok": False, "error": error.code, "message": error.message}))
            else:
                print(f"governor: {error.message}", file=sys.stderr)
            return FAILED
        if args.json:
            print(json.dumps({"ok": answer.code == 0, **answer.document}))
        else:
            for line in answer.lines:
                print(line)
        return answer.code

    return func
