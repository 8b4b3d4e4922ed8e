"""Six words over a peer's key and certificate, for two operators to compare by voice.

66 bits, and each guess costs an attacker who wants a key with the same words one scrypt of 32 MiB.
The words are the English list of BIP-39: known to be told apart by ear and by four letters.
"""

import functools
import hashlib
from typing import Final

WORDS: Final = 6
_BITS: Final = 11  # of one word: the list has 2^11
_LIST: Final = 1 << _BITS

_SALT: Final = b"bridge-governor/phrase/1"
"""Fixed, because both sides must come to the same words; it parts us from other uses of scrypt."""

_N, _R, _P = 2**15, 8, 1  # about 0.15 s and 32 MiB (RFC 7914)
_MEMORY: Final = 64 * 1024 * 1024  # OpenSSL's ceiling; 128 * N * R are used, and a little more


def phrase(public: bytes, certificate_der: bytes) -> str:
    """Return six words for a 32-byte public key and its certificate."""
    digest = hashlib.scrypt(
        public + certificate_der, salt=_SALT, n=_N, r=_R, p=_P, maxmem=_MEMORY, dklen=(WORDS * _BITS + 7) // 8
    )
    number = int.from_bytes(digest) >> (-WORDS * _BITS % 8)
    words = _words()
    return " ".join(words[number >> _BITS * place & _LIST - 1] for place in reversed(range(WORDS)))


@functools.cache
def _words() -> tuple[str, ...]:
    # Loaded when first needed: only pairing speaks words.
    from mnemonic import Mnemonic  # noqa: PLC0415 - see above

    return checked_words(Mnemonic("english").wordlist)


def checked_words(words: list[str]) -> tuple[str, ...]:
    """Return the list if it can carry 11 bits a word; a short one would silently weaken the phrase."""
    if len(set(words)) != _LIST:
        raise ValueError(f"the word list must hold {_LIST} different words")
    return tuple(words)
