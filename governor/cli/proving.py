"""Has a human prove with the operator's code that it is a human who acts."""

import argparse
import sys

from governor.cli.arguments import code
from governor.cli.failure import Failure
from governor.supervision.operator_code import check_code
from governor.supervision.switching import note_activity
from governor.wiring import Home

BY_CODE = "cli:code"
"""Who acted, in the audit log and in notices: whoever held the operator's code."""


def prove(home: Home, args: argparse.Namespace) -> None:
    """Take the code of `args`, or ask for it on a terminal; raises CodeError, or Failure without one."""
    given = args.code or _asked()
    now = home.host.clock.now()
    check_code(home.store, home.path, now, given)
    note_activity(home.store, home.host, BY_CODE, now)


def _asked() -> str:
    if not sys.stdin.isatty():
        raise Failure(
            "usage", "The operator's code is needed: --code N. It is made by: governor operator enroll"
        )
    print("The operator's code: ", end="", file=sys.stderr, flush=True)
    try:
        return code(sys.stdin.readline(100))
    except argparse.ArgumentTypeError as error:
        raise Failure("usage", f"That is none: {error}.") from None
