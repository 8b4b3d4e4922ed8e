"""How a command answers: lines for people, one JSON document for programs, errors in either form."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from governor.cli.failure import Exit, told

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no other name


class Answer(NamedTuple):
    """What a command has to say: the same facts as lines and as a JSON document.

    `notes` are lines for people only: they go to standard error, so that `lines` can be piped on.
    """

    lines: Sequence[str]
    document: dict[str, Any]
    code: int = Exit.OK
    notes: Sequence[str] = ()


def answering(work: Callable[[argparse.Namespace], Answer]) -> Callable[[argparse.Namespace], int]:
    """Make an argparse `func` of work: print its answer or its error, return the exit code.

    With `--json` standard output holds one JSON object: the document with `"ok"`, or
    `{"ok": false, "error": CODE, "message": TEXT, "reason": REASON or null}`.
    """

    def give(args: argparse.Namespace) -> int:
        answer = work(args)
        if args.json:
            print(json.dumps({"ok": answer.code == Exit.OK, **answer.document}))
            return answer.code
        for line in answer.lines:
            print(line)
        sys.stdout.flush()
        for note in answer.notes:
            print(note, file=sys.stderr)
        return answer.code

    return lambda args: told(lambda: give(args), as_json=args.json)
