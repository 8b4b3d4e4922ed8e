"""TLS between governors: version 1.3, both ends show a certificate, and each is pinned whole.

OpenSSL proves that the other end holds the key of a certificate from the store; the pin, checked
as the last act of the handshake itself, that it is one of those we paired with, byte for byte: not
one that a pinned certificate signed, and not one unpinned since (OpenSSL's store only grows). Host
names say nothing here and are not checked.
"""

import hashlib
import ssl
from collections.abc import Iterable
from pathlib import Path

from governor.errors import ConfigError


class _PinnedObject(ssl.SSLObject):
    """One end of a connection, on which nothing can be read or written before the pin was checked."""

    def do_handshake(self) -> None:
        super().do_handshake()
        shown = self.getpeercert(binary_form=True)
        context = self.context
        if shown is None or not isinstance(context, PinnedContext) or not context.is_pinned(shown):
            raise ssl.SSLCertVerificationError("the certificate is not pinned")


class PinnedContext(ssl.SSLContext):
    """A TLS context that trusts certificates one by one; what changes holds for new connections."""

    sslobject_class = _PinnedObject
    _pins: frozenset[str] = frozenset()

    def pin(self, certificates: Iterable[bytes]) -> None:
        """Trust exactly these certificates (DER) from now on; raise ConfigError if one is damaged."""
        wanted = {hashlib.sha256(der).hexdigest(): der for der in certificates}
        for fingerprint, der in wanted.items():
            if fingerprint in self._pins:
                continue
            try:
                self.load_verify_locations(cadata=der)
            except (ssl.SSLError, ValueError) as error:
                raise ConfigError(
                    f"The peer certificate {fingerprint[:16]} is damaged. Pair anew."
                ) from error
        self._pins = frozenset(wanted)

    def is_pinned(self, certificate: bytes) -> bool:
        """Tell whether this certificate is trusted."""
        return hashlib.sha256(certificate).hexdigest() in self._pins

    def show(self, own: Path) -> None:
        """Show the certificate in this PEM file (key and certificate) from now on."""
        try:
            # First apart: a pair that does not fit would leave this context with neither.
            for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self):
                context.load_cert_chain(own, password="")  # an encrypted key must not ask at a terminal
        except (OSError, ssl.SSLError) as error:  # SSLError: not PEM, or the key is of another certificate
            raise ConfigError(
                f"{own} cannot be used as TLS key and certificate ({error}). Restore it."
            ) from error


def server_context(own: Path, certificates: Iterable[bytes]) -> PinnedContext:
    """Return the context of the peer listener; with no certificates it starts and refuses everybody."""
    context = _pinned(ssl.PROTOCOL_TLS_SERVER, own, certificates)
    # A resumed session would not be asked for its certificate again.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    return context


def client_context(own: Path, certificates: Iterable[bytes]) -> PinnedContext:
    """Return a context for one peer, with its current certificate and, in an overlap, the old one."""
    return _pinned(ssl.PROTOCOL_TLS_CLIENT, own, certificates)


def public_context() -> ssl.SSLContext:
    """Return the context for a peer behind a proxy: the system's authorities and the host name."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _pinned(protocol: int, own: Path, certificates: Iterable[bytes]) -> PinnedContext:
    context = PinnedContext(protocol)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.show(own)
    context.pin(certificates)
    return context
