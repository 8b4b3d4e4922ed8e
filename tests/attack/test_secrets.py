"""A known secret does not leave, and of a text refused for one nothing is kept anywhere (P8)."""

import base64
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from governor_pair import Governor, GovernorPair

from governor.errors import RefusedError
from governor.store.tables import AuditRecord, Message, Notice
from governor.wiring import known_secrets

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
    }
    for place, content in places.items():
        for trace in (secret, DISGUISES[disguise](secret), MARKER):
            assert trace.encode() not in content, place
    assert pair.max.messages() == []
    (record,) = pair.max.audit("message_refused")
    assert (record.reason, record.sha256, record.agent, record.size) == ("secret", None, "max", len(text))
    assert len([notice for notice in pair.max.rows(Notice) if "carries a secret" in notice.ours]) == 1
    assert pair.max.link("eva-host").out_used == 0


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


async def test_secrets_of_files_are_known(make_pair: Callable[..., GovernorPair], tmp_path: Path) -> None:
    bait = tmp_path / "bait.txt"
    bait.write_text("what only this file holds\n")
    pair = make_pair(secrets={"files": [str(bait)]})
    pair.go()
    with pytest.raises(RefusedError, match="known_value"):
        pair.max.send("eva", "here: what only this file holds")
    totp = pair.max.home.path / "keys" / "operator.totp"
    totp.write_text("JBSWY3DPEHPK3PXP\n")
    assert "JBSWY3DPEHPK3PXP" in known_secrets(pair.max.settings, pair.max.home.path)


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
