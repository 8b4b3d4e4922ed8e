"""Read a command from a line of a human: plain words, /commands, French or English, any case."""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from governor.message import is_name


class Word(StrEnum):
    """What an operator can ask for."""

    STOP = "stop"
    GO = "go"
    STATUS = "status"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Command:
    """A word and the peer it concerns (None: all links)."""

    word: Word
    peer: str | None = None


_WORDS = {
    "stop": Word.STOP,
    "go": Word.GO,
    "status": Word.STATUS,
    "etat": Word.STATUS,
    "help": Word.HELP,
    "aide": Word.HELP,
}

# A brake must not fail on a quotation mark, an emoji or a comma around the word.
_STOP = re.compile(r"[\W_]*(?P<word>stop)(?:@(?P<bot>\w+))?\b(?P<rest>.*)", re.ASCII | re.DOTALL)
_EXACT = re.compile(r"/?(?P<word>[a-z]+)(?:@(?P<bot>\w+))?(?P<rest>(?:\s+\S+)?)", re.ASCII)
_TAKES_PEER = frozenset({Word.STOP, Word.GO})


def parse(text: str, bot_username: str) -> Command | None:
    """Return the command in `text`, or None if it holds none for this bot.

    STOP counts as the first word, whatever follows; its peer is the second word if nothing else
    follows that one. All others must be the whole message; GO may be followed by a peer's name.
    The peer need not exist.
    """
    line = _plain(text)
    found = _STOP.fullmatch(line) or _EXACT.fullmatch(line)
    if found is None:
        return None
    word = _WORDS.get(found["word"])
    if word is None or (found["bot"] or bot_username).lower() != bot_username.lower():
        return None
    rest = found["rest"].strip()
    if not rest:
        return Command(word)
    if word in _TAKES_PEER and is_name(rest):
        return Command(word, rest)
    return Command(word) if word is Word.STOP else None


def _plain(text: str) -> str:
    """Fold width, case and accents, so that `État` is `etat`."""
    folded = unicodedata.normalize("NFKD", text.strip()).casefold()
    return "".join(c for c in folded if not unicodedata.combining(c))
