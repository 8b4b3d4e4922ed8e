"""How a command fails: one line, an exit code from one table, the same facts as JSON with `--json`.

Nothing here loads the rest of the governor, so that the commands of agents start in milliseconds.
"""

import json
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final


class Exit(IntEnum):
    """Exit codes; EXIT_CODES says what they mean."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    UNREACHABLE = 4
    NO_GOVERNOR = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


EXIT_CODES: Final = {
    Exit.OK: "done",
    Exit.FAILED: "a check failed or the time of a wait is over; also a damaged database, or a bug",
    Exit.USAGE: "the command, the settings or this machine must be corrected as the message says",
    Exit.REFUSED: "refused, with the reason and what to wait for",
    Exit.UNREACHABLE: "not yet accepted by the peer's governor; kept in the outbox, so do not send again",
    Exit.NO_GOVERNOR: "no governor is running here, or it does not answer",
    Exit.INTERRUPTED: "interrupted with Ctrl-C",
    Exit.PIPE_CLOSED: "whoever read the output went away",
}
"""The exit codes as README and `governor --help` tell them."""

NO_GOVERNOR: Final = "no_governor"
NO_ANSWER: Final = "no_answer"

_EXIT_OF: Final = {
    "usage": Exit.USAGE,
    "config": Exit.USAGE,
    "bad_request": Exit.USAGE,
    "not_found": Exit.USAGE,
    "credential": Exit.USAGE,
    "host": Exit.USAGE,
    "model": Exit.USAGE,
    "refused": Exit.REFUSED,
    "code": Exit.REFUSED,
    "transport": Exit.UNREACHABLE,
    NO_GOVERNOR: Exit.NO_GOVERNOR,
    NO_ANSWER: Exit.NO_GOVERNOR,
}
"""The exit code of an error by its `code`, here and at the local API; any other is FAILED."""


class Failure(Exception):  # noqa: N818 - not every failure is an error: a refusal is an answer
    """A command could not do its work: a code for programs, a message for people.

    `reason` and `retry_at` (ISO 8601, UTC) come with a refusal.
    """

    def __init__(
        self, code: str, message: str, reason: str | None = None, retry_at: str | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.reason, self.retry_at = code, message, reason, retry_at

    @property
    def exit(self) -> Exit:
        """Return the exit code."""
        return _EXIT_OF.get(self.code, Exit.FAILED)

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        found = {"ok": False, "error": self.code, "message": self.message, "reason": self.reason}
        return found | ({"retry_at": self.retry_at} if self.retry_at else {})

    def line(self) -> str:
        """Return what people read: one line."""
        reason = f"refused ({self.reason}): " if self.reason else ""
        again = f" Not before {clock_time(self.retry_at)}." if self.retry_at else ""
        return f"governor: {reason}{' '.join(self.message.split())}{again}"


def clock_time(instant: str) -> str:
    """Return HH:MM of an instant in ISO 8601, which the local API gives in UTC."""
    return f"{instant[11:16]} UTC"


def told(work: Callable[[], int], *, as_json: bool) -> int:
    """Do the work of a command and return its exit code; tell what goes wrong."""
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - whatever it is, people get one line and no trace
        return _tell(error, as_json=as_json)
    return code


def _tell(error: Exception, *, as_json: bool) -> int:
    failure = _failure_of(error)
    if os.environ.get("GOVERNOR_DEBUG"):
        import traceback  # noqa: PLC0415 - only who looks for a bug needs it

        traceback.print_exception(error)
    if as_json:
        print(json.dumps(failure.document()))
    else:
        print(failure.line(), file=sys.stderr)
    return failure.exit


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    errors = sys.modules.get("governor.errors")  # not loaded: then it is none of these
    if errors and isinstance(error, errors.GovernorError):
        at = getattr(error, "retry_at", None)
        return Failure(
            error.code, error.message, getattr(error, "reason", None), at.isoformat() if at else None
        )
    if isinstance(error, OSError) and error.strerror:  # a full disk names no file
        where = f"{error.filename}: " if error.filename else ""
        return Failure("host", f"{where}{error.strerror}. Mend that and try again.")
    return Failure("bug", f"This is a bug: {_where(error)}. Please report it; GOVERNOR_DEBUG=1 shows more.")


def _where(error: Exception) -> str:
    """Name an error by its kind and place; what it says may hold foreign text."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{place}"
