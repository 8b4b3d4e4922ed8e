"""Puts the parts of one home together: settings, database, keys, rules. The only place that chooses."""

import hashlib
import os
import secrets as randomness
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from governor.audit.record import AuditEvent
from governor.bell import Bell
from governor.clock import Clock, SystemClock
from governor.config import Settings, load_settings
from governor.directory.host import Host
from governor.directory.keyring import Keyring
from governor.errors import ConfigError
from governor.inbound.model_broker import ModelBroker, ModelSettings
from governor.inbound.reader_loop import ReaderRules
from governor.message import LinkDirection
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


def known_secrets(settings: Settings, home: Path) -> frozenset[str]:
    """Return the strings that no message may carry: keys and tokens of this host, and planted bait."""
    found = {secret.get_secret_value() for secret in settings.secrets.canaries}
    found |= {_file_text(Path(name).expanduser()) for name in settings.secrets.files}
    found |= {telegram_token(settings), model_key(settings), settings.reader.key.get_secret_value()}
    for path in sorted((home / "keys").glob("*")) if (home / "keys").is_dir() else ():
        if path.suffix in (".totp", ".sign"):
            found.add(_file_text(path, "a key of this home"))
    return frozenset(found - {""})


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
    if not reader.model:
        return None
    return ModelBroker(
        ModelSettings(reader.model, reader.base_url, model_key(home.settings)), home.host.clock
    )


def reader_rules(home: Home) -> ReaderRules:
    """Return how messages are read. Without a model every link is in values mode."""
    settings = home.settings.reader
    modes = {peer: link.reader for peer, link in home.settings.links.items() if link.reader}

    def mode(peer: str) -> Mode:
        return Mode(modes.get(peer, settings.mode)) if settings.model else Mode.VALUES

    return ReaderRules(
        mode=mode,
        copy_limit=settings.copy_limit,
        url_hosts=frozenset(host.lower() for host in settings.url_hosts),
        deadline=settings.deadline,
        parallel=settings.parallel,
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
    rules, telegram = reader_rules(home), settings.supervision.telegram
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
        "rewrite": float(settings.reader.mode == "rewrite" and bool(settings.reader.model)),
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
        return _file_text(Path(file).expanduser())
    return _from_keyring(name)


def _from_keyring(name: str) -> str:
    import keyring  # noqa: PLC0415 - only those pay who keep secrets there
    from keyring.errors import KeyringError  # noqa: PLC0415 - see above

    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except KeyringError:
        return ""  # no keyring on this machine: the same as an empty one


def _file_text(path: Path, what: str = "named in the settings") -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise ConfigError(f"{path}, {what}, cannot be read: {reason}. Restore it, or mend its rights.")
