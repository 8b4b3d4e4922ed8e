"""Canaries: planted, listed and removed in a real home, in private files."""

import secrets
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from governor_pair import BEGINNING

from governor.audit.log import genesis
from governor.directory.canaries import LOOKS, canary_file, plant, planted, read_canary, remove
from governor.errors import ConfigError, LocalError, NotYoursError
from governor.policy.known_values import Known, weakness
from governor.policy.secrets import find_secret
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "governor.db")
    with store.begin() as uow:
        genesis(uow, BEGINNING, "max-host", "f" * 64)
    yield store
    store.close()


def records(store: Store) -> list[tuple[str, str | None, object]]:
    with store.reading() as uow:
        return [(row.event, row.reason, row.detail) for row in uow.all(AuditRecord)[1:]]


@pytest.mark.parametrize("kind", LOOKS)
def test_a_canary_looks_like_a_credential_and_lies_in_a_private_file(
    store: Store, tmp_path: Path, kind: str
) -> None:
    with store.begin() as uow:
        made = [plant(uow, tmp_path, BEGINNING, secrets.choice, kind=kind, note="in CLAUDE.md") for _ in "ab"]
    first, second = made
    assert first.value != second.value
    assert first.name != second.name
    assert weakness(first.value) == ""
    if LOOKS[kind].prefix:
        assert find_secret(first.value, Known()) is not None  # as it would be did nobody know it
    path = canary_file(tmp_path, first.name)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert read_canary(path) == first
    assert records(store) == [("canary_planted", each.name, {"kind": kind}) for each in made]
    assert all(each.value not in str(records(store)) for each in made)


def test_they_are_listed_oldest_first_and_removed_by_name(store: Store, tmp_path: Path) -> None:
    assert planted(tmp_path) == []
    with store.begin() as uow:
        late = plant(uow, tmp_path, BEGINNING + timedelta(hours=1), secrets.choice, kind="github")
        early = plant(uow, tmp_path, BEGINNING, secrets.choice, kind="stripe")
    assert planted(tmp_path) == [early, late]
    with store.begin() as uow:
        remove(uow, tmp_path, early.name, BEGINNING)
    assert planted(tmp_path) == [late]
    assert read_canary(canary_file(tmp_path, early.name)) is None
    assert records(store)[-1] == ("canary_removed", early.name, None)


@pytest.mark.parametrize("name", ["canary-none", "", "../governor", "../canaries/x", "*", "/etc/passwd"])
def test_only_a_canary_can_be_removed(store: Store, tmp_path: Path, name: str) -> None:
    (tmp_path / "governor.json").write_text("{}")
    with pytest.raises(NotYoursError, match="See them: governor canary list"), store.begin() as uow:
        remove(uow, tmp_path, name, BEGINNING)
    assert (tmp_path / "governor.json").exists()


@pytest.mark.parametrize("note", ["x" * 201, "two\nlines", "\x1b[2J"])
def test_a_note_is_one_short_line(store: Store, tmp_path: Path, note: str) -> None:
    with pytest.raises(LocalError, match="one line of at most 200"), store.begin() as uow:
        plant(uow, tmp_path, BEGINNING, secrets.choice, kind="github", note=note)
    assert planted(tmp_path) == []


GOOD = '{"name": "canary-1", "value": "heron-4417-lantern", "kind": "k", "note": "", "planted_at": "p"}'


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("{}"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.write_text(GOOD.replace("canary-1", "other")),
        lambda path: path.write_text(GOOD.replace('"heron-4417-lantern"', "4417")),
        Path.mkdir,
    ],
)
def test_a_damaged_one_is_named_with_the_way_out(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = canary_file(tmp_path, "canary-1")
    path.parent.mkdir()
    spoil(path)
    with pytest.raises(ConfigError, match="Take it out: governor canary remove canary-1") as error:
        planted(tmp_path)
    assert "heron" not in error.value.message
