"""Secrets in a text: known values and the shapes of credentials, as they are or lightly disguised.

A search costs time in proportion to the text, whatever the text is: every repeat in a pattern is
bounded, and a disguise is taken off once, never again from what came out of it. What is found is
never part of the answer.
"""

import binascii
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from governor.message import TEXT_LIMIT

KNOWN_LENGTH: Final = 6
"""A known value shorter than this is not searched for: it would be found in harmless texts."""


@dataclass(frozen=True, slots=True)
class Found:
    """What kind of secret stands in a text, and where: a position, or how it was disguised."""

    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Shape:
    """What a kind of credential looks like.

    A pattern stops at the shortest match that is certain. Where the spaces are gone, prose that
    speaks of a prefix runs on like a token: there a match must show so many `changes` between small
    letters, capitals and digits, or is not looked for at all (None).
    """

    kind: str
    pattern: re.Pattern[str]
    changes: int | None = 6


SHAPES: Final = (
    Shape("governor_token", re.compile(r"bgt_[A-Za-z0-9_-]{43}")),
    Shape("governor_grant", re.compile(r"bgg_[A-Za-z0-9_-]{22}")),
    Shape("anthropic_key", re.compile(r"sk-ant-(?<![A-Za-z0-9]sk-ant-)[A-Za-z0-9_-]{20}")),
    Shape("anthropic_key", re.compile(r"sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{20}")),
    Shape("openai_key", re.compile(r"sk-(?<![A-Za-z0-9]sk-)[A-Za-z0-9]{20}")),
    Shape("openai_key", re.compile(r"sk-(?<![A-Za-z0-9]sk-)(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20}")),
    Shape("openai_key", re.compile(r"T3BlbkFJ[A-Za-z0-9_-]{20}")),  # "OpenAI" in base64, inside the key
    Shape("github_token", re.compile(r"gh[pousr]_[A-Za-z0-9]{36}")),
    Shape("github_token", re.compile(r"github_pat_[A-Za-z0-9_]{22}")),
    Shape("gitlab_token", re.compile(r"glpat-[A-Za-z0-9_-]{20}")),
    Shape("aws_key_id", re.compile(r"AKIA(?<![A-Z0-9]AKIA)[A-Z0-9]{16}"), changes=0),
    Shape("slack_token", re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10}"), changes=None),
    Shape("slack_token", re.compile(r"xox[abeoprs]-(?:[0-9]-)?[0-9]{8}"), changes=0),
    Shape("stripe_key", re.compile(r"[rs]k_live_(?<![A-Za-z0-9].k_live_)[A-Za-z0-9]{16}")),
    Shape("telegram_token", re.compile(r":AA(?<=[0-9]{8}:AA)[A-Za-z0-9_-]{33}")),
    Shape("telegram_token", re.compile(r":(?<=[0-9]{8}:)[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])")),
    Shape("webhook_secret", re.compile(r"wh(?:sec|sk)_[A-Za-z0-9+/_-]{24}")),
    # RFC 7515, 7.1. It begins at the joint, of which there are few, not at the header, which may repeat.
    Shape(
        "jwt",
        re.compile(r"\.eyJ(?<=[A-Za-z0-9_-]{8}\.eyJ)[A-Za-z0-9_-]{5,10000}+\.[A-Za-z0-9_-]{8}"),
        changes=0,
    ),
    # RFC 7468, 10 and 11, and the likes of OpenSSH and PGP.
    Shape("private_key", re.compile(r"-----BEGIN[A-Z0-9 ]{0,20}PRIVATE ?KEY"), changes=0),
    # RFC 3986, 3.2.1: user:password before the host. What begins with a bracket is a place-holder.
    Shape(
        "connection_string",
        re.compile(r"://(?<=[A-Za-z0-9]://)[^\s:/@]{0,64}:(?![<{\[$*])[^\s/@]{1,128}@[A-Za-z0-9\[]"),
        changes=None,
    ),
    Shape(
        "pin",
        re.compile(
            r"(?<!\w)(?:(?i:pin)(?i:[ -](?:code|number))?(?i: is:?| ?[:=])|PIN)"
            r" ?[\"'`]?[0-9](?: ?[0-9]){3,7}(?![0-9]|[.:/-][0-9])",
            re.ASCII,
        ),
        changes=None,
    ),
)
"""Each begins with letters of its own, where the search can leap; what must stand before is looked at next."""

# Nothing to see, and yet letters or symbols to Unicode: Hangul fillers and the empty Braille cell.
_BLANKS: Final = frozenset("\u115f\u1160\u2800")
# Six bytes, the shortest that is searched for, are 8 characters of base64 and 12 of hex.
_BASE64_RUN: Final = re.compile(rf"[A-Za-z0-9+/_-]{{8,{TEXT_LIMIT}}}")
_HEX_RUN: Final = re.compile(rf"[0-9A-Fa-f]{{12,{TEXT_LIMIT}}}")
_TO_STANDARD: Final = str.maketrans("-_", "+/")


def find_secret(text: str, known: Collection[str]) -> Found | None:
    """Return the first secret in the text, or None.

    Searches for the shapes and for `known` values (of at least six characters): as they are; with
    white space or invisible characters put in; percent-encoded; in base64, base64url or hex;
    reversed.
    """
    values = sorted(
        value
        for value in {*known, *("".join(_visible(value).split()) for value in known)}
        if len(value) >= KNOWN_LENGTH
    )
    for view in _views(text):
        for shape in SHAPES:
            start = _find(shape, view)
            if start is not None:
                return Found(shape.kind, view.disguise or _position(text, start))
        for value in values:
            start = view.text.find(value)
            if start >= 0:
                return Found("known_value", view.disguise or _position(text, start))
    return None


@dataclass(frozen=True, slots=True)
class _View:
    """The text with one disguise taken off (none: as it is); `joined` where white space is gone."""

    disguise: str
    text: str
    joined: bool = False


def _views(text: str) -> Iterator[_View]:
    visible = _visible(text)
    joined = "".join(visible.split())
    yield _View("", text)
    yield _View("invisible characters", visible)
    yield _View("white space", joined, joined=True)
    for source, is_joined in ((text, False), (joined, True)):
        yield _View("percent-encoded", unquote(source), is_joined)
        yield _View("base64", "\n".join(_base64(source)), is_joined)
        yield _View("hex", "\n".join(_hex(source)), is_joined)
        yield _View("reversed", source[::-1], is_joined)


def _find(shape: Shape, view: _View) -> int | None:
    """Return where the shape stands in the view."""
    if not view.joined:
        match = shape.pattern.search(view.text)
        return match.start() if match else None
    if shape.changes is not None:
        for match in shape.pattern.finditer(view.text):
            if _changes(match.group()) >= shape.changes:
                return match.start()
    return None


def _changes(token: str) -> int:
    """Count the changes between small letters, capitals and digits: many in a random token, few in prose."""
    kinds = [(character.islower(), character.isupper()) for character in token if character.isalnum()]
    return sum(before != after for before, after in pairwise(kinds))


def _position(text: str, start: int) -> str:
    line = text.count("\n", 0, start) + 1
    return f"line {line}, character {start - text.rfind(chr(10), 0, start)}"


def _visible(text: str) -> str:
    """Leave out what cannot be seen or sits on another character; undo look-alike forms."""
    if text.isascii():
        return "".join(character for character in text if character.isprintable() or character.isspace())
    return "".join(
        part
        for character in text
        # Some characters stand for whole phrases: cut, lest the text grow eighteen times as long.
        for part in unicodedata.normalize("NFKD", character)[:4]
        if part.isspace() or (unicodedata.category(part)[0] not in "CM" and part not in _BLANKS)
    )


def _base64(text: str) -> Iterator[str]:
    """Decode each run from each of the four characters at which a quantum may begin (RFC 4648, 4 and 5)."""
    for match in _BASE64_RUN.finditer(text):
        run = match.group().translate(_TO_STANDARD)
        for start in range(4):
            part = run[start:]
            # One character left over holds no byte; two or three do, and want their padding.
            part = part[: len(part) - (len(part) % 4 == 1)]
            yield binascii.a2b_base64(part + "=" * (-len(part) % 4)).decode(errors="replace")


def _hex(text: str) -> Iterator[str]:
    """Decode each run from each of the two digits at which a byte may begin."""
    for match in _HEX_RUN.finditer(text):
        for start in range(2):
            part = match.group()[start:]
            yield bytes.fromhex(part[: len(part) // 2 * 2]).decode(errors="replace")
