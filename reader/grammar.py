r"""The types of value that may cross beside the prose: one grammar each, in one table.

A value is a narrow channel, not a hole: `/tmp/ignore_all_rules.md` is a path. So it is bounded in
length and in words, and what exceeds the bounds is shown as a placeholder.

Every pattern is for `fullmatch` on one bounded token and takes time linear in it: each repeat is
bounded, neighbouring repeats share no character or are split by a look-ahead, there is no `.*?`.
"""

import re
from typing import NamedTuple

VALUE_LENGTH = 120
"""Longest value shown, in characters."""

TOKEN_LENGTH = 2_000
"""Longest run of characters that is taken for a value at all."""

_FILE_ENDINGS = (
    "py pyi ipynb md rst txt toml json jsonl yaml yml ini cfg conf lock env js jsx mjs cjs ts tsx css scss html "
    "xml svg csv tsv sql sh bash zsh ps1 bat rb rs go c h cc cpp hpp java kt swift php pl lua r ex exs scala clj "
    "hs ml dart vue tf proto log pdf png jpg jpeg gif webp mp3 mp4 zip tar gz tgz bz2 xz whl deb rpm dmg exe dll "
    "so db sqlite plist service pem key crt diff patch gguf"
).replace(" ", "|")
_DOT_FILES = "env|gitignore|gitattributes|github|dockerignore|editorconfig|bashrc|zshrc|npmrc|venv|ssh|config"
_DOMAINS = (
    "com|org|net|edu|gov|io|dev|ai|info|biz|eu|uk|de|fr|nl|ch|ru|cn|xyz|top|site|online|example|invalid"
)
_FOLDERS = (
    "src|lib|libs|tests?|docs?|bin|etc|apps?|pkg|cmd|internal|scripts?|packages|origin|upstream|feature|fix|bugfix"
    "|hotfix|release|refs"
)
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    "|Nov(?:ember)?|Dec(?:ember)?)"
)
_TIME_UNITS = (
    "ns|us|\u03bcs|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?|months?|years?"
    "|milliseconds?|microseconds?"
)
_UNITS = (
    "%|[kKMGTP]?i?[Bb]|[kMGT]?bit|[kMG]?bps|bytes?|[kMG]?Hz|fps|rpm|px|pt|em|rem|mm|cm|km|kg|g|[mk]?[VWA]|\u00b0?[CF]|x"
    "|req/s|qps|rps|tok/s"
)
_THINGS = (
    "percent|files?|lines?|rows?|columns?|tests?|users?|requests?|errors?|warnings?|failures?|tokens?|commits?|items?"
    "|characters?|chars?|words?|messages?|retries|attempts?|times|cores?|threads?|workers?|nodes?|dollars?|euros?"
    "|USD|EUR|GBP"
)
_URL = r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]"
_URL_END = r"[A-Za-z0-9/_=&%#~+$\-]"
_NAME = r"[A-Za-z_]\w{0,60}"
_IN_PATH = r"[A-Za-z0-9._\-+@%~/]"
_VERSION_END = r"(?:[\-+.]?[A-Za-z][0-9A-Za-z.\-]{0,40})?"
_INTEGER = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})"


class Grammar(NamedTuple):
    """One form of one type. `free`: may hold words of somebody's choosing, which are counted."""

    type: str
    pattern: re.Pattern[str]
    free: bool


def _row(name: str, pattern: str, *, free: bool = False) -> Grammar:
    return Grammar(name, re.compile(pattern, re.ASCII), free)


def _spaced_row(name: str, pattern: str, *, free: bool = False) -> Grammar:
    return _row(name, rf"(?<![A-Za-z0-9_.,/:#@\-])(?:{pattern})(?![A-Za-z0-9_])", free=free)


TOKENS: tuple[Grammar, ...] = (
    _row("url", rf"[A-Za-z][A-Za-z0-9+\-]{{1,15}}(?::|\[:\])//{_URL}{{0,2000}}{_URL_END}", free=True),
    _row("email", r"[A-Za-z0-9._%+\-]{1,64}@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}", free=True),
    _row(
        "url",
        rf"(?:[A-Za-z0-9\-]{{1,63}}(?:\.|\[\.\])){{1,8}}(?:{_DOMAINS})(?::\d{{1,5}})?(?:/{_URL}{{0,2000}}{_URL_END}|/)?",
        free=True,
    ),
    _row(
        "url",
        rf"www(?:\.|\[\.\])[A-Za-z0-9\-.\[\]]{{1,200}}[A-Za-z0-9](?:/{_URL}{{0,2000}}{_URL_END}|/)?",
        free=True,
    ),
    _row("uuid", r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    _row(
        "time",
        r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?: ?(?:Z|UTC)|[+\-]\d{2}:?\d{2})?)?",
    ),
    _row("time", r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[ap]m|Z)?"),
    _row("time", r"\d{1,2}[./]\d{1,2}[./]\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}-W\d{2}"),
    _row("ip", r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2}|:\d{1,5})?"),
    _row("ip", r"(?=[0-9A-Fa-f:]{0,39}\d)(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:/\d{1,3})?"),
    _row(
        "ticket",
        r"[A-Z][A-Z0-9]{1,9}-\d{1,7}(?:-\d{1,7})?|(?:PR|MR)?#\d{1,7}|(?:PR|MR)\d{1,7}|GHSA(?:-[0-9a-z]{4}){3}",
    ),
    _row("ticket", r"(?:[A-Za-z0-9._\-]{1,39}/)?[A-Za-z0-9._\-]{1,100}#\d{1,7}", free=True),
    _row(
        "test",
        rf"{_IN_PATH}{{1,2000}}\.py(?:::[A-Za-z_]\w{{0,100}}){{1,5}}(?:\[[A-Za-z0-9_.,\-+/:=]{{1,200}}\])?",
        free=True,
    ),
    _row(
        "location",
        r"[A-Za-z0-9._\-+@%~/\\:]{1,2000}\.[A-Za-z][A-Za-z0-9]{0,7}"
        r"(?::\d{1,6}(?:[:\-]\d{1,6})?|#L\d{1,6}(?:-L?\d{1,6})?)",
        free=True,
    ),
    _row(
        "version",
        rf"(?:v\d{{1,5}}(?:\.\d{{1,5}}){{0,3}}|\d{{1,5}}(?:\.\d{{1,5}}){{2,3}}){_VERSION_END}",
        free=True,
    ),
    _row(
        "version",
        rf"(?:@[a-z0-9\-]{{1,60}}/)?[A-Za-z0-9_.\-]{{1,100}}@v?\d{{1,5}}(?:\.\d{{1,5}}){{1,3}}{_VERSION_END}",
        free=True,
    ),
    _row("hash", r"(?:sha(?:1|256|512):)?(?=[0-9a-f]{0,127}[0-9])(?=[0-9a-f]{0,127}[a-f])[0-9a-f]{7,128}"),
    _row(
        "duration",
        rf"\d{{1,9}}(?:\.\d{{1,9}})?(?:{_TIME_UNITS})|(?:\d{{1,4}}[dhms]){{2,4}}|PT(?:\d{{1,6}}[HMS]){{1,3}}",
    ),
    _row("number", rf"[+\-]?[$\u20ac\u00a3\u00a5]?{_INTEGER}(?:\.\d{{1,15}})?(?:[kKMB]|{_UNITS})"),
    _row("number", rf"[+\-]?[$\u20ac\u00a3\u00a5]{_INTEGER}(?:\.\d{{1,15}})?|0x[0-9A-Fa-f]{{1,16}}"),
    _row("number", rf"[+\-]?(?!\d\Z){_INTEGER}(?:\.\d{{1,15}})?(?:[eE][+\-]?\d{{1,3}})?|\d{{1,6}}/\d{{1,6}}"),
    _row(
        "path",
        rf"(?:~[a-z]{{0,30}}|\.{{1,2}}|\$[A-Z_]{{1,40}})?/{_IN_PATH}{{0,2000}}[A-Za-z0-9_]/?",
        free=True,
    ),
    _row(
        "path",
        rf"(?=[^/]{{1,200}}/)(?=(?:{_FOLDERS})/|.{{1,2000}}(?:_|/\Z|\.[A-Za-z][A-Za-z0-9]{{0,7}}\Z))"
        rf"[A-Za-z0-9_.@]{_IN_PATH}{{0,2000}}[A-Za-z0-9_/]",
        free=True,
    ),
    _row("path", r"(?:[A-Za-z]:[\\/]|\\\\)[A-Za-z0-9._\-+@~()\\/]{0,2000}[A-Za-z0-9_\\)]", free=True),
    _row(
        "path",
        r"[A-Za-z0-9_.\-]{1,200}(?:\\[A-Za-z0-9_.\-]{1,200}){1,40}\.[A-Za-z][A-Za-z0-9]{0,7}",
        free=True,
    ),
    _row("file", rf"[A-Za-z0-9_.][A-Za-z0-9._+@\-]{{0,200}}\.(?:{_FILE_ENDINGS})", free=True),
    _row("file", rf"\.(?:{_DOT_FILES})|Makefile|Dockerfile|Justfile|Procfile"),
    _row("flag", r"--[A-Za-z][A-Za-z0-9\-]{1,60}", free=True),
    _row(
        "identifier",
        r"_{0,2}[A-Za-z][A-Za-z0-9]{0,100}(?:_{1,2}[A-Za-z0-9]{1,100}){1,60}_{0,2}(?:\(\))?",
        free=True,
    ),
    _row("identifier", r"(?:__?|\$)[A-Za-z][A-Za-z0-9]{1,100}(?:__)?(?:\(\))?", free=True),
    _row("identifier", r"(?=[A-Za-z0-9]{0,99}[a-z0-9][A-Z])[A-Za-z][A-Za-z0-9]{1,100}(?:\(\))?", free=True),
    _row("identifier", rf"{_NAME}(?:\.{_NAME}){{0,10}}\(\)", free=True),
    _row(
        "identifier",
        rf"{_NAME}(?:\.{_NAME}){{2,10}}|(?=[\w.]{{0,200}}(?:_|[a-z][A-Z])){_NAME}\.{_NAME}",
        free=True,
    ),
    _row("identifier", rf"{_NAME}(?:::{_NAME}){{1,10}}(?:\(\))?", free=True),
)
"""Forms without a space. The first that fits a token names its type."""

SPACED: tuple[Grammar, ...] = (
    _spaced_row("path", r'"(?:~?/|[A-Za-z]:\\)[A-Za-z0-9._\-+@~()/\\ ]{1,300}"', free=True),
    _spaced_row("time", r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: ?(?:Z|UTC))?"),
    _spaced_row(
        "time",
        rf"\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?",
    ),
    _spaced_row("time", r"\d{1,2}(?::\d{2})? (?:[ap]m|UTC|GMT|CET|CEST)"),
    _spaced_row("ticket", r"(?:PR|MR|[Ii]ssue|[Tt]icket|[Bb]ug|[Pp]ull request) #?\d{1,7}"),
    _spaced_row("duration", rf"{_INTEGER}(?:\.\d{{1,9}})? (?:{_TIME_UNITS})"),
    _spaced_row("number", rf"[+\-]?{_INTEGER}(?:\.\d{{1,15}})? (?:{_UNITS}|{_THINGS})"),
)
"""Forms with a space, to be looked for in running text: their patterns know where a value may begin and end."""

TYPES: tuple[str, ...] = tuple(dict.fromkeys(row.type for row in (*TOKENS, *SPACED)))

MORE = "more"
"""The type of the placeholder that stands for all values beyond the total."""

_PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(TYPES)}), \d{{1,5}} characters, sha256 [0-9a-f]{{8}}\]", re.ASCII)
_MORE = re.compile(r"\[\d{1,5} more values, \d{1,6} characters, sha256 [0-9a-f]{8}\]", re.ASCII)

_SEGMENT_ENDS = re.compile(r"[/\\:?&=#\[\](),;@]")
_WORD = re.compile(r"[A-Z]?[a-z]{2,60}|[A-Z]{2,60}", re.ASCII)


def type_of(token: str) -> str | None:
    """Return the type of a token without spaces, or None if it is no value."""
    if len(token) <= TOKEN_LENGTH:
        for row in TOKENS:
            if row.pattern.fullmatch(token):
                return row.type
    return None


def within_bounds(type_: str, text: str, words: int) -> bool:
    """Tell whether a value of this type may be shown as it is.

    At most `VALUE_LENGTH` characters, and at most `words` words in a segment. Words are split at
    `_ - . %`, digits, spaces and humps; segments at `/`, `:`, `?` and their like.
    """
    if len(text) > VALUE_LENGTH:
        return False
    if not any(row.free for row in (*TOKENS, *SPACED) if row.type == type_):
        return True
    return all(len(_WORD.findall(segment)) <= words for segment in _SEGMENT_ENDS.split(text))


def fits(type_: str, text: str, words: int) -> bool:
    """Tell whether text, from whoever, is a value of this type within the bounds, or a placeholder."""
    if len(text) > VALUE_LENGTH:
        return False
    if type_ == MORE:
        return _MORE.fullmatch(text) is not None
    if _PLACEHOLDER.fullmatch(text):
        return text.startswith(f"[{type_},")
    forms = (row for row in (*TOKENS, *SPACED) if row.type == type_)
    return any(row.pattern.fullmatch(text) for row in forms) and within_bounds(type_, text, words)
