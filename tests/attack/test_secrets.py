"""A known secret does not leave, and of a text refused for one nothing is kept anywhere (P8)."""

import base64
import logging
import secrets
from collections.abc import Callable
from pathlib import Path

import pyotp
import pytest
from governor_pair import Governor, GovernorPair

from governor.directory.canaries import Canary, plant, remove
from governor.errors import RefusedError
from governor.store.tables import AuditRecord, Message, Notice
from governor.supervision.operator_code import enroll
from governor.supervision.telegram_text import Part, compose

CANARY = "heron-4417-lantern"
MODEL_KEY = "local-model-key-93471"
PIN = "PIN: 4711"
MARKER = "zwiebelkuchen"
"""Stands beside the secret: nothing of the text may be kept, not only the secret itself."""

DISGUISES: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: secret,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64url": lambda secret: base64.urlsafe_b64encode(f"?{secret}".encode()).decode().rstrip("="),
    "hex": lambda secret: secret.encode().hex(),
    "reversed": lambda secret: secret[::-1],
    "spaced": " ".join,
    "over lines": "\n".join,
    "percent": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
}


@pytest.fixture
def pair(make_pair: Callable[..., GovernorPair], monkeypatch: pytest.MonkeyPatch) -> GovernorPair:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    pair = make_pair(secrets={"canaries": [CANARY]}, reader={"key": MODEL_KEY})
    pair.go()
    return pair


def secret_of(governor: Governor, name: str) -> str:
    """Return a secret of this host."""
    home = governor.home
    (key,) = home.path.glob("keys/*.sign")
    return {
        "agent token": governor.token,
        "canary": CANARY,
        "model key": MODEL_KEY,
        "signing key": key.read_text().strip(),
    }[name]


def kept(governor: Governor) -> bytes:
    """Return every byte of the governor's database, what waits in its write-ahead log included."""
    return b"".join(
        path.read_bytes()
        for path in sorted(governor.home.path.rglob("*"))
        if path.name.startswith("governor.db")
    )


def shown(governor: Governor) -> list[str]:
    """Return the texts that the operators' group gets of this governor's notices."""
    rows = governor.rows(Notice)
    parts = [[Part(row.ours), Part(row.foreign or "", foreign=True)] for row in rows]
    return [message.text for each in parts for message in compose(each)]


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", ["agent token", "canary", "model key", "signing key"])
async def test_a_secret_is_refused_and_nothing_of_it_is_anywhere(
    pair: GovernorPair,
    name: str,
    disguise: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = secret_of(pair.max, name)
    text = f"{MARKER} {DISGUISES[disguise](secret)} {MARKER}"
    answer = await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": text})
    assert (answer.status_code, answer.json()["reason"]) == (409, "secret")
    await pair.settle()

    printed = "".join(capfd.readouterr())
    places = {
        "database": kept(pair.max),
        "peer's database": kept(pair.eva),
        "wire": repr(pair.max.wire.seen).encode(),
        "log": caplog.text.encode(),
        "output": printed.encode(),
        "answer": answer.content,
        "group": "\n".join(shown(pair.max)).encode(),
    }
    for place, content in places.items():
        for trace in (secret, DISGUISES[disguise](secret), MARKER):
            assert trace.encode() not in content, place
    assert pair.max.messages() == []
    (record,) = pair.max.audit("message_refused")
    assert (record.reason, record.sha256, record.agent, record.size) == ("secret", None, "max", len(text))
    assert record.detail is not None
    assert set(record.detail) == {"secret", "where"}
    told = "CANARY TOUCHED" if name == "canary" else "carries a secret"
    assert len([text for text in shown(pair.max) if told in text]) == 1
    assert pair.max.link("eva-host").out_used == 0
    assert pair.max.verify()


async def test_the_search_above_would_find_what_is_kept(pair: GovernorPair) -> None:
    pair.max.send("eva", f"{MARKER} v1.0.0")
    assert MARKER.encode() in kept(pair.max)


async def test_a_secret_does_not_leave_as_the_name_of_a_conversation(pair: GovernorPair) -> None:
    with pytest.raises(RefusedError) as error:
        pair.max.send("eva", "v1.0.0", conversation=CANARY.encode().hex())
    assert error.value.reason == "secret"
    assert CANARY.encode().hex().encode() not in kept(pair.max)


async def test_no_hash_of_a_text_with_a_secret_is_kept_whatever_it_was_refused_for(
    pair: GovernorPair,
) -> None:
    pair.max.stop("eva-host")
    with pytest.raises(RefusedError) as error:
        pair.max.send("eva", f"The {PIN}")
    assert error.value.reason == "stopped"  # the first "no" is the reason
    assert [row.sha256 for row in pair.max.audit("message_refused")] == [None]
    with pytest.raises(RefusedError):
        pair.max.send("eva", "harmless")
    assert pair.max.audit("message_refused")[-1].sha256


async def test_secrets_of_files_and_of_the_environment_are_known(
    make_pair: Callable[..., GovernorPair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bait = tmp_path / "bait.txt"
    bait.write_text("what only this file holds\n")
    monkeypatch.setenv("VAULT_PASSWORD", "xK9-mQ2-pL7")
    pair = make_pair(secrets={"files": [str(bait)], "environment": ["VAULT_PASSWORD"]})
    pair.go()
    for text in ("here: what only this file holds", "here: xK9-mQ2-pL7"):
        with pytest.raises(RefusedError, match="known_value, line 1, character 7"):
            pair.max.send("eva", text)


async def test_what_becomes_a_secret_while_the_governor_runs_is_one_at_once(
    make_pair: Callable[..., GovernorPair], tmp_path: Path
) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("heron-4417-lantern\n")
    pair = make_pair(secrets={"files": [str(listed)]})
    pair.go()
    pair.max.send("eva", "v1.0.0")
    home = pair.max.home

    totp = enroll(pair.max.store, home.path, pair.clock.now(), pyotp.random_base32)
    token = pair.max.add_agent("zoe")
    rotated = home.keyring.make("max-host", ["max.example"], pair.clock.now())
    seed = (home.path / "keys" / f"{rotated.fingerprint}.sign").read_text().strip()
    listed.write_text("crane-8812-lantern\n")
    for secret in (totp, token, seed, "crane-8812-lantern"):
        for disguise in DISGUISES.values():
            with pytest.raises(RefusedError) as error:
                pair.max.send("eva", disguise(secret))
            assert error.value.reason == "secret"
    assert pair.max.link("eva-host").switch == "running"


async def test_nothing_leaves_while_the_secrets_cannot_be_told(
    make_pair: Callable[..., GovernorPair], tmp_path: Path
) -> None:
    listed = tmp_path / "listed.txt"
    listed.write_text("heron-4417-lantern\n")
    pair = make_pair(secrets={"files": [str(listed)]})
    pair.go()
    listed.unlink()
    answer = await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": MARKER})
    assert (answer.status_code, answer.json()["error"]) == (500, "config")
    assert "Restore it" in answer.json()["message"]
    assert pair.max.messages() == []
    pair.max.stop()  # STOP needs no secrets
    assert pair.max.link("eva-host").switch == "stopped"


def plant_one(governor: Governor) -> Canary:
    with governor.store.begin() as uow:
        return plant(uow, governor.home.path, governor.clock.now(), secrets.choice, kind="github")


@pytest.mark.parametrize("disguise", DISGUISES)
async def test_a_canary_closes_every_link_and_says_so(pair: GovernorPair, disguise: str) -> None:
    canary = plant_one(pair.max)  # while it runs
    with pytest.raises(RefusedError, match="carries a canary") as error:
        pair.max.send("eva", f"{MARKER} {DISGUISES[disguise](canary.value)}")
    assert error.value.reason == "secret"
    assert canary.name not in str(error.value)  # which one it was is for the operators

    link = pair.max.link("eva-host")
    assert (link.switch, link.reason) == ("paused", "canary_touched")
    (record,) = pair.max.audit("canary_touched")
    assert (record.agent, record.reason, record.direction) == ("max", canary.name, "out")
    assert pair.max.audit("message_refused")[-1].detail == {
        "secret": "canary",
        "where": record.detail["where"],
    }
    (alarm,) = [text for text in pair.max.notices() if "CANARY" in text]
    assert "max@max-host" in alarm
    assert canary.name in alarm
    assert "STOP" in alarm
    assert "Paused eva-host: canary_touched. Nothing passes until GO." in pair.max.notices()
    with pytest.raises(RefusedError) as again:
        pair.max.send("eva", "v1.0.0")
    assert again.value.reason == "paused"
    for content in (kept(pair.max), "\n".join(shown(pair.max)).encode(), str(error.value).encode()):
        assert canary.value.encode() not in content
        assert MARKER.encode() not in content

    pair.max.go("eva-host")
    pair.max.send("eva", "v1.0.0")


async def test_a_canary_counts_whatever_the_message_was_refused_for(pair: GovernorPair) -> None:
    canary = plant_one(pair.max)
    with pytest.raises(RefusedError, match="carries a canary") as error:
        pair.max.send("nobody", canary.value)
    assert error.value.reason == "unknown_recipient"
    assert pair.max.link("eva-host").reason == "canary_touched"
    pair.max.go("eva-host")
    pair.max.stop("eva-host")
    pair.clock.advance(minutes=2)
    with pytest.raises(RefusedError, match="carries a canary"):
        pair.max.send("eva", "v1.0.0", conversation=canary.value)
    assert pair.max.link("eva-host").switch == "stopped"
    assert len(pair.max.audit("canary_touched")) == 2
    assert len([text for text in pair.max.notices() if "CANARY" in text]) == 2


async def test_bait_offered_without_end_is_told_once_a_minute_and_recorded_each_time(
    pair: GovernorPair,
) -> None:
    canary = plant_one(pair.max)
    for _ in range(5):
        with pytest.raises(RefusedError):
            pair.max.send("eva", canary.value)
    assert len(pair.max.audit("canary_touched")) == 5
    assert len([text for text in pair.max.notices() if "CANARY" in text]) == 1
    assert len([text for text in pair.max.notices() if text.startswith("Paused eva-host")]) == 1


async def test_a_canary_in_the_conversations_name_is_not_hidden_by_another_secret(pair: GovernorPair) -> None:
    canary = plant_one(pair.max)
    with pytest.raises(RefusedError, match="carries a canary"):
        pair.max.send("eva", f"The {PIN}", conversation=canary.value)


async def test_a_removed_canary_may_be_sent(pair: GovernorPair) -> None:
    with pair.max.store.begin() as uow:
        canary = plant(uow, pair.max.home.path, pair.clock.now(), secrets.choice, kind="password")
    with pytest.raises(RefusedError):
        pair.max.send("eva", canary.value)
    pair.max.go("eva-host")
    with pair.max.store.begin() as uow:
        remove(uow, pair.max.home.path, canary.name, pair.clock.now())
    pair.max.send("eva", canary.value)


async def test_an_error_of_the_database_repeats_no_text(pair: GovernorPair) -> None:
    """A broken constraint is an error with the row's values, unless they are hidden."""
    sent = pair.max.send("eva", f"{MARKER} v1.0.0")
    fields = pair.max.message(sent.id).model_dump(exclude={"n"})
    with pytest.raises(Exception, match="UNIQUE") as error, pair.max.store.begin() as uow:
        uow.add(Message(**fields))
    assert MARKER not in str(error.value)


async def test_no_agents_token_is_kept(pair: GovernorPair) -> None:
    assert pair.max.token.encode() not in kept(pair.max)
    assert all("bgt_" not in str(row) and "bgg_" not in str(row) for row in pair.max.rows(AuditRecord))
