"""Strangers, revoked peers and clumsy clients at the real listener, over raw sockets and real TLS."""

import contextlib
import os
import re
import resource
import socket
import ssl
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from governor.webhook.incoming import WireType
from governor.webhook.signing import SigningKey, signed_headers
from governor.webhook.wire import encode_control
from tests.ports import free_ports
from tests.real_processes import RealPair, RealSide, ended_after, until
from tests.webhook_samples import write_pair

pytestmark = pytest.mark.processes

REQUEST = "Build 7731 of src/app.py:12 is green."
LOOK = b"GET /healthz HTTP/1.1\r\nhost: max\r\nconnection: close\r\n\r\n"
REFUSED = b'{"error":"unauthenticated"}'
REFUSED_WHOLE = (
    b"HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: 27\r\n"
    b"content-type: application/json\r\n\r\n" + REFUSED
)
"""The answer to everything that proves nothing, less its date."""

IDLE = 200


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPair]:
    """Max and Eva, who trust each other; the listener under attack is Max's."""
    made = RealPair(tmp_path_factory.mktemp("listener"))
    with ended_after(*made.sides):
        made.open()
        yield made


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealSide]:
    """A governor behind a proxy: whoever reaches the port may speak HTTP to it."""
    made = RealSide("zoe-host", "zoe", tmp_path_factory.mktemp("proxied") / "zoe", *free_ports(2))
    made.make(tls="proxy")
    with ended_after(made):
        made.start()
        yield made


def own_key(side: RealSide) -> str:
    return side.rows("SELECT fingerprint FROM host_key WHERE state = 'active'")[0][0]


def pem(side: RealSide) -> Path:
    return side.home / "keys" / f"{own_key(side)}.pem"


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 60)


def over_tls(
    side: RealSide, own: Path | None, *, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> ssl.SSLSocket:
    """Connect, showing the certificate in a file or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = most
    if own is not None:
        context.load_cert_chain(own)
    return context.wrap_socket(connected(side.peer_port))


def rest(connection: socket.socket) -> bytes:
    """Return all that comes until the other end closes; a cut is an end too."""
    found = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while chunk := connection.recv(65536):
            found += chunk
    return found


def asked(connection: socket.socket, request: bytes) -> bytes:
    """Send a request on a connection, and return all that comes back."""
    with connection:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            connection.sendall(request)
        return rest(connection)


def one_answer(connection: socket.socket) -> bytes:
    """Return one answer of a connection that stays open."""
    found = b""
    while not (length := re.search(rb"content-length: (\d+)\r\n(?:.*\r\n)*\r\n", found)):
        chunk = connection.recv(65536)
        assert chunk, found
        found += chunk
    while len(found) < length.end() + int(length[1]):
        found += connection.recv(65536)
    return found


def hello(sender: RealSide, receiver: RealSide, **changed: str) -> bytes:
    """Return a whole request that is signed as it should be; `changed` headers are spoilt."""
    now = datetime.now(UTC)
    key = SigningKey.from_secret(pem(sender).with_suffix(".sign").read_text().strip())
    body = encode_control(
        WireType.HELLO,
        {"open": True},
        from_fp=own_key(sender),
        to_fp=own_key(receiver),
        seq=1,
        now=now,
        expires_at=now + timedelta(minutes=1),
    )
    headers = signed_headers([key], f"w_{os.urandom(8).hex()}", now, body)
    headers |= {"governor-key": own_key(sender), "content-type": "application/json"}
    headers |= {"host": "max", "content-length": str(len(body))} | changed
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /hooks HTTP/1.1\r\n{lines}\r\n".encode() + body


def taken(side: RealSide, requests: bytes) -> int:
    """Return how many of the webhooks in these bytes a governor has taken."""
    ids = {found.decode() for found in re.findall(rb"webhook-id: (\w+)\r", requests)}
    seen = {row[0] for row in side.rows("SELECT webhook_id FROM seen_webhook")}
    return len(ids & seen)


def bare(answer: bytes) -> bytes:
    """Return an answer without its date."""
    return re.sub(rb"date: [^\r]+\r\n", b"", answer)


def gets_through(pair: RealPair) -> bool:
    request = hello(pair.eva, pair.max)
    with over_tls(pair.max, pem(pair.eva)) as connection:
        connection.sendall(request)
        assert one_answer(connection).startswith(b"HTTP/1.1 202 ")
    return taken(pair.max, request) == 1


def test_a_peer_gets_through(pair: RealPair) -> None:
    """Without this, all of the below could be refused for another reason."""
    assert gets_through(pair)


def test_without_a_paired_certificate_no_byte_is_heard_or_said(pair: RealPair, tmp_path: Path) -> None:
    request = hello(pair.eva, pair.max)
    foreign = tmp_path / "foreign.pem"
    write_pair(foreign, "eva-host")
    for own in (None, foreign, pem(pair.max)):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            assert asked(over_tls(pair.max, own), request) == b""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        over_tls(pair.max, pem(pair.eva), most=ssl.TLSVersion.TLSv1_2)
    assert b"HTTP" not in asked(connected(pair.max.peer_port), request)
    assert b"HTTP" not in asked(connected(pair.max.peer_port), b"\x16\x03\x01" + os.urandom(300))
    assert taken(pair.max, request) == 0


def test_a_long_body_is_refused_by_what_was_declared(pair: RealPair) -> None:
    head = b"POST /hooks HTTP/1.1\r\nhost: max\r\ncontent-length: 10485760\r\nexpect: 100-continue\r\n\r\n"
    answer = asked(over_tls(pair.max, pem(pair.eva)), head)  # of the body nothing is sent
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b"\r\n\r\n" + REFUSED)


def test_a_body_without_a_length_is_refused_however_well_signed(pair: RealPair) -> None:
    head, _, body = hello(pair.eva, pair.max).partition(b"\r\n\r\n")
    chunked = re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", head)
    request = chunked + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    assert bare(asked(over_tls(pair.max, pem(pair.eva)), request)) == REFUSED_WHOLE
    assert taken(pair.max, request) == 0


AMBIGUOUS = {
    "no length": b"",
    "chunked": b"transfer-encoding: chunked\r\n",
    "two lengths": b"content-length: 0\r\ncontent-length: %d\r\n",
    "a list of lengths": b"content-length: 0, %d\r\n",
    "length and chunked": b"content-length: %d\r\ntransfer-encoding: chunked\r\n",
    "chunked and length": b"transfer-encoding: chunked\r\ncontent-length: %d\r\n",
    "chunked in disguise": b"content-length: %d\r\ntransfer-encoding: xchunked\r\n",
    "chunked twice": b"transfer-encoding: chunked, chunked\r\n",
    "a tab before chunked": b"transfer-encoding:\tchunked\r\n",
    "a space before the colon": b"content-length : %d\r\n",
    "a folded header": b"content-length:\r\n %d\r\n",
    "a plus": b"content-length: +%d\r\n",
    "a minus": b"content-length: -1\r\n",
    "hexadecimal": b"content-length: 0x%x\r\n",
    "bare line feeds": b"content-length: %d\nx: y\r\n",
    "a zero byte": b"x: \x00\r\ncontent-length: %d\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_where_a_request_ends_is_never_open_to_doubt(pair: RealPair, name: str) -> None:
    """A second, honest request follows as the body of an ambiguous one: it is not taken for one."""
    inner = hello(pair.eva, pair.max)
    lines = AMBIGUOUS[name]
    lines = lines % len(inner) if b"%" in lines else lines
    outer = b"POST /hooks HTTP/1.1\r\nhost: max\r\ncontent-type: application/json\r\n" + lines + b"\r\n"
    answer = asked(over_tls(pair.max, pem(pair.eva)), outer + b"0\r\n\r\n" + inner)
    assert answer.count(b"HTTP/1.1") <= 1
    assert bare(answer) in {b"", REFUSED_WHOLE}
    assert taken(pair.max, inner) == 0


def test_pipelined_requests_are_not_queued(pair: RealPair) -> None:
    requests = b"".join(hello(pair.eva, pair.max) for _ in range(10))
    answer = asked(over_tls(pair.max, pem(pair.eva)), requests)
    assert answer.count(b" 202 ") <= 1
    assert taken(pair.max, requests) <= 1


def test_what_never_ends_is_cut(pair: RealPair) -> None:
    whole = hello(pair.eva, pair.max)
    pieces = [b"", b"POST /ho", whole[:60], whole[:-1], b"POST /hooks HTTP/1.1\r\nx: " + b"a" * 8000]
    with contextlib.ExitStack() as held:
        slow = []
        for piece in pieces:
            slow.append(held.enter_context(over_tls(pair.max, pem(pair.eva))))
            slow[-1].sendall(piece)
        silent = held.enter_context(connected(pair.max.peer_port))  # never begins TLS
        for connection in (*slow, silent):
            assert b" 202 " not in rest(connection)
    assert taken(pair.max, whole) == 0


def test_idle_connections_keep_nobody_out(pair: RealPair) -> None:
    pair.open()
    with contextlib.ExitStack() as held:
        for _ in range(IDLE):
            held.enter_context(connected(pair.max.peer_port))
            held.enter_context(connected(pair.max.local_port))
        for _ in range(IDLE // 2):
            held.enter_context(over_tls(pair.max, pem(pair.eva)))
        there = pair.max.must("send", "--to", "eva", "--wait", "60", "-", stdin=REQUEST)
        back = pair.eva.must("send", "--to", "max", "--wait", "60", "-", stdin=REQUEST)
        assert (there["state"], back["state"]) == ("accepted", "accepted")
        assert pair.max.must("agents")["agents"] == ["eva@eva-host"]
        with connected(pair.max.local_port) as local:
            local.sendall(f"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:{pair.max.local_port}\r\n\r\n".encode())
            assert one_answer(local).startswith(b"HTTP/1.1 200 ")
        until(lambda: back["id"] in {message["id"] for message in pair.max.inbox()})


@pytest.mark.skipif(sys.platform != "linux", reason="a running process's limits are set by prlimit(2)")
def test_without_a_free_descriptor_it_waits_and_goes_on(pair: RealPair) -> None:
    pid = pair.max.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (10, before[1]))
    try:
        with contextlib.ExitStack() as held:
            for _ in range(5):
                held.enter_context(connected(pair.max.peer_port))
            connection = held.enter_context(connected(pair.max.local_port))
            connection.settimeout(2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert pair.max.must("agents")["agents"] == ["eva@eva-host"]
    assert gets_through(pair)


def test_all_that_proves_nothing_gets_the_same_bytes(pair: RealPair, proxied: RealSide) -> None:
    whole = hello(pair.eva, pair.max)  # signed, but by nobody that this governor knows
    head, _, body = whole.partition(b"\r\n\r\n")
    requests = {
        "a stranger's signature": whole,
        "no signature": re.sub(rb"webhook-signature: [^\r]+\r\n", b"", whole),
        "an unreadable signature": re.sub(
            rb"webhook-signature: [^\r]+", b"webhook-signature: v1a,\xff\xfe", whole
        ),
        "an old one": re.sub(rb"(webhook-timestamp: )\d+", rb"\g<1>1", whole),
        "an id of no form": re.sub(rb"(webhook-id: )\S+", rb"\1../..", whole),
        "no key": re.sub(rb"governor-key: [^\r]+\r\n", b"", whole),
        "our own key": hello(pair.eva, pair.max, **{"governor-key": own_key(proxied)}),
        "no JSON": re.sub(rb"application/json", b"text/plain", whole),
        "no body": head.replace(b"content-length: %d" % len(body), b"content-length: 0") + b"\r\n\r\n",
        "no length": re.sub(rb"content-length: \d+\r\n", b"", whole),
        "chunked": re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", head)
        + b"\r\n\r\n0\r\n\r\n",
        "another route": whole.replace(b"/hooks", b"/v1/inbox"),
        "a slash too many": whole.replace(b"/hooks", b"/hooks/"),
        "the root": whole.replace(b"/hooks", b"/"),
        "another method": whole.replace(b"POST", b"PUT"),
        "GET": b"GET /hooks HTTP/1.1\r\nhost: zoe\r\n\r\n",
        "a method of no one": b"BREW /hooks HTTP/1.1\r\nhost: zoe\r\n\r\n",
        "no HTTP": b"\x16\x03\x01\x00\xff\r\n\r\n",
        "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "two lengths": whole.replace(b"\r\nhost: max", b"\r\ncontent-length: 1"),
        "an upgrade": whole.replace(b"\r\nhost: max", b"\r\nconnection: upgrade\r\nupgrade: websocket"),
        "HTTP/1.0": whole.replace(b"HTTP/1.1", b"HTTP/1.0"),
        "a path that is no text": whole.replace(b"/hooks", b"/%ff%00"),
        "an absolute address": whole.replace(b"/hooks", b"http://other.example/other"),
        "another host": whole.replace(b"host: max", b"host: other.example"),
    }
    answers = {name: bare(asked(connected(proxied.peer_port), request)) for name, request in requests.items()}
    assert {name: answer for name, answer in answers.items() if answer != REFUSED_WHOLE} == {}
    assert taken(proxied, b"".join(requests.values())) == 0


def test_a_revoked_peer_is_a_stranger_at_once_also_on_an_open_connection(pair: RealPair) -> None:
    connection = over_tls(pair.max, pem(pair.eva))
    connection.sendall(hello(pair.eva, pair.max))
    assert one_answer(connection).startswith(b"HTTP/1.1 202 ")
    pair.max.must("revoke", "eva-host")
    assert bare(asked(connection, hello(pair.eva, pair.max))) == REFUSED_WHOLE

    def is_shut_out() -> bool:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            return asked(over_tls(pair.max, pem(pair.eva)), LOOK) == b""
        return True

    until(is_shut_out)


def test_none_of_this_was_news(pair: RealPair, proxied: RealSide) -> None:
    for side in (pair.max, proxied):
        assert side.alive()
        events = set(re.findall(r'"event": "([^"]+)"', side.log))
        assert events == {"reader_tried", "running"}, side.log
