"""What the settings of one home become: rules, reader, secrets, the bot, and what counts as loosening."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from governor.audit.log import genesis
from governor.bell import Bell
from governor.clock import SystemClock
from governor.config import Settings, settings_file
from governor.errors import ConfigError
from governor.inbound.model_broker import ModelSettings
from governor.message import LinkDirection
from governor.policy.known_values import Known
from governor.supervision.seeing import CHAT_ID, GROUP
from governor.wiring import (
    Home,
    broker_of,
    database_path,
    home_of,
    keeper_of,
    known_secrets,
    limits_of,
    model_key,
    open_home,
    reader_rules,
    rules_of,
    telegram_bot,
)
from reader.contract import Mode

TOKEN = "11:TOKEN-OF-THE-BOT"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Callable[..., Home]]:
    made: list[Home] = []

    def make(**settings: object) -> Home:
        made.append(home_of(tmp_path, Settings(**{"name": "max-host", **settings}), SystemClock()))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def test_a_link_may_have_a_direction_of_its_own() -> None:
    settings = Settings(
        limits={"messages": 30, "warn_at": 40, "watch_for": "2m", "text": 99},
        links={"eva-host": {"direction": "in"}},
    )
    rules = rules_of(settings)
    assert rules("eva-host").direction is LinkDirection.IN
    assert rules("zoe-host").direction is LinkDirection.BOTH
    for peer in ("eva-host", "zoe-host"):
        found = rules(peer)
        assert (found.cap, found.warn_at, found.watch_for.total_seconds(), found.text_limit) == (
            30,
            30,
            120,
            99,
        )


def test_a_model_file_is_served_on_a_socket_of_the_home(
    home: Callable[..., Home], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-hosted-one")
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "stand_in")
    (tmp_path / "m.gguf").write_bytes(b"GGUF and so on")
    made = home(reader={"model_file": "m.gguf"})
    broker, keeper = broker_of(made), keeper_of(made, Bell())
    assert broker is not None
    assert keeper is not None
    assert broker._settings == ModelSettings(
        "m", socket=str(tmp_path / "model.sock"), extra_body={"temperature": 0}
    )
    assert str(tmp_path / "m.gguf") in keeper._command
    assert str(tmp_path / "model.sock") in keeper._command
    assert reader_rules(made).mode("eva-host") is Mode.REWRITE
    assert reader_rules(made).parallel == 1
    assert limits_of(made)["rewrite"] == 1


def test_a_server_on_a_socket_is_asked_there_and_kept_by_nobody(home: Callable[..., Home]) -> None:
    made = home(reader={"model": "mine", "base_url": "unix:/run/m.sock", "deadline": "90s"})
    broker = broker_of(made)
    assert broker is not None
    assert broker._settings.socket == "/run/m.sock"
    assert (broker._settings.seconds, broker._settings.extra_body) == (90, {"temperature": 0})
    assert keeper_of(made, Bell()) is None


def test_a_model_file_that_cannot_be_served_is_a_clear_error(
    home: Callable[..., Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "stand_in")
    with pytest.raises(ConfigError, match=r"/nowhere\.gguf cannot be read.*governor model fetch"):
        keeper_of(home(reader={"model_file": "/nowhere.gguf"}), Bell())


def test_without_a_model_every_link_reads_values(home: Callable[..., Home]) -> None:
    plain = home(links={"eva-host": {"reader": "rewrite"}})
    assert reader_rules(plain).mode("eva-host") is Mode.VALUES
    assert broker_of(plain) is None


def test_with_a_model_a_link_may_have_a_mode_of_its_own(home: Callable[..., Home]) -> None:
    made = home(reader={"model": "m", "url_hosts": ["Example.ORG"]}, links={"eva-host": {"reader": "values"}})
    rules = reader_rules(made)
    assert (rules.mode("eva-host"), rules.mode("zoe-host")) == (Mode.VALUES, Mode.REWRITE)
    assert rules.url_hosts == frozenset({"example.org"})
    assert broker_of(made) is not None


def test_the_secrets_of_this_host_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "operator.totp").write_text("JBSWY3DPEHPK3PXP\n")
    (tmp_path / "own").write_text("crane-8812-lantern\n")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "model").write_text("a-key-of-the-model-77\n")
    monkeypatch.setenv("VAULT_PASSWORD", "xK9-mQ2-pL7")
    settings = Settings(
        reader={"model": "m", "key_file": str(tmp_path / "model")},
        supervision={"telegram": {"chat_id": -5, "token_file": str(tmp_path / "token")}},
        secrets={
            "canaries": ["heron-4417-lantern"],
            "files": [str(tmp_path / "own")],
            "environment": ["VAULT_PASSWORD"],
        },
    )
    found = known_secrets(settings, tmp_path)()
    assert {needle.text for needle in found.canaries if not needle.bare} == {"heron-4417-lantern"}
    assert {needle.text for needle in found.others if not needle.bare} == {
        "JBSWY3DPEHPK3PXP",
        "crane-8812-lantern",
        TOKEN,
        "a-key-of-the-model-77",
        "xK9-mQ2-pL7",
    }
    assert known_secrets(Settings(), tmp_path / "nowhere")() == Known()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-from-the-environment-5")
    assert known_secrets(Settings(), tmp_path / "nowhere")().others


@pytest.mark.parametrize("spoil", [Path.mkdir, lambda path: path.write_bytes(b"\xff")])
def test_a_secret_that_cannot_be_read_is_named(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(tmp_path / "pin")
    secrets = known_secrets(Settings(secrets={"files": [str(tmp_path / "pin")]}), tmp_path)
    with pytest.raises(ConfigError, match="pin, named in the settings, cannot be read"):
        secrets()


@pytest.mark.parametrize("value", ["", "4711", "production", "aaaaaaaaaaaaaaaaaaaa"])
@pytest.mark.parametrize(
    ("listed", "what"),
    [
        (lambda value, _path: {"canaries": [value]}, "One of \\[secrets\\] canaries"),
        (lambda _value, path: {"files": [str(path)]}, "listed in \\[secrets\\] files,"),
        (lambda _value, _path: {"environment": ["LISTED"]}, "LISTED, listed in \\[secrets\\] environment,"),
    ],
)
def test_a_listed_value_that_harmless_texts_hold_is_refused_and_not_repeated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    listed: Callable[[str, Path], dict[str, list[str]]],
    what: str,
) -> None:
    path = tmp_path / "listed"
    path.write_text(value)
    monkeypatch.setenv("LISTED", value)
    with pytest.raises(ConfigError, match=what + " is no secret that can be searched for") as error:
        known_secrets(Settings(secrets=listed(value, path)), tmp_path)()
    assert value == "" or value not in error.value.message


def test_a_listed_variable_that_is_not_set_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LISTED", raising=False)
    with pytest.raises(ConfigError, match=r"LISTED, listed .* is not set for the governor. Set it, or take"):
        known_secrets(Settings(secrets={"environment": ["LISTED"]}), tmp_path)()


class _Keychain(KeyringBackend):
    priority = 1  # type: ignore[assignment] # a class property there

    def get_password(self, service: str, username: str) -> str | None:
        return f"{service}/{username}"

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


def test_a_key_may_lie_in_the_keyring_or_nowhere() -> None:
    assert model_key(Settings(reader={"model": "m"})) == ""
    keyring.set_keyring(_Keychain())
    assert model_key(Settings(reader={"model": "m"})) == "bridge-governor/model"
    assert model_key(Settings(reader={"model": "m", "key": "sk"})) == "sk"
    assert model_key(Settings()) == ""  # not even asked for


def test_no_bot_without_a_group_and_no_group_without_a_token(home: Callable[..., Home]) -> None:
    assert telegram_bot(home(), Bell()) is None
    with pytest.raises(ConfigError, match="token_file"):
        telegram_bot(home(supervision={"telegram": {"chat_id": -5}}), Bell())


@pytest.mark.parametrize(("group", "chat"), [("-5", -7), ("-9", -5), (None, -5)])
def test_the_bot_follows_the_group_that_moved(
    home: Callable[..., Home], group: str | None, chat: int
) -> None:
    made = home(supervision={"telegram": {"chat_id": -5, "token": TOKEN, "base_url": "http://127.0.0.1:9/"}})
    with made.store.begin() as uow:
        uow.set_fact(CHAT_ID, "-7")
        if group is not None:
            uow.set_fact(GROUP, group)
    bot = telegram_bot(made, Bell())
    assert bot is not None
    assert bot._posting.chat_id == chat
    assert TOKEN not in bot._lock_path.name
    assert str(os.getuid()) in bot._lock_path.name


def test_every_limit_grows_as_it_is_loosened(home: Callable[..., Home]) -> None:
    telegram = {"chat_id": -5, "operators": [1]}
    tight = home(
        limits={"messages": 5, "watch_for": "1m", "text": 10, "expires": "1m", "hold_for": "1m"},
        reader={"copy_limit": 3, "mode": "values"},
        supervision={"telegram": {**telegram, "token": TOKEN}},
        secrets={"files": ["~/.ssh/id_ed25519"]},
        links={"eva-host": {"direction": "out", "reader": "values"}},
    )
    loose = home(
        reader={"model": "m", "copy_limit": 30, "url_hosts": ["example.org"], "sandbox": "best"},
        tls="proxy",
        loopback_peers=True,
        links={"eva-host": {}},
    )
    before, after = limits_of(tight), limits_of(loose)
    assert before.keys() == after.keys()
    for name, old in before.items():
        new = after[name]
        if isinstance(old, list):
            assert set(old) <= set(new) or name == "operators"
        elif name != "out.eva-host":
            assert new > old, name


def _made(home: Path, name: str) -> None:
    (home / "governor.toml").write_text(settings_file("max-host"))
    opened = home_of(home, Settings(name=name), SystemClock())
    with opened.store.begin() as uow:
        genesis(uow, SystemClock().now(), name, "f" * 64)
    opened.store.close()


def test_a_home_opens_under_the_name_it_was_made_with(tmp_path: Path) -> None:
    _made(tmp_path, "max-host")
    open_home(tmp_path).store.close()


def test_under_another_name_it_does_not(tmp_path: Path) -> None:
    _made(tmp_path, "eva-host")
    with pytest.raises(ConfigError, match=r"of 'eva-host', its governor\.toml of 'max-host'"):
        open_home(tmp_path)


def test_a_home_without_a_database_is_none(tmp_path: Path) -> None:
    (tmp_path / "governor.toml").write_text(settings_file("max-host"))
    with pytest.raises(ConfigError, match="governor init --name max-host"):
        open_home(tmp_path)
    assert not database_path(tmp_path).exists()


@pytest.mark.parametrize(
    ("settings", "url", "hosts"),
    [
        ({}, "https://127.0.0.1:18802", ["127.0.0.1"]),
        ({"listen": "[::1]:5"}, "https://[::1]:5", ["::1"]),
        ({"listen": "0.0.0.0:5", "url": "https://max.example:9"}, "https://max.example:9", ["max.example"]),
    ],
)
def test_how_peers_reach_it(
    home: Callable[..., Home], settings: dict[str, str], url: str, hosts: list[str]
) -> None:
    made = home(**settings)
    assert (made.url, made.hosts) == (url, hosts)


def test_the_socket_lies_in_the_home_or_where_it_is_set(home: Callable[..., Home], tmp_path: Path) -> None:
    assert home().socket == tmp_path / "governor.sock"
    assert home(local_api={"socket": "/run/governor/max.sock"}).socket == Path("/run/governor/max.sock")
