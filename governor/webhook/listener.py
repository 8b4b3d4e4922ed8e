"""The peer listener: HTTP that tells the app whose certificate the connection showed."""

import asyncio
import hashlib

from governor.listening import BoundedProtocol


class PeerCertificateProtocol(BoundedProtocol):
    """`scope["state"]["peer_certificate"]` is the SHA-256 of the client's certificate in hex, or None.

    With `tls.server_context` a connection gets here only with a pinned certificate; None means that
    a proxy ended TLS. The app still asks whether certificate and signing key are of one peer.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the certificate of this connection."""
        tls = transport.get_extra_info("ssl_object")
        der = tls.getpeercert(binary_form=True) if tls is not None else None
        shown = hashlib.sha256(der).hexdigest() if der is not None else None
        self.app_state = {**self.app_state, "peer_certificate": shown}
        super().connection_made(transport)
