"""One tree of errors. The docstring of a class is its default message.

`code` is stable and for machines, `status` is the HTTP status at the local API. Messages name the
next step where there is one.
"""

from datetime import datetime
from typing import ClassVar


class GovernorError(Exception):
    """Something went wrong in the governor."""

    code: ClassVar[str] = "governor_error"
    status: ClassVar[int] = 500

    def __init__(self, message: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        super().__init__(self.message)


class ConfigError(GovernorError):
    """The settings cannot be used."""

    code = "config"


class LocalError(GovernorError):
    """The request makes no sense here."""

    code = "bad_request"
    status = 400


class NotYoursError(LocalError):
    """There is no such thing, or it is not yours."""

    code = "not_found"
    status = 404


class CredentialError(LocalError):
    """The token is missing or unknown."""

    code = "credential"
    status = 401


class CodeError(LocalError):
    """The operator's code was not accepted."""

    code = "code"
    status = 403


class RefusedError(GovernorError):
    """Policy said no."""

    code = "refused"
    status = 409

    def __init__(self, reason: str, message: str | None = None, retry_at: datetime | None = None) -> None:
        super().__init__(message or f"refused: {reason}")
        self.reason = reason
        self.retry_at = retry_at


class PeerError(GovernorError):
    """A webhook that is not authenticated; all of them get one answer."""

    code = "peer"
    status = 401

    def __init__(self, detail: str) -> None:
        """Keep `detail` for this side's counters; it is never sent."""
        super().__init__()
        self.detail = detail


class TransportError(GovernorError):
    """The peer's governor could not be reached, or gave no answer that counts."""

    code = "transport"
    status = 502


class ReadingError(GovernorError):
    """The reader gave nothing that may be shown."""

    code = "reading"

    def __init__(self, drop: str, detail: str = "") -> None:
        super().__init__(f"dropped: {drop}" + (f" ({detail})" if detail else ""))
        self.drop = drop
        self.detail = detail


class ModelError(GovernorError):
    """The model file cannot be had, or not be served."""

    code = "model"


class WakeError(GovernorError):
    """The agent could not be woken; its inbox still holds the message."""

    code = "wake"


class StoreError(GovernorError):
    """The database cannot be used."""

    code = "store"
