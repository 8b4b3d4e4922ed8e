"""What the checks cost: on ordinary messages beside a floor, and on inputs made to be slow.

In processor time, which other work on the machine does not lengthen by waiting.
"""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.models import HONEST
from benchmarks.reading import asked, job_of
from benchmarks.texts import Text
from reader import checks, copying, forms, grammar, invention, normalise, rewrite, urls, values
from reader.contract import WORDS, Mode
from reader.errors import DroppedError
from reader.grammar import SPACED, TOKEN_LENGTH, TOKENS
from reader.prompt import question

Search = Callable[[str], object]

SIZE = 10_000
GOAL_MS = 50.0

_REPEATS = 3
_MODULES: tuple[ModuleType, ...] = (
    checks,
    copying,
    forms,
    grammar,
    invention,
    normalise,
    rewrite,
    urls,
    values,
)

PUMPS: tuple[str, ...] = (
    *(
        "a",
        "A",
        "0",
        "_",
        "-",
        ".",
        "/",
        "\\",
        ":",
        "@",
        "=",
        "%",
        "(",
        "[",
        "]",
        "<",
        "<|",
        " ",
        "\n",
        "\u4e2d",
    ),
    *(
        "a.",
        "a_",
        "aB",
        "a/",
        "a:",
        "a::",
        "a@",
        "a-",
        "1,",
        "1.",
        "1 000 ",
        "0a",
        "://",
        "http://a/",
        "[.]",
        "a.com",
    ),
    *(
        "<!--",
        "-->",
        "\x1b[",
        "\x1b]",
        "[INST",
        "<|a",
        '"/a ',
        "1 1 ",
        "Nov ",
        "ignore all ",
        "do not ",
        "you must",
    ),
    *(
        "system ",
        "[ ",
        "![",
        "a.py::b",
        "a.py:1",
        "www.a",
        "x@y.z.",
        "PT1",
        "v1.",
        "--a",
        "fe80:",
        "e\u0301",
        "\u00e9_",
    ),
    *("=", "&#", "{ '", "role: ", "note du ", "ne dis ", "a-1-", "//a.com/", "1.1.1.1/"),
)


def patterns() -> dict[str, tuple[Search, int]]:
    """Return every regular expression of the reader by name: as it is used, and on how long a text."""
    found = {
        f"{module.__name__}.{name}": value
        for module in _MODULES
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern)
    }
    found |= {f"spaced {at} {row.type}": row.pattern for at, row in enumerate(SPACED)}
    every = (*forms.FORMS, *forms.ORDERS, *forms.OVERRIDES)
    found |= {form.what: forms.found_by((form,), form.code) for form in every}
    return {name: (partial(_all, pattern), SIZE) for name, pattern in found.items()} | {
        f"token {at} {row.type}": (row.pattern.fullmatch, TOKEN_LENGTH) for at, row in enumerate(TOKENS)
    }


def slowest_pattern() -> dict[str, Any]:
    """Return the slowest search of one pattern in one pumped text."""
    every = (
        (_best(partial(search, (pump * size)[: size - 1] + "!")), name, pump)
        for name, (search, size) in patterns().items()
        for pump in PUMPS
    )
    seconds, name, pump = max(every)
    return {"ms": round(seconds * 1000, 2), "pattern": name, "pump": pump}


def slowest_message() -> dict[str, Any]:
    """Return the pumped message of 10,000 characters that all steps and checks together take longest for."""
    every = (
        (_best(partial(_read, Text("x", "", hostile=True, text=(pump * SIZE)[:SIZE], goal=""))), pump)
        for pump in PUMPS
    )
    seconds, pump = max(every)
    return {"ms": round(seconds * 1000, 2), "pump": pump}


def per_thousand(texts: Iterable[Text]) -> dict[str, float]:
    """Return microseconds per 1,000 characters: of all steps and checks, and of reading as much JSON."""
    readable = [text for text in texts if _is_readable(text)]
    characters = sum(len(text.text) for text in readable)
    quoted = [json.dumps(text.text) for text in readable]
    ours = _best(lambda: list(map(_read, readable)))
    floor = _best(lambda: list(map(json.loads, quoted)))
    scale = 1e9 / max(characters, 1)
    return {"checks_us": round(ours * scale, 1), "json_us": round(floor * scale, 3), "characters": characters}


def _read(text: Text) -> None:
    """Do every step and every check for one message that is retold honestly, whichever fails."""
    job = job_of(text)
    source = normalise.normalise(text.text)
    values.listed(source.text, WORDS[Mode.REWRITE], job.url_hosts)
    answer = HONEST["retold"](*asked(question(source.text, job.nonce)), "")
    draft = rewrite.read_draft(answer, job.nonce)
    case = checks.Case(draft, source.text, job.nonce, job.copy_limit, job.url_hosts)
    for check in (*checks.CHECKS, *checks.SHOWN_CHECKS):
        check.fails(case)


def _is_readable(text: Text) -> bool:
    try:
        _read(text)
    except DroppedError:
        return False
    return True


def _all(pattern: re.Pattern[str], text: str) -> None:
    for _ in pattern.finditer(text):
        pass


def _best(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few runs, of processor time."""
    taken = []
    for _ in range(_REPEATS):
        started = time.process_time()
        with contextlib.suppress(DroppedError):
            work()
        taken.append(time.process_time() - started)
    return min(taken)
