"""The hash chain over what crossed a link: ids and hashes only, its head signed in each receipt.

Each side keeps a log of its own, because the two see concurrent webhooks in different orders.
"""

import hashlib
from typing import Final

from governor.message import Direction

_DOMAIN: Final = b"bridge-governor/wire-log/1\n"


def genesis(own_fp: str, peer_fp: str) -> str:
    """Return the head of an empty log: SHA-256 in hex over the key fingerprints of both sides."""
    return _chain(own_fp, peer_fp)


def next_head(previous: str, direction: Direction, webhook_id: str, sha256: str) -> str:
    """Return the head after one more webhook, whose body has this SHA-256, crossed in this direction."""
    return _chain(previous, direction, webhook_id, sha256)


def _chain(*words: str) -> str:
    """Hash words whose grammars hold no newline, so that the lines cannot be cut elsewhere."""
    return hashlib.sha256(_DOMAIN + "\n".join(words).encode()).hexdigest()
