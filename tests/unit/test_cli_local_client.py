import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from governor.cli.credentials import Credential, Place
from governor.cli.failure import Failure
from governor.cli.local_client import BODY_LIMIT, ask, ask_until

Answering = Callable[..., Credential]


class Server:
    """Answers each connection on a Unix socket with the next of some bytes; keeps what it was sent."""

    def __init__(self, path: Path, answers: list[bytes]) -> None:
        self.seen: list[bytes] = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, args=(answers,))
        self.thread.start()

    def serve(self, answers: list[bytes]) -> None:
        for answer in answers:
            connection, _ = self.listener.accept()
            with connection:
                self.seen.append(self.request(connection))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(answer)

    def request(self, connection: socket.socket) -> bytes:
        found = b""
        while b"\r\n\r\n" not in found:
            found += connection.recv(65536)
        head, _, body = found.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"Content-Length" in line), 0
        )
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def close(self) -> None:
        self.thread.join(30)
        self.listener.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[Server, Credential]]]:
    made: list[Server] = []

    def serve(*answers: bytes) -> tuple[Server, Credential]:
        made.append(Server(tmp_path / "s", list(answers)))
        return made[-1], Credential("max", "bgt_1", Place(str(tmp_path / "s"), ""))

    yield serve
    for server in made:
        server.close()


def http(body: bytes, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body


def test_a_request_is_plain_http(serve: Answering) -> None:
    server, credential = serve(http(b'{"id": "m_1"}'))
    assert ask(credential, "POST", "/v1/messages", {"text": "d\u00e9j\u00e0"}) == {"id": "m_1"}
    (request,) = server.seen
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /v1/messages HTTP/1.1",
        b"Host: localhost",
        b"Connection: close",
        b"Authorization: Bearer bgt_1",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
    ]
    assert json.loads(body) == {"text": "d\u00e9j\u00e0"}


def test_without_a_token_none_is_sent(serve: Answering) -> None:
    server, credential = serve(http(b"{}"))
    ask(credential._replace(token=""), "GET", "/healthz")
    assert b"Authorization" not in server.seen[0]
    assert b"Content-Length" not in server.seen[0]


def test_a_chunked_answer_is_put_together(serve: Answering) -> None:
    chunks = b'4\r\n{"a"\r\n5;x=y\r\n: 17}\r\n0\r\n\r\n'
    _, credential = serve(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunks)
    assert ask(credential, "GET", "/") == {"a": 17}


def test_an_error_of_the_governor_is_told_as_it_is(serve: Answering) -> None:
    body: dict[str, Any] = {
        "error": "refused",
        "message": "No.",
        "reason": "limit",
        "retry_at": "2026-03-02T09:10:00Z",
    }
    _, credential = serve(http(json.dumps(body).encode(), "409 Conflict"))
    with pytest.raises(Failure) as failure:
        ask(credential, "GET", "/")
    assert failure.value.document() == {"ok": False, **body}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 2xx OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n{}" % (BODY_LIMIT + 1),
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"content-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\na: " + b"b" * 10_000 + b"\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n%x\r\n" % BODY_LIMIT,
        http(b"[1]"),
        http(b"null"),
        http(b"\xff"),
        http(b"[" * 100_000),
        http(b"oops", "500 Internal Server Error"),
        http(b'{"message": "no code"}', "400 Bad Request"),
    ],
)
def test_what_is_no_answer_of_a_governor_is_told_apart(serve: Answering, answer: bytes) -> None:
    _, credential = serve(answer)
    with pytest.raises(Failure) as failure:
        ask(credential, "GET", "/")
    assert failure.value.code == "no_answer"
    assert failure.value.exit == 5


def test_an_answer_without_end_is_not_taken(serve: Answering) -> None:
    _, credential = serve(http(b'{"a": "' + b"x" * BODY_LIMIT + b'"}'))
    with pytest.raises(Failure) as failure:
        ask(credential, "GET", "/")
    assert failure.value.code == "no_answer"


def test_a_long_wait_is_asked_for_in_turns(serve: Answering) -> None:
    server, credential = serve(*[http(b'{"waiting": 0}')] * 2, http(b'{"waiting": 1}'))
    assert ask_until(credential, "/v1/waiting", 150, lambda now: now["waiting"] > 0) == {"waiting": 1}
    assert [request.split()[1] for request in server.seen] == [
        b"/v1/waiting?wait=60.000",
        b"/v1/waiting?wait=60.000",
        b"/v1/waiting?wait=30.000",
    ]


def test_a_wait_without_end_ends_when_it_is_enough(serve: Answering) -> None:
    server, credential = serve(http(b'{"waiting": 0}'), http(b'{"waiting": 1}'))
    assert ask_until(credential, "/v1/waiting", float("inf"), lambda now: now["waiting"] > 0) == {
        "waiting": 1
    }
    assert len(server.seen) == 2


@pytest.mark.parametrize("left", ["nothing", "a stale socket", "a file"])
def test_where_nobody_answers_no_governor_runs(tmp_path: Path, left: str) -> None:
    path = tmp_path / "s"
    if left == "a file":
        path.write_text("")
    elif left == "a stale socket":
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(path))
    with pytest.raises(Failure, match=r"No governor answers at .*governor run") as failure:
        ask(Credential("max", "bgt_1", Place(str(path), "")), "GET", "/")
    assert failure.value.exit == 5


def test_a_token_is_not_shown_to_whoever_took_the_port_of_a_governor_that_does_not_run(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        tcp = f"127.0.0.1:{squatter.getsockname()[1]}"
        with pytest.raises(Failure) as failure:
            ask(Credential("max", "bgt_1", Place(str(tmp_path / "s"), tcp)), "GET", "/")
        assert failure.value.code == "no_governor"
        squatter.setblocking(False)
        with pytest.raises(BlockingIOError):
            squatter.accept()


def test_a_path_too_long_for_a_socket_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No governor answers"):
        ask(Credential("max", "bgt_1", Place(f"{tmp_path}/{'x' * 200}", "")), "GET", "/")
