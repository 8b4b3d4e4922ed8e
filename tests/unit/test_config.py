import re
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from governor.config import Settings, duration_text, known_keys, load_settings, parse_duration, settings_file
from governor.errors import ConfigError
from governor.listen_address import Address, is_loopback, split_address


def written(home: Path, text: str) -> Path:
    (home / "governor.toml").write_text(text, encoding="utf-8")
    return home


def test_a_new_file_sets_nothing_but_the_name_and_shows_every_default(tmp_path: Path) -> None:
    text = settings_file("max-host", listen="100.64.0.7:18802")
    assert load_settings(written(tmp_path, text)) == Settings(name="max-host", listen="100.64.0.7:18802")
    for key in known_keys():
        assert re.search(rf"^(# )?{key.rpartition('.')[2]} = ", text, re.MULTILINE), key


def test_every_default_in_a_new_file_is_what_holds_without_it(tmp_path: Path) -> None:
    lines = settings_file("max-host").splitlines()
    plain = [line.removeprefix("# ") for line in lines if re.match(r"(# )?([a-z_]+ = |\[)", line)]
    kept = "\n".join(plain).replace("[links.PEER]", "[links.eva-host]")
    assert load_settings(written(tmp_path, kept)).model_copy(update={"links": {}}) == Settings(
        name="max-host"
    )


def test_the_environment_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVERNOR_LIMITS__MESSAGES", "7")
    monkeypatch.setenv("GOVERNOR_HOME", "/elsewhere")  # no setting
    settings = load_settings(written(tmp_path, "name = 'max-host'\n[limits]\nmessages = 5\ntext = 9"))
    assert (settings.limits.messages, settings.limits.text) == (7, 9)


@pytest.mark.parametrize(
    ("name", "value"), [("GOVERNOR_LIMIT__MESSAGES", "7"), ("GOVERNOR_SECRETS__CANARIES", "no JSON")]
)
def test_the_environment_is_checked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="environment") as caught:
        load_settings(written(tmp_path, "name = 'max-host'"))
    assert value not in caught.value.message


def test_a_key_far_from_all_is_named_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Unknown setting zzzzz in .*governor\.toml"):
        load_settings(written(tmp_path, "zzzzz = 1"))


@pytest.mark.parametrize("text", ["[links.eva-host]\ndirectoin = 'in'", "[link.eva-host]\ndirection = 'in'"])
def test_links_are_checked_too(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean links\.\*\.direction"):
        load_settings(written(tmp_path, text))


def test_a_file_that_may_not_be_read_is_said_to_be_of_another(tmp_path: Path) -> None:
    class Closed(type(tmp_path)):  # type: ignore[misc] # as root everything may be read
        def read_text(self, *_: object, **__: object) -> str:
            raise PermissionError

    with pytest.raises(ConfigError, match="another user"):
        load_settings(Closed(tmp_path))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), (" 5m ", 300), ("2h", 7200), ("1d", 86400)]
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert parse_duration(duration_text(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize("value", ["", "5 m", "-1s", "1w", "1.5h", "٣s", 90])
def test_what_is_no_duration_of_ours_is_left_to_the_check(value: object) -> None:
    assert parse_duration(value) is value or parse_duration(value) == value


@pytest.mark.parametrize(
    ("address", "parts", "loopback"),
    [
        ("127.0.0.1:18802", ("127.0.0.1", 18802), True),
        ("127.8.8.8:1", ("127.8.8.8", 1), True),
        ("[::1]:65535", ("::1", 65535), True),
        ("localhost:80", ("localhost", 80), True),
        ("0.0.0.0:80", ("0.0.0.0", 80), False),  # noqa: S104 - nothing is bound
        ("[::]:80", ("::", 80), False),
        ("100.64.0.7:80", ("100.64.0.7", 80), False),
        ("127.example.org:80", ("127.example.org", 80), False),
        ("[::ffff:127.0.0.1]:80", None, None),
    ],
)
def test_addresses(address: str, parts: tuple[str, int] | None, loopback: bool | None) -> None:
    if parts is None:
        with pytest.raises(ValidationError):
            TypeAdapter(Address).validate_python(address)
        return
    assert TypeAdapter(Address).validate_python(address) == address
    assert split_address(address) == parts
    assert is_loopback(address) is loopback


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "a b:1", "::1:80", "h:٣"],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Address).validate_python(address)


@pytest.mark.parametrize(
    "text",
    ["[local_api]\nlisten = '100.64.0.7:18801'", "tls = 'proxy'\nlisten = '100.64.0.7:18802'"],
)
def test_what_others_must_not_reach_is_for_this_machine(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        load_settings(written(tmp_path, text))
    load_settings(written(tmp_path, text.replace("100.64.0.7", "127.0.0.1")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limits]\nmessages = 'many'", "limits.messages"),
        ("[limits]\nmessages = 0", "limits.messages"),
        ("limits = 5", "limits"),
        ("name = 'Max Host'", "name"),
        ("listen = 'max:0'", "a port is a number from 1 to 65535"),
        ("tls = 'none'", "tls"),
        ("[links.eva-host]\ndirection = 'sideways'", "links.eva-host.direction"),
        ("[reader]\nbase_url = 'localhost:80'", "reader.base_url"),
        ("name = max", "line 1"),
        ("[foo]", "foo"),
    ],
)
def test_a_value_that_cannot_be_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"governor\.toml") as caught:
        load_settings(written(tmp_path, text))
    assert words in caught.value.message


def test_a_secret_of_the_wrong_kind_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(written(tmp_path, "[supervision.telegram]\ntoken = 123456789"))
    assert "supervision.telegram.token" in caught.value.message
    assert "123456789" not in caught.value.message


def test_without_a_file_there_is_no_governor(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="governor init"):
        load_settings(tmp_path)


@pytest.mark.parametrize("value", ["0s", "25h"])
def test_a_message_lives_no_longer_than_peers_take_it(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"limits\.expires"):
        load_settings(written(tmp_path, f"name = 'max-host'\n[limits]\nexpires = '{value}'"))


@pytest.mark.parametrize(
    "where", ["https://models.example", "http://127.0.0.1:11434", "unix:/run/user/1/m.sock"]
)
def test_a_model_may_be_anywhere(tmp_path: Path, where: str) -> None:
    reader = load_settings(written(tmp_path, f"name = 'a'\n[reader]\nbase_url = '{where}'")).reader
    assert (reader.base_url, reader.model_name) == (where, "")


@pytest.mark.parametrize("where", ["unix:m.sock", "unix:", "ftp://models.example", "models.example"])
def test_an_address_that_is_none_is_refused(tmp_path: Path, where: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        load_settings(written(tmp_path, f"name = 'a'\n[reader]\nbase_url = '{where}'"))


def test_a_model_file_gives_the_model_its_name(tmp_path: Path) -> None:
    file = "name = 'a'\n[reader]\nmodel_file = 'models/qwen-1.5b.gguf'\n"
    assert load_settings(written(tmp_path, file)).reader.model_name == "qwen-1.5b"
    assert load_settings(written(tmp_path, file + "model = 'mine'")).reader.model_name == "mine"


def test_a_model_file_and_an_address_exclude_each_other(tmp_path: Path) -> None:
    text = "name = 'a'\n[reader]\nmodel_file = 'm.gguf'\nbase_url = 'http://127.0.0.1:1'"
    with pytest.raises(ConfigError, match="remove one of them"):
        load_settings(written(tmp_path, text))
