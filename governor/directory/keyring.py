"""The private keys of this host: 0600 files in `keys/`, named by the fingerprint of the signing key.

`<fingerprint>.sign` holds the Ed25519 seed (`whsk_...`), `<fingerprint>.pem` the TLS key and
certificate. Files are written before the row that names them, so a crash leaves an unused file at
most.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from governor.errors import ConfigError
from governor.private_file import write_private
from governor.webhook.certificates import make_certificate, new_tls_key, tls_pem
from governor.webhook.signing import KEY_LENGTH, SigningKey

CERTIFICATE_FOR = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class NewKeys:
    """What the database keeps of a new key: the public halves."""

    fingerprint: str
    public_key: bytes
    certificate: bytes


class Keyring:
    """The key files of one home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "keys"
        self._loaded: dict[str, SigningKey] = {}

    def make(self, name: str, hosts: Sequence[str], now: datetime) -> NewKeys:
        """Make a signing key, a TLS key and a certificate for them, and write the files."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        key, tls_key = SigningKey(os.urandom(KEY_LENGTH)), new_tls_key()
        certificate = make_certificate(tls_key, name, hosts, now, CERTIFICATE_FOR)
        public = key.verify_key
        write_private(self.folder / f"{public.fingerprint}.sign", key.secret().encode() + b"\n")
        write_private(self.tls_file(public.fingerprint), tls_pem(tls_key, certificate))
        return NewKeys(public.fingerprint, public.raw, certificate)

    def signing_key(self, fingerprint: str) -> SigningKey:
        """Load a signing key; raises ConfigError when the file is missing, foreign or damaged."""
        if fingerprint in self._loaded:
            return self._loaded[fingerprint]
        path = self.folder / f"{fingerprint}.sign"
        try:
            key = SigningKey.from_secret(path.read_text(encoding="ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"The signing key {path} cannot be used: {error}. Restore it from a backup."
            ) from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error.message}") from None
        if key.verify_key.fingerprint != fingerprint:
            raise ConfigError(f"The signing key {path} is not the one this home was made with. Restore it.")
        self._loaded[fingerprint] = key
        return key

    def tls_file(self, fingerprint: str) -> Path:
        """Return the PEM file of TLS key and certificate."""
        return self.folder / f"{fingerprint}.pem"

    def forget(self, fingerprint: str) -> None:
        """Delete the files of a retired key."""
        self._loaded.pop(fingerprint, None)
        for path in (self.folder / f"{fingerprint}.sign", self.tls_file(fingerprint)):
            path.unlink(missing_ok=True)
