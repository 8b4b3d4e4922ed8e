"""The log: JSON lines on standard error, which launchd or journald keeps. No line holds a text or a secret.

Our own code names an event and chosen facts. Of what libraries and bugs say only the template is kept,
and kind and place of an exception: what is filled in, an exception's message or a traceback could
quote a message or a key.
"""

import asyncio
import logging
import sys
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Final

import structlog
from structlog.stdlib import BoundLogger, LoggerFactory, ProcessorFormatter

from governor.clock import Clock

OURS: Final = "governor"
"""The logger of our own code, from `info` on; of all others only warnings and errors are kept."""

Line = MutableMapping[str, Any]

log = structlog.get_logger(__name__)


def write_logs(clock: Clock) -> None:
    """Let everything that this process logs be one JSON line each on standard error."""

    def dated(_logger: object, _name: str, line: Line) -> Line:
        line["at"] = clock.now().isoformat(timespec="milliseconds")
        return line

    shared = (structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, dated, _without_trace)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, ProcessorFormatter.wrap_for_formatter],
        logger_factory=LoggerFactory(),
        wrapper_class=BoundLogger,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            processors=[ProcessorFormatter.remove_processors_meta, structlog.processors.JSONRenderer()],
            foreign_pre_chain=[_first_line, *shared],
            use_get_message=False,  # the template, without what would be filled in
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(OURS).setLevel(logging.INFO)
    logging.raiseExceptions = False  # a log that cannot be written (full disk) must not end what it is about
    logging.captureWarnings(capture=True)


def log_unhandled(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what no task of an event loop caught; for `loop.set_exception_handler`."""
    log.error("unhandled", exc_info=context.get("exception"))


def place_of(trace: TracebackType | None) -> str:
    """Return file and line of the innermost call of a traceback."""
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "unknown"


def _without_trace(_logger: object, _name: str, line: Line) -> Line:
    """Put kind and place in the place of an exception."""
    line.pop("stack_info", None)
    error = line.pop("exc_info", None)
    if error is True:
        error = sys.exception()
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        line["error"], line["where"] = type(error).__name__, place_of(error.__traceback__)
    return line


def _first_line(_logger: object, _name: str, line: Line) -> Line:
    line["event"] = line["event"].strip().partition("\n")[0]
    return line
