"""Puts the parts of one home together: settings, database, keys, rules. The only place that chooses."""

import hashlib
import os
import secrets as randomness
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from governor.audit.record import AuditEvent
from governor.bell import Bell
from governor.clock import Clock, SystemClock
from governor.config import Settings, load_settings
from governor.directory.host import Host
from governor.directory.keyring import Keyring
from governor.directory.known_secrets import IN_SETTINGS, KnownSecrets, Sources, own, secret_text, strong
from governor.errors import ConfigError
from governor.inbound.model_broker import ModelBroker, ModelSettings
from governor.inbound.reader_locks import Sandbox
from governor.inbound.reader_loop import ReaderRules
from governor.message import LinkDirection
from governor.model.keeper import ModelKeeper, serve_command
from governor.model.serving import check_servable
from governor.policy.known_values import KnownValue
from governor.policy.state import Rules
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import Store
from governor.supervision.seeing import CHAT_ID, GROUP
from governor.supervision.starting import Limits
from governor.supervision.telegram_bot import TelegramBot
from governor.supervision.telegram_operations import TelegramOperations
from reader.contract import Mode

KEYRING_SERVICE = "bridge-governor"


@dataclass(frozen=True, slots=True)
class Home:
    """An opened home. Close the store when done."""

    path: Path
    settings: Settings
    store: Store
    host: Host
    keyring: Keyring

    @property
    def socket(self) -> Path:
        """Return the Unix socket of the local API."""
        return (
            Path(self.settings.local_api.socket)
            if self.settings.local_api.socket
            else self.path / "governor.sock"
        )

    @property
    def url(self) -> str:
        """Return the URL under which peers reach this governor."""
        return self.settings.url or f"https://{self.settings.listen}"

    @property
    def hosts(self) -> list[str]:
        """Return the names and addresses that the certificate is for."""
        names = [urlsplit(self.url).hostname, urlsplit(f"//{self.settings.listen}").hostname]
        return sorted({name for name in names if name and name not in ("0.0.0.0", "::")})  # noqa: S104 - not bound here


def database_path(home: Path) -> Path:
    """Return where a home keeps its database."""
    return home / "governor.db"


def open_home(home: Path, clock: Clock | None = None) -> Home:
    """Open an existing home. Raises ConfigError or StoreError with the next step."""
    settings = load_settings(home)
    if not database_path(home).exists():
        raise ConfigError(
            f"{home} has no database. Make it: governor init --name {settings.name or 'NAME'} --agent AGENT"
        )
    opened = home_of(home, settings, clock or SystemClock())
    try:
        _check_name(opened)
    except BaseException:
        opened.store.close()
        raise
    return opened


def _check_name(home: Home) -> None:
    """Refuse another name than the home was made with: the peers know that one."""
    with home.store.reading() as uow:
        first = uow.one(AuditRecord, AuditRecord.event == AuditEvent.HOST_MADE)
    made = (first.detail or {}).get("name") if first else home.host.name
    if made != home.host.name:
        raise ConfigError(
            f"The database in {home.path} is of {made!r}, its governor.toml of {home.host.name!r}. Set the name right."
        )


def home_of(home: Path, settings: Settings, clock: Clock) -> Home:
    """Open (or make) the database of a home and put its parts together."""
    host = Host(
        name=settings.name,
        clock=clock,
        new_id=lambda kind: f"{kind}_{randomness.token_hex(10)}",
        rules=rules_of(settings),
        known_secrets=known_secrets(settings, home),
        expires=settings.limits.expires,
        hold_for=settings.limits.hold_for,
    )
    return Home(home, settings, Store(database_path(home)), host, Keyring(home))


def rules_of(settings: Settings) -> Callable[[str], Rules]:
    """Return the limits of each link, by peer, from the settings."""
    limits = settings.limits
    usual = Rules(
        cap=limits.messages,
        warn_at=min(limits.warn_at, limits.messages),
        watch_for=limits.watch_for,
        text_limit=limits.text,
    )
    own = {
        peer: Rules(
            cap=usual.cap,
            warn_at=usual.warn_at,
            watch_for=usual.watch_for,
            text_limit=usual.text_limit,
            direction=link.direction,
        )
        for peer, link in settings.links.items()
    }
    return lambda peer: own.get(peer, usual)


def known_secrets(settings: Settings, home: Path) -> KnownSecrets:
    """Return the strings that no message may carry: keys and tokens of this host, and planted bait."""
    reader, telegram = settings.reader, settings.supervision.telegram
    own_files = (telegram.token_file if telegram.chat_id else "", reader.key_file if reader.model else "")
    return KnownSecrets(
        Sources(
            home,
            fixed=lambda: list(_fixed_secrets(settings)),
            listed=tuple(Path(name).expanduser() for name in settings.secrets.files),
            own=tuple(Path(name).expanduser() for name in own_files if name),
        )
    )


def _fixed_secrets(settings: Settings) -> Iterator[KnownValue]:
    """Give the secrets that stay the same while this process runs. Raises ConfigError."""
    for canary in settings.secrets.canaries:
        yield strong(canary.get_secret_value(), "One of [secrets] canaries", IN_SETTINGS)
    for name in settings.secrets.environment:
        if name not in os.environ:
            raise ConfigError(
                f"{name}, listed in [secrets] environment, is not set for the governor. Set it, or take it out."
            )
        yield strong(os.environ[name], f"{name}, listed in [secrets] environment,")
    for token in (telegram_token(settings), model_key(settings), settings.reader.key.get_secret_value()):
        yield from own(token)


def telegram_token(settings: Settings) -> str:
    """Return the bot token from the environment, its file or the keyring; empty without one."""
    telegram = settings.supervision.telegram
    return _secret(
        "telegram", telegram.token.get_secret_value(), telegram.token_file, used=telegram.chat_id != 0
    )


def model_key(settings: Settings) -> str:
    """Return the API key of the reader's model from the environment, its file or the keyring."""
    reader = settings.reader
    direct = reader.key.get_secret_value() or os.environ.get("ANTHROPIC_API_KEY", "")
    return _secret("model", direct, reader.key_file, used=bool(reader.model))


def broker_of(home: Home) -> ModelBroker | None:
    """Return what asks the reader's model; None when no model is set, and every link reads values."""
    reader = home.settings.reader
    if not reader.model_name:
        return None
    socket = _model_socket(home)
    settings = ModelSettings(
        reader.model_name,
        reader.base_url,
        "" if reader.model_file else model_key(home.settings),
        socket=socket,
        seconds=reader.deadline.total_seconds(),
        extra_body={"temperature": 0} if socket else {},
    )
    return ModelBroker(settings, home.host.clock)


def keeper_of(home: Home, bell: Bell) -> ModelKeeper | None:
    """Return what serves the reader's model file; None when none is set. Raises ConfigError."""
    named = home.settings.reader.model_file
    if not named:
        return None
    file = home.path / Path(named).expanduser()
    check_servable(file)
    command = serve_command(sys.executable, file, Path(_model_socket(home)))
    return ModelKeeper(command, home.host.clock, bell.ring)


def _model_socket(home: Home) -> str:
    """Return the Unix socket of the reader's model; empty where it has another address."""
    reader = home.settings.reader
    if reader.model_file:
        return str(home.path / "model.sock")
    kind, _, path = reader.base_url.partition(":")
    return path if kind == "unix" else ""


def reader_rules(home: Home) -> ReaderRules:
    """Return how messages are read. Without a model every link is in values mode."""
    settings = home.settings.reader
    modes = {peer: link.reader for peer, link in home.settings.links.items() if link.reader}

    def mode(peer: str) -> Mode:
        return Mode(modes.get(peer, settings.mode)) if settings.model_name else Mode.VALUES

    return ReaderRules(
        mode=mode,
        copy_limit=settings.copy_limit,
        url_hosts=frozenset(host.lower() for host in settings.url_hosts),
        deadline=settings.deadline,
        parallel=1 if settings.model_file else settings.parallel,
        sandbox=settings.sandbox,
    )


def telegram_bot(home: Home, bell: Bell) -> TelegramBot | None:
    """Return the bot of the operators' group; None when no group is set."""
    telegram = home.settings.supervision.telegram
    if telegram.chat_id == 0:
        return None
    token = telegram_token(home.settings)
    if not token:
        raise ConfigError(
            "A Telegram chat is set, but no bot token. Set token_file in [supervision.telegram]."
        )
    with home.store.reading() as uow:
        same_group = uow.fact(GROUP) == str(telegram.chat_id)
        moved = uow.fact(CHAT_ID) if same_group else None
    return TelegramBot(
        token,
        int(moved) if moved else telegram.chat_id,
        frozenset(telegram.operators),
        TelegramOperations(home.store, home.host, home.path, bell),
        home.host.clock,
        lock_path=_token_lock(token),
        base_url=f"{telegram.base_url.rstrip('/')}/bot",
    )


def _token_lock(token: str) -> Path:
    """Return one lock file per token and user, whichever home it is used from."""
    name = hashlib.sha256(token.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"bridge-governor-{os.getuid()}-{name}.lock"


def limits_of(home: Home) -> Limits:
    """Return the limits whose loosening closes the links at the next start."""
    settings = home.settings
    rules, telegram, secrets = reader_rules(home), settings.supervision.telegram, settings.secrets
    limits: Limits = {
        "messages": float(settings.limits.messages),
        "watch_for": settings.limits.watch_for.total_seconds(),
        "text": float(settings.limits.text),
        "expires": settings.limits.expires.total_seconds(),
        "hold_for": settings.limits.hold_for.total_seconds(),
        "copy_limit": float(settings.reader.copy_limit),
        "url_hosts": sorted(rules.url_hosts),
        "operators": sorted(map(str, telegram.operators)),
        "without_telegram": float(telegram.chat_id == 0),
        "without_tls": float(settings.tls == "proxy"),
        "loopback_peers": float(settings.loopback_peers),
        "less_sandbox": float(settings.reader.sandbox is Sandbox.BEST),
        "secrets": -float(len(secrets.canaries) + len(secrets.files) + len(secrets.environment)),
        "rewrite": float(settings.reader.mode == "rewrite" and bool(settings.reader.model_name)),
    }
    for peer, link in settings.links.items():
        limits[f"out.{peer}"] = float(link.direction != LinkDirection.IN)
        limits[f"in.{peer}"] = float(link.direction != LinkDirection.OUT)
        limits[f"rewrite.{peer}"] = float(rules.mode(peer) is Mode.REWRITE)
    return limits


def _secret(name: str, direct: str, file: str, *, used: bool) -> str:
    if not used or direct:
        return direct
    if file:
        return secret_text(Path(file).expanduser())
    return _from_keyring(name)


def _from_keyring(name: str) -> str:
    import keyring  # noqa: PLC0415 - only those pay who keep secrets there
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except KeyringError:
        return ""  # no keyring on this machine: the same as an empty one
