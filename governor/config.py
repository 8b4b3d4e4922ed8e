"""The settings: `governor.toml` in the home, overridden by `GOVERNOR_*` in the environment.

Every field's description is the comment in a new `governor.toml` and the row in the README, so the
three cannot drift apart.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from governor.errors import ConfigError
from governor.inbound.reader_locks import Sandbox
from governor.listen_address import Address, is_loopback
from governor.message import TEXT_LIMIT, LinkDirection

ENV_PREFIX = "GOVERNOR_"
NOT_SETTINGS = frozenset({"GOVERNOR_HOME", "GOVERNOR_AGENT", "GOVERNOR_CLI", "GOVERNOR_DEBUG"})
"""Variables of ours that are no settings: where the home is, who speaks, which program, whether to trace."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(value: object) -> object:
    """Turn `90`, `"90s"`, `"5m"`, `"2h"` or `"1d"` into a timedelta; leave the rest to pydantic."""
    if isinstance(value, str) and (found := re.fullmatch(r"([0-9]{1,6})([smhd]?)", value.strip())):
        return timedelta(seconds=int(found[1]) * _UNITS[found[2] or "s"])
    return value


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LocalApi(_Section):
    """The API for the agents of this host."""

    listen: Address = Field("127.0.0.1:18801", description="TCP address for local agents; loopback only")
    socket: str = Field("", description="Unix socket for local agents; empty: governor.sock in the home")


class Limits(_Section):
    """What may pass without a human."""

    messages: int = Field(
        50, ge=1, le=10_000, description="messages a direction of a link may carry until the next GO"
    )
    warn_at: int = Field(40, ge=1, description="at which of them the operators are warned")
    watch_for: Duration = Field(
        timedelta(minutes=5), description="how long a link stays open after the last human activity"
    )
    text: int = Field(TEXT_LIMIT, ge=1, le=TEXT_LIMIT, description="longest text of a message, in characters")
    expires: Duration = Field(
        timedelta(minutes=10),
        gt=timedelta(0),
        le=timedelta(hours=24),
        description="how long a message may wait to be accepted by the peer; at most 24h",
    )
    hold_for: Duration = Field(
        timedelta(minutes=10),
        description="how long a message may wait behind a closed link and still go on after GO",
    )


class Reader(_Section):
    """The reader and the one model call."""

    mode: Literal["rewrite", "values"] = Field(
        "rewrite", description='"rewrite": retold by a model; "values": typed values only, no prose'
    )
    model: str = Field("", description="model name; empty: no model, so every link reads in values mode")
    base_url: str = Field(
        "",
        pattern=r"^(https?://\S+|unix:/.+)?$",
        description='any Anthropic-compatible server, also "unix:/path/of.sock"; empty: the hosted one',
    )
    model_file: str = Field(
        "",
        description="GGUF file that the governor serves itself, one message at a time; in place of base_url. See: governor model fetch",
    )
    key: SecretStr = Field(
        SecretStr(""), description="API key; better: ANTHROPIC_API_KEY, key_file or the keyring"
    )
    key_file: str = Field("", description="file that holds the API key")
    deadline: Duration = Field(
        timedelta(seconds=60), description="after which a reader is killed and the message dropped"
    )
    copy_limit: int = Field(20, ge=3, le=200, description="longest run of words a rewrite may copy")
    url_hosts: list[str] = Field([], description="hosts whose URLs may stand in a rewrite as they are")
    parallel: int = Field(2, ge=1, le=16, description="readers at work at one time; with model_file one")
    sandbox: Sandbox = Field(
        Sandbox.REQUIRED,
        description='"required": the governor starts only where the system can lock readers in; "best": with what it can',
    )

    @property
    def model_name(self) -> str:
        """Return what the model is called; empty where there is none."""
        return self.model or Path(self.model_file).stem

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.model_file and self.base_url:
            raise ValueError("model_file and base_url name two models; remove one of them")
        return self


class Telegram(_Section):
    """The operators' group."""

    token: SecretStr = Field(SecretStr(""), description="bot token; better: token_file or the keyring")
    token_file: str = Field("", description="file that holds the bot token")
    chat_id: int = Field(0, description="id of the one group; 0: no Telegram")
    operators: list[int] = Field([], description="numeric user ids that may say GO")
    base_url: str = Field("https://api.telegram.org", description="Bot API server")


class Supervision(_Section):
    """How humans watch."""

    telegram: Telegram = Telegram()


class Secrets(_Section):
    """What must never leave in a message."""

    canaries: list[SecretStr] = Field(
        [],
        description="strings planted as bait: a message that carries one pauses every link. Better: governor canary plant",
    )
    files: list[str] = Field([], description="files whose whole content no message may carry")
    environment: list[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]] = Field(
        [], description="names of the governor's environment variables whose value no message may carry"
    )


class LinkSettings(_Section):
    """Settings of one link: `[links.PEER]`."""

    direction: LinkDirection = Field(LinkDirection.BOTH, description='"both", "in" or "out"')
    reader: Literal["rewrite", "values", ""] = Field(
        "", description="reader mode of this link; empty: as [reader] mode"
    )


class Settings(BaseSettings):
    """All settings of one governor."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True, validate_default=True
    )

    name: str = Field(
        "", pattern=r"^[a-z0-9-]{0,32}$", description="this governor's name; set by `governor init`"
    )
    listen: Address = Field("127.0.0.1:18802", description="address for peer governors")
    url: str = Field(
        "", description="https URL under which peers reach `listen`; empty: https:// and that address"
    )
    tls: Literal["mutual", "proxy"] = Field(
        "mutual",
        description='"mutual": TLS pinned to paired certificates; "proxy": plain HTTP on loopback behind Tailscale Serve',
    )
    loopback_peers: bool = Field(False, description="permit peers on this same machine (tests, demo)")
    local_api: LocalApi = LocalApi()
    limits: Limits = Limits()
    reader: Reader = Reader()
    supervision: Supervision = Supervision()
    secrets: Secrets = Secrets()
    links: dict[str, LinkSettings] = Field({}, description="settings of single links: [links.PEER]")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - pydantic's signature
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - pydantic's signature
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment win over the file (which comes in as init values)."""
        return env_settings, init_settings


def known_keys() -> dict[str, Any]:
    """Return every setting by its dotted name with its field; `links.*` stands for any link."""
    return dict(_fields(Settings, ""))


def _fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(kind, f"{prefix}{name}.")
        elif name == "links":
            yield from _fields(LinkSettings, f"{prefix}links.*.")
        else:
            yield f"{prefix}{name}", field


def load_settings(home: Path) -> Settings:
    """Read the settings of a home; raises ConfigError with the line, key or value at fault."""
    path = home / "governor.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"No governor lives in {home}. Make one: governor init --name NAME --agent AGENT"
        ) from None
    except PermissionError:
        raise ConfigError(f"{path} cannot be read: it belongs to another user.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}. Mend that line and try again.") from None
    _refuse_unknown([*_dotted(values, "")], str(path))
    _refuse_unknown(
        [
            key[len(ENV_PREFIX) :].lower().replace("__", ".")
            for key in os.environ
            if key.startswith(ENV_PREFIX) and key not in NOT_SETTINGS
        ],
        "the environment",
    )
    try:
        settings = Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        fault = first["msg"].removeprefix("Value error, ")
        raise ConfigError(f"Setting {where} in {path} or the environment: {fault}.") from None
    except ValueError as error:
        raise ConfigError(f"A GOVERNOR_ variable in the environment cannot be read: {error}.") from None
    _refuse_open_doors(settings)
    return settings


def _refuse_open_doors(settings: Settings) -> None:
    """Refuse what would let other machines reach what only this one may."""
    if not is_loopback(settings.local_api.listen):
        raise ConfigError(
            "local_api.listen must be a loopback address: agents of other hosts use their own governor."
        )
    if settings.tls == "proxy" and not is_loopback(settings.listen):
        raise ConfigError(
            'With tls = "proxy" the peer listener speaks plain HTTP: listen must be a loopback address.'
        )


def _dotted(values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _refuse_unknown(keys: list[str], where: str) -> None:
    known = known_keys()
    for key in keys:
        pattern = re.sub(r"^links\.[^.]+\.", "links.*.", key)
        if pattern in known or any(name.startswith(pattern + ".") for name in known):
            continue
        near = difflib.get_close_matches(pattern, known, n=1, cutoff=0.0)
        raise ConfigError(f"Unknown setting {key} in {where}. Did you mean {near[0]}?")


def toml_value(value: object) -> str:
    """Write a default as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return f'"{duration_text(value)}"'
    if isinstance(value, SecretStr):
        return '""'
    if isinstance(value, list | dict):
        return "[]"
    return str(value) if isinstance(value, int) else f'"{value}"'


def duration_text(value: timedelta) -> str:
    """Write a timedelta as the settings do: `5m`, `90s`."""
    seconds = int(value.total_seconds())
    for unit in ("d", "h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{seconds}s"


def settings_file(name: str, **chosen: str) -> str:
    """Return a new `governor.toml`: every setting with its default, commented out, and the name set.

    `chosen` are settings outside the sections that are set too, such as `listen`.
    """
    lines = ["# Settings of this governor. Lines that begin with # show the defaults.", f'name = "{name}"']
    section = ""
    for key, field in known_keys().items():
        head, _, leaf = key.rpartition(".")
        if key == "name":
            continue
        if head != section:
            section = head
            shown = head.replace("links.*", "links.PEER")
            lines += ["", f"# [{shown}]" if "*" in head else f"[{shown}]"]
        set_to = f"{key} = {toml_value(chosen[key])}" if key in chosen else None
        lines += [f"# {field.description}", set_to or f"# {leaf} = {toml_value(field.default)}"]
    return "\n".join(lines) + "\n"
