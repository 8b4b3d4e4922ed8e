"""The operator's code: a TOTP (RFC 6238, SHA-1, 30 s, 6 digits) that proves a human at the CLI.

Each code counts once: the last step used is durable and shared by every process of this host. Five
wrong codes lock it for 10 minutes, then for an hour, then until a GO in Telegram.
"""

import base64
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from governor.audit.log import append
from governor.audit.record import AuditEvent, Entry
from governor.directory.notices import notify
from governor.errors import CodeError, LocalError
from governor.private_file import write_private
from governor.store.tables import OperatorCode
from governor.store.unit_of_work import Store, UnitOfWork

KEY_LENGTH = 16
"""Shortest key in bytes (RFC 4226, section 4, R6)."""

STEP_S = 30
WINDOW = 1
"""Steps before and after the present one that count: clocks of telephones differ."""

WRONG_BEFORE_LOCK = 5
LOCKS: tuple[timedelta, ...] = (timedelta(minutes=10), timedelta(hours=1))


def secret_file(home: Path) -> Path:
    """Return where the shared secret lies (0600)."""
    return home / "keys" / "operator.totp"


def enroll(store: Store, home: Path, now: datetime, new_secret: Callable[[], str]) -> str:
    """Make the secret and return it, to be shown once. Raises LocalError when there is one already."""
    path = secret_file(home)
    with store.begin() as uow:
        if uow.get(OperatorCode, 1) is not None:
            raise LocalError(
                "An operator's code is enrolled already. To enrol anew: governor operator enroll --code N"
            )
        secret = new_secret()
        write_private(path, f"{secret}\n".encode())
        uow.add(OperatorCode(enrolled_at=now))
        append(uow, now, Entry(AuditEvent.OPERATOR_ENROLLED))
    return secret


def enroll_anew(store: Store, home: Path, now: datetime, code: str, new_secret: Callable[[], str]) -> str:
    """Replace the secret, by right of a code of the old one. Raises CodeError."""
    check_code(store, home, now, code)
    with store.begin() as uow:
        row = uow.get(OperatorCode, 1)
        if row is not None:
            row.enrolled_at = now  # the last step stays: should the file not follow, no old code counts twice
        append(uow, now, Entry(AuditEvent.OPERATOR_ENROLLED, reason="anew"))
    secret = new_secret()
    write_private(secret_file(home), f"{secret}\n".encode())
    return secret


def check_code(store: Store, home: Path, now: datetime, code: str) -> None:
    """Take a code, once. Raises CodeError when it is wrong, used, or the code is locked."""
    secret = _read_secret(home)
    with store.begin() as uow:
        row = uow.get(OperatorCode, 1)
        if row is None:
            raise CodeError("No operator's code is enrolled. Do so: governor operator enroll")
        problem = _try(uow, row, secret, code, now)
    if problem is not None:
        raise CodeError(problem)


def unlock(uow: UnitOfWork) -> None:
    """Lift a lock: a named operator said GO in Telegram."""
    row = uow.get(OperatorCode, 1)
    if row is not None:
        row.failures, row.lockouts, row.locked_until, row.locked_for_good = 0, 0, None, False


def matching_step(secret: str, code: str, now: datetime) -> int | None:
    """Return the time step this code belongs to, within the window; None if to none."""
    import pyotp  # noqa: PLC0415 - only operators pay for it

    totp = pyotp.TOTP(secret)
    present = int(now.timestamp()) // STEP_S
    steps = range(present - WINDOW, present + WINDOW + 1)
    return next((step for step in steps if hmac.compare_digest(totp.generate_otp(step), code)), None)


def _try(uow: UnitOfWork, row: OperatorCode, secret: str, code: str, now: datetime) -> str | None:
    """Return what is wrong with the code, or None when it counts now."""
    if row.locked_for_good:
        return "Too many wrong codes: locked until a GO in Telegram."
    if row.locked_until and now < row.locked_until:
        return f"Too many wrong codes: locked until {row.locked_until:%H:%M:%S} UTC."
    step = matching_step(secret, code, now) if code.isascii() and code.isdigit() else None
    if step is not None and step > row.last_step:
        row.last_step, row.failures, row.lockouts, row.locked_until = step, 0, 0, None
        return None
    row.failures += 1
    append(uow, now, Entry(AuditEvent.CODE_REFUSED, reason="used" if step is not None else "wrong"))
    if row.failures >= WRONG_BEFORE_LOCK:
        _lock(uow, row, now)
    return "This code was used before. Wait for the next one." if step is not None else "Wrong code."


def _lock(uow: UnitOfWork, row: OperatorCode, now: datetime) -> None:
    row.failures = 0
    if row.lockouts < len(LOCKS):
        row.locked_until = now + LOCKS[row.lockouts]
    else:
        row.locked_for_good = True
    row.lockouts += 1
    until = "a GO in Telegram" if row.locked_for_good else f"{row.locked_until:%H:%M} UTC"
    append(uow, now, Entry(AuditEvent.CODE_LOCKED, reason="locked"))
    notify(uow, now, f"Five wrong operator's codes: CLI codes are locked until {until}.", lane="answer")


def _read_secret(home: Path) -> str:
    path = secret_file(home)
    try:
        secret = path.read_text(encoding="ascii").strip()
        key = base64.b32decode(secret)
    except FileNotFoundError:
        raise CodeError("No operator's code is enrolled. Do so: governor operator enroll") from None
    except (
        OSError,
        ValueError,
    ) as error:  # also binascii.Error, UnicodeDecodeError: their text could quote it
        reason = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise CodeError(f"{path} cannot be read ({reason}). Restore it from a backup.") from None
    if len(key) < KEY_LENGTH:  # the code of an empty key is known to everybody
        raise CodeError(f"{path} is cut off. Restore it from a backup.")
    return secret
