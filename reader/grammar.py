r"""The types of value that may cross beside the prose: one grammar each, in one table.

A value is a narrow channel, not a hole: `/tmp/ignore_all_rules.md` is a path. So it is bounded in
length and in words, and what exceeds the bounds is shown as a placeholder.

Every pattern is for `fullmatch` on one bounded token and takes time linear in it: each repeat is
bounded, neighbouring repeats share no character or are split by a look-ahead, there is no `.*?`.
"""

import re
from typing import NamedTuple

from reader.vocabulary import (
    BUILD_FILES,
    CURRENCIES,
    DOMAINS,
    DOT_FILES,
    FILE_ENDINGS,
    FOLDERS,
    LATER_DOMAINS,
    MONEY,
    MONTHS,
    THINGS,
    TIME_UNITS,
    UNITS,
)

VALUE_LENGTH = 120
"""Longest value shown, in characters."""

TOKEN_LENGTH = 2_000
"""Longest run of characters that is taken for a value at all."""

_L = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u0400-\u0481\u048a-\u052f"
"""Letters of names: Latin, Greek, Cyrillic. Marks, signs and unassigned characters are not among them."""

_URL = rf"(?:[{_L}0-9\-._~:/?#@!$&'()*+,;=%]|\[[.:]\])"
_URL_END = rf"[{_L}0-9/_=&%#~+$\-]"
_HOST = r"(?:[A-Za-z0-9\-._~:@$&+=%]|\[[.:]\]|\[[0-9A-Fa-f:.]{2,45}\])"
_HOST_END = r"(?:[A-Za-z0-9_=&%~+$\-]|(?<=[0-9A-Fa-f:]\]))"
"""No other brackets: `https://a.example](https://b.example` is two addresses and a link, not one."""
_AFTER_HOST = rf"(?:[/?#]{_URL}{{0,2000}}{_URL_END}|[/?])"
_LABELS = r"(?:[A-Za-z0-9\-]{1,63}(?:\.|\[\.\])){1,8}"
_NAME = rf"[{_L}_][{_L}0-9_]{{0,60}}"
_IN_PATH = rf"[{_L}0-9._\-+@%~/]"
_VERSION_END = r"(?:[\-.]?[A-Za-z][0-9A-Za-z.\-]{0,40}|-[0-9][0-9A-Za-z.\-]{0,40})?(?:\+[0-9A-Za-z][0-9A-Za-z.\-]{0,40})?"
_INTEGER = r"(?:\d{1,3}(?:,\d{3}){1,5}|\d{1,15})"
_AMOUNT = rf"(?:\d{{1,3}}(?: \d{{3}}){{1,4}}(?:,\d{{1,3}})?|\d{{1,9}},\d{{1,3}}|{_INTEGER}(?:\.\d{{1,15}})?)"
"""A number before its unit: also as French and German write it, `1 250,50`."""


class Grammar(NamedTuple):
    """One form of one type. `free`: may hold words of somebody's choosing, which are counted."""

    type: str
    pattern: re.Pattern[str]
    free: bool


def _row(name: str, pattern: str, *, free: bool = False) -> Grammar:
    return Grammar(name, re.compile(pattern, re.ASCII), free)


def _spaced_row(name: str, pattern: str, *, free: bool = False) -> Grammar:
    return _row(name, rf"(?<![{_L}0-9_.,/:#@\-])(?:{pattern})(?![{_L}0-9_])", free=free)


TOKENS: tuple[Grammar, ...] = (
    _row(
        "url",
        rf"[A-Za-z][A-Za-z0-9+\-]{{1,15}}(?::|\[:\])//{_HOST}{{0,300}}(?:{_HOST_END}|{_AFTER_HOST})",
        free=True,
    ),
    _row("email", rf"[{_L}0-9._%+\-]{{1,64}}@(?:[A-Za-z0-9\-]{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}}", free=True),
    _row("url", rf"(?://)?{_LABELS}(?i:{DOMAINS})(?::\d{{1,5}})?{_AFTER_HOST}?", free=True),
    _row(
        "url", rf"(?://)?{_LABELS}(?i:{LATER_DOMAINS})(?::\d{{1,5}}{_AFTER_HOST}?|{_AFTER_HOST})", free=True
    ),
    _row("url", rf"//{_LABELS}[A-Za-z]{{2,24}}(?::\d{{1,5}})?{_AFTER_HOST}?", free=True),
    _row("url", rf"www(?:\.|\[\.\])[A-Za-z0-9\-.\[\]]{{1,200}}[A-Za-z0-9]{_AFTER_HOST}?", free=True),
    _row(
        "url",
        rf"(?:\d{{1,3}}(?:\.|\[\.\])){{3}}\d{{1,3}}(?::\d{{1,5}})?(?!/\d{{0,2}}\Z){_AFTER_HOST}",
        free=True,
    ),
    _row("url", rf"\\\\{_LABELS}[A-Za-z]{{2,24}}(?:\\[{_L}0-9._\-$@\\]{{0,200}})?", free=True),
    _row("url", rf"localhost:\d{{1,5}}{_AFTER_HOST}?", free=True),
    _row("uuid", r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    _row(
        "time",
        r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?: ?(?:Z|UTC)|[+\-]\d{2}:?\d{2})?)?"
        r"|\d{8}T\d{4}(?:\d{2})?(?:Z|[+\-]\d{4})?",
    ),
    _row("time", r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[ap]m|Z)?|\d{1,2}h\d{2}"),
    _row("time", r"\d{1,2}[./]\d{1,2}[./]\d{4}|\d{1,2}/\d{1,2}/\d{2}|\d{4}-W\d{2}(?:-\d)?"),
    _row("ip", r"(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2}|:\d{1,5})?"),
    _row(
        "ip",
        r"(?=[0-9A-Fa-f:]{0,39}\d)(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:%[a-z]{1,10}\d{0,3})?(?:/\d{1,3})?",
    ),
    _row("port", r"\d{1,5}/(?:tcp|udp)"),
    _row(
        "ticket",
        r"[A-Z][A-Z0-9]{1,9}-\d{1,7}(?:-\d{1,7})?|(?:PR|MR)?#\d{1,7}|(?:PR|MR)\d{1,7}|GHSA(?:-[0-9a-z]{4}){3}"
        r"|[A-Z]{2,5}\d{5,10}",
    ),
    _row("ticket", r"(?:[A-Za-z0-9._\-]{1,39}/)?[A-Za-z0-9._\-]{1,100}#\d{1,7}", free=True),
    _row(
        "test",
        rf"{_IN_PATH}{{1,2000}}\.py(?:::{_NAME}){{1,5}}(?:\[[A-Za-z0-9_.,\-+/:=]{{1,200}}\])?",
        free=True,
    ),
    _row(
        "location",
        rf"[{_L}0-9._\-+@%~/\\:]{{1,2000}}\.[A-Za-z][A-Za-z0-9]{{0,7}}"
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
    _row(
        "hash",
        r"(?:sha(?:1|256|512):)?(?=[0-9a-f]{0,127}[0-9])(?=[0-9a-f]{0,127}[a-f])"
        r"(?:[0-9a-f]{7,20}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{56}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})",
    ),
    _row("duration", rf"\d{{1,9}}(?:\.\d{{1,9}})?(?:{TIME_UNITS})|(?:\d{{1,4}}[dhms]){{2,4}}"),
    _row("duration", r"P(?=T?\d)(?:\d{1,6}[YMWD]){0,4}(?:T(?:\d{1,6}(?:\.\d{1,9})?[HMS]){1,3})?"),
    _row("number", rf"[+\-]?{MONEY}?{_INTEGER}(?:\.\d{{1,15}})?(?:[kKMB]|{UNITS})"),
    _row("number", rf"\d{{1,9}},\d{{1,3}}(?:{UNITS}|{MONEY})"),
    _row(
        "number",
        rf"[+\-]?{MONEY}{_INTEGER}(?:\.\d{{1,15}})?|{_INTEGER}(?:\.\d{{1,15}})?{MONEY}|0x[0-9A-Fa-f]{{1,16}}",
    ),
    _row(
        "number",
        rf"[+\-]?(?!\d\Z){_INTEGER}(?:\.\d{{1,15}})?(?:[eE][+\-]?\d{{1,3}})?|\d{{1,6}}/\d{{1,6}}|\d{{1,6}}-\d{{1,6}}",
    ),
    _row(
        "path",
        rf"(?:~[a-z]{{0,30}}|\.{{1,2}}|\$[A-Z_]{{1,40}})?/(?!/){_IN_PATH}{{0,2000}}[{_L}0-9_]/?",
        free=True,
    ),
    _row(
        "path",
        rf"(?![^/]{{1,200}}\.(?i:{DOMAINS})/)(?=[^/]{{1,200}}/)(?=(?:{FOLDERS})/|.{{1,2000}}(?:_|/\Z|\.[A-Za-z][A-Za-z0-9]{{0,7}}\Z))"
        rf"[{_L}0-9_.@]{_IN_PATH}{{0,2000}}[{_L}0-9_/]",
        free=True,
    ),
    _row("path", r"@[a-z0-9\-]{1,60}/[a-z0-9._\-]{1,100}", free=True),
    _row(
        "path",
        rf"(?:[A-Za-z]:[\\/]|\\\\|%[A-Z]{{2,30}}%\\)[{_L}0-9._\-+@~()\\/]{{0,2000}}[{_L}0-9_\\)]",
        free=True,
    ),
    _row(
        "path",
        rf"[{_L}0-9_.\-]{{1,200}}(?:\\[{_L}0-9_.\-]{{1,200}}){{1,40}}\.[A-Za-z][A-Za-z0-9]{{0,7}}",
        free=True,
    ),
    _row("file", rf"[{_L}0-9_.][{_L}0-9._+@\-]{{0,200}}\.(?:{FILE_ENDINGS})", free=True),
    _row("file", rf"\.(?:{DOT_FILES})|{BUILD_FILES}"),
    _row("flag", r"--[A-Za-z][A-Za-z0-9\-]{1,60}", free=True),
    _row(
        "identifier",
        rf"_{{0,2}}[{_L}][{_L}0-9]{{0,100}}(?:_{{1,2}}[{_L}0-9]{{1,100}}){{1,60}}_{{0,2}}(?:\(\))?",
        free=True,
    ),
    _row("identifier", r"(?:__?|\$)[A-Za-z][A-Za-z0-9]{1,100}(?:__)?(?:\(\))?", free=True),
    _row("identifier", r"(?=[A-Za-z0-9]{0,99}[a-z0-9][A-Z])[A-Za-z][A-Za-z0-9]{1,100}(?:\(\))?", free=True),
    _row("identifier", rf"{_NAME}(?:\.{_NAME}){{0,10}}\(\)", free=True),
    _row(
        "identifier",
        rf"{_NAME}(?:\.{_NAME}){{2,10}}|(?=[{_L}0-9_.]{{0,200}}(?:_|[a-z][A-Z])){_NAME}\.{_NAME}",
        free=True,
    ),
    _row("identifier", rf"(?:::)?{_NAME}(?:::{_NAME}){{1,10}}(?:\(\))?", free=True),
    _row(
        "identifier",
        r"(?=[A-Za-z\-]{1,200}\d)[A-Za-z][A-Za-z0-9]{0,40}(?:-[A-Za-z0-9]{1,40}){2,20}|HEAD~\d{1,4}",
        free=True,
    ),
)
"""Forms without a space. The first that fits a token names its type."""

SPACED: tuple[Grammar, ...] = (
    _spaced_row("path", rf'"(?:~?/|[A-Za-z]:\\)[{_L}0-9._\-+@~()/\\ ]{{1,300}}"', free=True),
    _spaced_row("time", r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: ?(?:Z|UTC))?"),
    _spaced_row(
        "time",
        rf"\d{{1,2}}(?:st|nd|rd|th|er|\.)? {MONTHS}(?:,? \d{{4}})?|{MONTHS} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?",
    ),
    _spaced_row("time", r"\d{1,2}(?::\d{2})? (?:[ap]m|UTC|GMT|CET|CEST)|\d{1,2} h \d{2}"),
    _spaced_row(
        "ticket", r"(?:PR|MR|[Ii]ssue|[Tt]icket|[Bb]ug|[Pp]ull request|[Mm]erge request|[Dd]emande) #?\d{1,7}"
    ),
    _spaced_row("port", r"[Pp]orts? \d{1,5}"),
    _spaced_row("duration", rf"{_AMOUNT} (?:{TIME_UNITS})"),
    _spaced_row("number", rf"[+\-]?{_AMOUNT} (?:{UNITS}|{THINGS}|{CURRENCIES})"),
    _spaced_row("number", rf"[+\-]?{_AMOUNT} {MONEY}|(?:{CURRENCIES}) {_INTEGER}(?:\.\d{{1,15}})?[kKMB]?"),
)
"""Forms with a space, to be looked for in running text: their patterns know where a value may begin and end."""

TYPES: tuple[str, ...] = tuple(dict.fromkeys(row.type for row in (*TOKENS, *SPACED)))

MORE = "more"
"""The type of the placeholder that stands for all values beyond the total."""

_BUILD_FILES = frozenset(BUILD_FILES.split("|"))

_PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(TYPES)}), \d{{1,5}} characters, sha256 [0-9a-f]{{8}}\]", re.ASCII)
_MORE = re.compile(r"\[\d{1,5} more values, \d{1,6} characters, sha256 [0-9a-f]{8}\]", re.ASCII)

_SEGMENT_ENDS = re.compile(r"[/\\:?&=#\[\](),;@]")
_WORD = re.compile(r"A?a{2,60}|A{2,60}", re.ASCII)
"""In the shape of a text, in which every capital is an `A` and every other letter an `a`."""


def type_of(token: str) -> str | None:
    """Return the type of a token without spaces, or None if it is no value."""
    if len(token) <= TOKEN_LENGTH and not _is_word(token):
        for row in TOKENS:
            if row.pattern.fullmatch(token):
                return row.type
    return None


def _is_word(token: str) -> bool:
    """Tell whether a token is a word, at most with a capital in front: what most tokens are, and no value is."""
    return token.isalpha() and token[1:].islower() and token not in _BUILD_FILES


def within_bounds(type_: str, text: str, words: int) -> bool:
    """Tell whether a value of this type may be shown as it is.

    At most `VALUE_LENGTH` characters, and at most `words` words in a segment. Words are split at
    `_ - . %`, digits, spaces and humps; segments at `/`, `:`, `?` and their like.
    """
    if len(text) > VALUE_LENGTH:
        return False
    if not any(row.free for row in (*TOKENS, *SPACED) if row.type == type_):
        return True
    return all(len(_WORD.findall(_shape(segment))) <= words for segment in _SEGMENT_ENDS.split(text))


def _shape(text: str) -> str:
    """Return the text with letters of any script told apart only by their case."""
    return "".join("A" if at.isupper() else "a" if at.isalpha() else " " for at in text)


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
