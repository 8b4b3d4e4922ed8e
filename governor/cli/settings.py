"""`governor config`: the settings in force, and where each comes from. Secrets are not shown."""

import argparse
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr
from pydantic_settings import EnvSettingsSource

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_json
from governor.config import LinkSettings, Settings, duration_text, known_keys, load_settings

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")
"""User name and password in a URL."""


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `config`."""
    parser = subparsers.add_parser("config", help="show the settings in force and where each comes from")
    add_json(parser)
    parser.set_defaults(func=answering(_config))


def _config(args: argparse.Namespace) -> Answer:
    rows = list(effective(args.home))
    return Answer(
        [f"{key} = {json.dumps(value)}  # {source}" for key, value, source in rows],
        {"settings": {key: {"value": value, "source": source} for key, value, source in rows}},
    )


def effective(home: Path) -> Iterator[tuple[str, Any, str]]:
    """Yield each setting's dotted name, its value as far as it may be seen, and its source."""
    settings = load_settings(home)
    file = tomllib.loads((home / "governor.toml").read_text(encoding="utf-8"))
    environment = EnvSettingsSource(Settings)()
    plain = [key for key in known_keys() if not key.startswith("links.")]
    links = [f"links.{peer}.{leaf}" for peer in settings.links for leaf in LinkSettings.model_fields]
    for key in (*plain, *links):
        parts = key.split(".")
        source = next(
            (name for name, values in (("environment", environment), ("file", file)) if _has(values, parts)),
            "default",
        )
        yield key, _visible(reduce(_get, parts, settings)), source


def _get(values: Any, part: str) -> Any:  # noqa: ANN401 - sections, the mapping of links, and leaves
    return values[part] if isinstance(values, Mapping) else getattr(values, part)


def _has(values: object, parts: list[str]) -> bool:
    for part in parts:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _visible(value: object) -> object:
    match value:
        case SecretStr():
            return "set" if value.get_secret_value() else "not set"
        case timedelta():
            return duration_text(value)
        case [SecretStr(), *_]:
            return f"{len(value)} set"
        case str():
            return _LOGIN.sub("", str(value))
        case _:
            return value
