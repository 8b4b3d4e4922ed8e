"""TLS between two governors on loopback: who gets through, and that nobody else sends or hears a byte."""

import asyncio
import hashlib
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from governor.errors import ConfigError
from governor.webhook.certificates import make_certificate, new_tls_key, tls_pem
from governor.webhook.client import Answer, Fault, PeerAddress, PeerClient, PostError
from governor.webhook.listener import PeerCertificateProtocol
from governor.webhook.tls import PinnedContext, client_context, server_context
from tests.listeners import Heard, listening
from tests.webhook_samples import write_pair

BODY = b'{"type":"stop"}'
DAY = timedelta(days=1)


class Pair:
    """Max, who listens, and Eva, who posts; each with a key and certificate in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.max, self.eva = folder / "max.pem", folder / "eva.pem"
        self.max_der, self.eva_der = write_pair(self.max, "max-host"), write_pair(self.eva, "eva-host")

    def server(self) -> PinnedContext:
        return server_context(self.max, [self.eva_der])

    async def post(
        self, heard: Heard, *, own: Path | None = None, pins: tuple[bytes, ...] | None = None
    ) -> Answer:
        client = PeerClient(own or self.eva, allow_loopback=True)
        try:
            address = PeerAddress("max-host", heard.url, (self.max_der,) if pins is None else pins)
            return await client.post(address, {"webhook-id": "w_1"}, BODY)
        finally:
            await client.close()

    async def is_refused(
        self, heard: Heard, *, own: Path | None = None, pins: tuple[bytes, ...] | None = None
    ) -> PostError:
        before = len(heard.requests)
        with pytest.raises(PostError) as caught:
            await self.post(heard, own=own, pins=pins)
        assert len(heard.requests) == before
        assert caught.value.kind in {Fault.TLS, Fault.CUT}
        return caught.value


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def _issue(issuer: Path, out: Path, *, ca_key: ec.EllipticCurvePrivateKey, chain: bool) -> bytes:
    """Write a certificate that the certificate in `issuer` signed; return its DER."""
    parent = x509.load_pem_x509_certificate(issuer.read_bytes())
    key = new_tls_key()
    now = datetime.now(UTC)
    child = (
        x509.CertificateBuilder(parent.subject, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "child")]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    der = child.public_bytes(serialization.Encoding.DER)
    out.write_bytes(tls_pem(key, der) + (parent.public_bytes(serialization.Encoding.PEM) if chain else b""))
    return der


def _authority(out: Path) -> tuple[bytes, ec.EllipticCurvePrivateKey]:
    """Write a self-signed certificate that may sign others, as a hostile peer could pair with."""
    key = new_tls_key()
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    out.write_bytes(tls_pem(key, der))
    return der, key


async def test_a_paired_pair_works_and_the_app_learns_the_certificate(pair: Pair) -> None:
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        answer = await pair.post(heard)
        assert (answer.status, answer.body) == (202, b"taken")
        assert heard.bodies == [BODY]
        assert heard.states == [{"peer_certificate": hashlib.sha256(pair.eva_der).hexdigest()}]
        assert heard.requests[0]["webhook-id"] == "w_1"


async def test_ipv6_works(pair: Pair) -> None:
    from governor.listening import bind_tcp  # noqa: PLC0415 - only here

    async with listening(pair.server(), PeerCertificateProtocol, sock=bind_tcp("::1", 0)) as heard:
        client = PeerClient(pair.eva, allow_loopback=True)
        address = PeerAddress("max-host", f"https://[::1]:{heard.port}", (pair.max_der,))
        assert (await client.post(address, {}, BODY)).status == 202
        await client.close()


async def test_an_unknown_client_certificate_is_refused(pair: Pair) -> None:
    write_pair(pair.folder / "other.pem", "eva-host")
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        await pair.is_refused(heard, own=pair.folder / "other.pem")
        assert (await pair.post(heard)).status == 202


async def test_no_client_certificate_is_refused(pair: Pair) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=pair.max_der)
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        assert await _raw(heard, context) == b""
        assert heard.requests == []


async def _raw(heard: Heard, context: ssl.SSLContext) -> bytes:
    """Send a request over a connection of our own; return what comes back, empty if it is refused."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", heard.port, ssl=context)
        writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        found = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return b""
    return found


async def test_another_server_certificate_gets_no_byte(pair: Pair) -> None:
    write_pair(pair.max, "max-host")  # same name, another key
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        refused = await pair.is_refused(heard)
        assert (refused.kind, refused.left) == (Fault.TLS, False)


async def test_a_server_certificate_signed_by_the_pinned_one_gets_no_byte(pair: Pair) -> None:
    """An ordinary pinned certificate signs another: OpenSSL refuses, it is no authority."""
    key = new_tls_key()
    der = make_certificate(key, "max-host", ["127.0.0.1"], datetime.now(UTC), DAY)
    pair.max.write_bytes(tls_pem(key, der))
    _issue(pair.max, pair.folder / "child.pem", ca_key=key, chain=True)
    context = server_context(pair.folder / "child.pem", [pair.eva_der])
    async with listening(context, PeerCertificateProtocol) as heard:
        refused = await pair.is_refused(heard, pins=(der,))
        assert (refused.kind, refused.left) == (Fault.TLS, False)


@pytest.mark.parametrize("chain", [True, False])
async def test_not_even_a_pinned_authority_can_vouch_for_a_server(pair: Pair, *, chain: bool) -> None:
    der, key = _authority(pair.max)
    _issue(pair.max, pair.folder / "child.pem", ca_key=key, chain=chain)
    context = server_context(pair.folder / "child.pem", [pair.eva_der])
    async with listening(context, PeerCertificateProtocol) as heard:
        refused = await pair.is_refused(heard, pins=(der,))
        assert (refused.kind, refused.left) == (Fault.TLS, False)
        plain = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # what OpenSSL alone would let pass
        plain.check_hostname = False
        plain.load_verify_locations(cadata=der)
        plain.load_cert_chain(pair.eva)
        assert b" 202 " in await _raw(heard, plain)


async def test_not_even_a_pinned_authority_can_vouch_for_a_client(pair: Pair) -> None:
    der, key = _authority(pair.eva)
    _issue(pair.eva, pair.folder / "child.pem", ca_key=key, chain=True)
    async with listening(server_context(pair.max, [der]), PeerCertificateProtocol) as heard:
        assert (await pair.post(heard)).status == 202  # the authority itself is pinned
        await pair.is_refused(heard, own=pair.folder / "child.pem")
        assert len(heard.requests) == 1


async def test_an_expired_certificate_is_refused_on_either_side(pair: Pair) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=30)
    old = pair.folder / "old.pem"
    der = write_pair(old, "old-host", now=long_ago, days=1)
    async with listening(server_context(old, [pair.eva_der]), PeerCertificateProtocol) as heard:
        assert not (await pair.is_refused(heard, pins=(der,))).left
    async with listening(server_context(pair.max, [der]), PeerCertificateProtocol) as heard:
        await pair.is_refused(heard, own=old)


async def test_a_listener_without_peers_starts_and_refuses_everybody(pair: Pair) -> None:
    async with listening(server_context(pair.max, []), PeerCertificateProtocol) as heard:
        await pair.is_refused(heard)


async def test_pins_change_on_a_running_listener(pair: Pair) -> None:
    context = server_context(pair.max, [])
    async with listening(context, PeerCertificateProtocol) as heard:
        context.pin([pair.eva_der])  # paired
        context.pin([pair.eva_der, write_pair(pair.folder / "third.pem", "third-host")])
        assert (await pair.post(heard)).status == 202
        context.pin([])  # revoked
        await pair.is_refused(heard)
        context.pin([pair.eva_der])  # paired anew
        assert (await pair.post(heard)).status == 202


async def test_a_rotation_knows_two_certificates_for_a_while(pair: Pair) -> None:
    new = pair.folder / "new.pem"
    new_der = write_pair(new, "max-host")
    context = pair.server()
    async with listening(context, PeerCertificateProtocol) as heard:
        both = (new_der, pair.max_der)
        assert (await pair.post(heard, pins=both)).status == 202
        context.show(new)
        assert (await pair.post(heard, pins=both)).status == 202
        await pair.is_refused(heard, pins=(pair.max_der,))
        assert (await pair.post(heard, pins=(new_der,))).status == 202


async def test_a_pair_of_files_that_does_not_fit_changes_nothing(pair: Pair) -> None:
    wrong = pair.folder / "wrong.pem"
    write_pair(wrong, "max-host")
    key, mark, _ = pair.max.read_bytes().partition(b"-----BEGIN CERTIFICATE")
    wrong.write_bytes(key + mark + wrong.read_bytes().partition(mark)[2])
    context = pair.server()
    async with listening(context, PeerCertificateProtocol) as heard:
        for path in (wrong, pair.folder / "missing.pem"):
            with pytest.raises(ConfigError, match=path.name):
                context.show(path)
        assert (await pair.post(heard)).status == 202


def test_a_locked_key_is_an_error_and_not_a_question(pair: Pair) -> None:
    key = new_tls_key()
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    pair.max.write_bytes(
        locked + b"-----BEGIN CERTIFICATE" + pair.max.read_bytes().partition(b"-----BEGIN CERTIFICATE")[2]
    )
    with pytest.raises(ConfigError, match="cannot be used"):
        server_context(pair.max, [])


@pytest.mark.parametrize("der", [b"", b"c", b"\x30\x00"])
@pytest.mark.parametrize("make", [server_context, client_context])
def test_a_damaged_pin_is_an_error(
    pair: Pair, make: Callable[[Path, list[bytes]], PinnedContext], der: bytes
) -> None:
    with pytest.raises(ConfigError, match="Pair anew"):
        make(pair.max, [pair.eva_der, der])


async def test_tls_1_2_is_refused(pair: Pair) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=pair.max_der)
    context.load_cert_chain(pair.eva)
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        assert b" 202 " in await _raw(heard, context)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await _raw(heard, context) == b""


async def test_no_session_can_be_resumed_past_a_changed_pin(pair: Pair) -> None:
    context = client_context(pair.eva, [pair.max_der])
    async with listening(pair.server(), PeerCertificateProtocol) as heard:
        reader, writer = await asyncio.open_connection("127.0.0.1", heard.port, ssl=context)
        writer.write(b"POST /hooks HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        assert b" 202 " in await reader.read()
        session = writer.get_extra_info("ssl_object").session
        assert session is None or not session.has_ticket
        writer.close()
