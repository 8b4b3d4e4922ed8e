"""Self-signed TLS certificates (RFC 5280) that are their own trust anchor, and the check of a peer's.

A certificate is pinned whole, by its SHA-256. No two have the same subject: OpenSSL looks trust
anchors up by subject, and with two of one subject it might try the wrong one and refuse the right.
"""

import hashlib
import ipaddress
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from governor.errors import ConfigError, LocalError

CERTIFICATE_LIMIT: Final = 4_096
"""Longest certificate in bytes (DER); one of ours has about 600."""

_EARLIER: Final = timedelta(days=1)
"""A peer whose clock is behind must not find the certificate "not yet valid"."""

_UNREADABLE: Final = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
)


def make_certificate(
    key: ec.EllipticCurvePrivateKey, name: str, hosts: Iterable[str], now: datetime, valid_for: timedelta
) -> bytes:
    """Return the DER of a certificate for a governor, good for both ends of TLS.

    `hosts` are DNS names and IP addresses; raise ConfigError for anything else.
    """
    public = key.public_key()
    info = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    identity = hashlib.sha256(info + now.isoformat().encode()).digest()
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, name),
            x509.NameAttribute(NameOID.SERIAL_NUMBER, identity.hex()[:32]),
        ]
    )
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,  # it vouches for nothing but itself
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder(issuer_name=subject, subject_name=subject)
        .public_key(public)
        .serial_number(int.from_bytes(identity[:19]) | 1)
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + valid_for)
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def new_tls_key() -> ec.EllipticCurvePrivateKey:
    """Return a new P-256 key from the system's randomness."""
    return ec.generate_private_key(ec.SECP256R1())


def tls_pem(key: ec.EllipticCurvePrivateKey, certificate_der: bytes) -> bytes:
    """Return key and certificate as PEM for one 0600 file, which a rotation can replace at once."""
    certificate = x509.load_der_x509_certificate(certificate_der)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret + certificate.public_bytes(serialization.Encoding.PEM)


def certificate_fingerprint(der: bytes) -> str:
    """Return the SHA-256 of the whole certificate in lower-case hex."""
    return hashlib.sha256(der).hexdigest()


def check_certificate(der: bytes, now: datetime) -> None:
    """Raise LocalError unless this is a certificate of the kind `make_certificate` makes, valid now."""
    if len(der) > CERTIFICATE_LIMIT:
        raise LocalError("The peer's certificate is too long. Ask for a new pairing line.")
    try:
        certificate = x509.load_der_x509_certificate(der)
        public = certificate.public_key()
        certificate.verify_directly_issued_by(certificate)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except _UNREADABLE as error:
        raise LocalError(
            "The peer's certificate is damaged or not self-signed. Ask for a new pairing line."
        ) from error
    if not (isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1)):
        raise LocalError("The peer's certificate has no P-256 key. Ask for a new pairing line.")
    if constraints.ca:
        raise LocalError("The peer's certificate could vouch for others. Ask for a new pairing line.")
    if not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc:
        raise LocalError("The peer's certificate is not valid now: its governor needs `governor rotate`.")


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise ConfigError(
            f"{host!r} is neither an IP address nor a DNS name; correct `listen` or `url`."
        ) from error
