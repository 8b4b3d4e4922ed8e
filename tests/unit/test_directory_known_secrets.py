"""The secrets a host knows, read from real files: at once, when they change, and never when unsure."""

from collections.abc import Callable
from pathlib import Path

import pytest
from governor_pair import BEGINNING

from governor.directory.canaries import Canary, canary_file
from governor.directory.keyring import Keyring
from governor.directory.known_secrets import KnownSecrets, Sources, strong
from governor.errors import ConfigError
from governor.policy.known_values import KnownValue
from governor.policy.secrets import Found, find_secret
from governor.private_file import write_private

FIRST, SECOND = "heron-4417-lantern", "crane-8812-lantern"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    return folder


def knows(secrets: KnownSecrets, value: str) -> bool:
    return find_secret(f"It is {value}.", secrets()) is not None


def test_what_is_enrolled_or_rotated_meanwhile_is_known_at_once_and_what_is_gone_is_not(keys: Path) -> None:
    secrets = KnownSecrets(Sources(keys.parent))
    assert not knows(secrets, "JBSWY3DPEHPK3PXP")
    write_private(keys / "operator.totp", b"JBSWY3DPEHPK3PXP\n")
    assert knows(secrets, "JBSWY3DPEHPK3PXP")
    write_private(keys / "operator.totp", b"KRSXG5CTMVRXEZLU\n")
    assert knows(secrets, "KRSXG5CTMVRXEZLU")
    assert not knows(secrets, "JBSWY3DPEHPK3PXP")
    (keys / "operator.totp").unlink()
    assert not knows(secrets, "KRSXG5CTMVRXEZLU")


def test_no_file_is_read_again_that_has_not_changed(keys: Path) -> None:
    write_private(keys / "operator.totp", b"JBSWY3DPEHPK3PXP\n")
    asked: list[int] = []

    def fixed() -> list[KnownValue]:
        asked.append(1)
        return [KnownValue(FIRST)]

    secrets = KnownSecrets(Sources(keys.parent, fixed=fixed))
    first = secrets()
    assert secrets() is first
    write_private(keys / "operator.totp", b"JBSWY3DPEHPK3PXP\n")  # the same again, in a new file
    assert secrets() == first
    assert secrets() is not first
    assert asked == [1]


@pytest.mark.parametrize(
    "replace",
    [lambda path: write_private(path, f"{SECOND}\n".encode()), lambda path: path.write_text(f"{SECOND}\n")],
)
@pytest.mark.parametrize("role", ["listed", "own"])
def test_a_listed_file_is_followed(tmp_path: Path, role: str, replace: Callable[[Path], object]) -> None:
    path = tmp_path / "bait.txt"
    path.write_text(f"{FIRST}\n")
    secrets = KnownSecrets(Sources(tmp_path, **{role: (path,)}))
    assert knows(secrets, FIRST)
    replace(path)
    assert knows(secrets, SECOND)
    assert not knows(secrets, FIRST)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (Path.unlink, "cannot be read: No such file"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda path: path.write_text("production\n"), "as plain as a word"),
        (lambda path: path.write_text("\n"), "shorter than"),
    ],
)
def test_a_listed_file_that_cannot_be_used_any_more_stops_all(
    tmp_path: Path, spoil: Callable[[Path], object], fault: str
) -> None:
    path = tmp_path / "bait.txt"
    path.write_text(f"{FIRST}\n")
    secrets = KnownSecrets(Sources(tmp_path, listed=(path,)))
    secrets()
    spoil(path)
    for _ in range(2):  # it is not taken for known because it was looked at once
        with pytest.raises(ConfigError, match=fault) as error:
            secrets()
        assert str(path) in error.value.message
        assert "production" not in error.value.message
    path.write_text(f"{SECOND}\n")
    assert knows(secrets, SECOND)


def test_each_line_of_the_tls_key_is_known_and_the_certificate_is_not(tmp_path: Path) -> None:
    made = Keyring(tmp_path).make("max-host", ["max.example"], BEGINNING)
    pem = Keyring(tmp_path).tls_file(made.fingerprint).read_text()
    secrets = KnownSecrets(Sources(tmp_path))
    private, _, rest = pem.partition("-----END PRIVATE KEY-----")
    lines = [line for line in private.splitlines()[1:] if len(line) >= 40]
    assert len(lines) >= 2
    assert all(knows(secrets, line) for line in lines)
    assert all(knows(secrets, line[::-1]) for line in lines)
    certificate = [line for line in rest.splitlines() if len(line) >= 40]
    assert certificate
    assert not any(knows(secrets, line) for line in certificate)
    (sign,) = (tmp_path / "keys").glob("*.sign")
    assert knows(secrets, sign.read_text().strip()[::-1])


def test_a_canary_is_known_by_its_name(tmp_path: Path) -> None:
    secrets = KnownSecrets(Sources(tmp_path, fixed=lambda: [KnownValue(SECOND, "settings")]))
    secrets()
    canary_file(tmp_path, "canary-1").parent.mkdir()
    text = f'{{"name": "canary-1", "value": "{FIRST}", "kind": "k", "note": "", "planted_at": "p"}}'
    canary_file(tmp_path, "canary-1").write_text(text)
    assert find_secret(FIRST, secrets()) == Found("canary", "line 1, character 1", "canary-1")
    assert find_secret(SECOND, secrets()) == Found("canary", "line 1, character 1", "settings")
    assert Canary("canary-1", FIRST, "k", "", "p").value in text


def test_a_word_that_serves_as_a_token_on_this_machine_is_not_searched_for(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("lm-studio\n")
    assert not knows(KnownSecrets(Sources(tmp_path, own=(path,))), "lm-studio")


def test_a_folder_that_cannot_be_listed_stops_all(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("no folder")
    with pytest.raises(ConfigError, match="keys cannot be read: Not a directory"):
        KnownSecrets(Sources(tmp_path))()


def test_a_key_retired_since_the_folder_was_listed_is_no_fault(keys: Path) -> None:
    (keys / "old.sign").symlink_to("nowhere")
    assert not knows(KnownSecrets(Sources(keys.parent)), "anything")


def test_a_strong_value_keeps_its_name() -> None:
    assert strong(FIRST, "It", "bait") == KnownValue(FIRST, "bait")
