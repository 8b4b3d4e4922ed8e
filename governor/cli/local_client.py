"""Asks the governor of this host, over its Unix socket: as little HTTP/1.1 (RFC 9112) as that takes.

Written by hand because a whole HTTP library would take longer to load than the governor to answer.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from governor.cli.credentials import Credential
from governor.cli.failure import NO_ANSWER, NO_GOVERNOR, Failure

ANSWER_WITHIN_S: Final = 30.0
"""How long the governor may take beyond the wait that was asked for."""

TURN_S: Final = 60.0
"""Longest wait of one request; the local API permits no longer one."""

BODY_LIMIT: Final = 16 * 1024 * 1024
_LINE_LIMIT: Final = 8_192
_HEADERS_LIMIT: Final = 100
_REFUSED_FROM: Final = 400


def ask(
    credential: Credential,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    wait: float = 0.0,
) -> dict[str, Any]:
    """Return the governor's answer, or raise Failure: its own, NO_GOVERNOR, or NO_ANSWER.

    After NO_ANSWER it is not known whether the governor did what it was asked for.
    """
    request = _request(credential, method, path, None if body is None else json.dumps(body).encode())
    with _connect(credential, ANSWER_WITHIN_S + wait) as connection:
        try:
            connection.sendall(request)
            with connection.makefile("rb") as stream:
                status, raw = _read_answer(stream)
            answer: dict[str, Any] = {**json.loads(raw)}
            refused = status >= _REFUSED_FROM
            code = str(answer["error"]) if refused else ""
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise Failure(
                NO_ANSWER, f"The governor did not answer as it should ({type(error).__name__}). See its log."
            ) from error
    if refused:
        raise Failure(code, str(answer.get("message")), answer.get("reason"), answer.get("retry_at"))
    return answer


def ask_until(
    credential: Credential, path: str, span: float, enough: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Ask until it is enough or `span` seconds are over; return the last answer."""
    while True:
        turn = min(span, TURN_S)
        answer = ask(credential, "GET", f"{path}?wait={turn:.3f}", wait=turn)
        span -= turn
        if span <= 0 or enough(answer):
            return answer


def _request(credential: Credential, method: str, path: str, body: bytes | None) -> bytes:
    head = [f"{method} {path} HTTP/1.1", f"Host: {credential.place.tcp or 'localhost'}", "Connection: close"]
    if credential.token:
        head.append(f"Authorization: Bearer {credential.token}")
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode("ascii") + (body or b"")


def _connect(credential: Credential, timeout: float) -> socket.socket:
    """Connect by the socket; by TCP only where its folder is closed to us (another user's, a container).

    Where we can look into the folder and find no socket, no governor runs: whoever listens on the TCP
    port then would be handed the token.
    """
    path, tcp = credential.place
    try:
        if path and (not tcp or os.access(Path(path).parent, os.X_OK)):
            return _unix(path, timeout)
        host, _, port = tcp.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), timeout)
    except PermissionError as error:
        raise Failure(
            "config", f"You may not use {path}. Ask its operator to let your user into the socket's group."
        ) from error
    except (OSError, OverflowError) as error:
        raise Failure(
            NO_GOVERNOR,
            f"No governor answers at {path or tcp}. Start it: governor run (or look: governor service status)",
        ) from error


def _unix(path: str, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_answer(stream: BinaryIO) -> tuple[int, bytes]:
    """Return status and body; raises ValueError for what is no answer of a governor."""
    version, _, rest = _line(stream).partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("not HTTP")
    headers = {}
    for _ in range(_HEADERS_LIMIT):
        name, colon, value = _line(stream).partition(":")
        if not colon:
            break
        headers[name.lower()] = value.strip().lower()
    else:
        raise ValueError("too many headers")
    if headers.get("transfer-encoding") == "chunked":
        return int(rest[:3]), _chunks(stream)
    return int(rest[:3]), _exactly(stream, int(headers["content-length"]))


def _chunks(stream: BinaryIO) -> bytes:
    body = b""
    while size := int(_line(stream).partition(";")[0], 16):
        body += _exactly(stream, size, BODY_LIMIT - len(body))
        _line(stream)
    return body


def _line(stream: BinaryIO) -> str:
    line = stream.readline(_LINE_LIMIT)
    if not line.endswith(b"\n"):
        raise ValueError("cut off, or a line too long")
    return line.rstrip(b"\r\n").decode("latin-1")


def _exactly(stream: BinaryIO, size: int, limit: int = BODY_LIMIT) -> bytes:
    if not 0 <= size <= limit:
        raise ValueError("too long")
    found = stream.read(size)
    if len(found) != size:
        raise ValueError("cut off")
    return found
