"""The peer listener: HTTP that tells the app whose certificate the connection showed."""

import asyncio
import hashlib
from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from governor.listening import BoundedProtocol

UNAUTHENTICATED: Final = b'{"error":"unauthenticated"}'
"""The one body for everything that proves nothing."""


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

    def send_400_response(self, _msg: str) -> None:
        """Answer what is no HTTP as everything else that proves nothing: the same bytes as the app's."""
        headers = [
            *self.server_state.default_headers,
            (b"connection", b"close"),
            (b"content-length", b"%d" % len(UNAUTHENTICATED)),
            (b"content-type", b"application/json"),
        ]
        lines = [b"%s: %s\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[401], *lines, b"\r\n", UNAUTHENTICATED]))
        self.transport.close()
