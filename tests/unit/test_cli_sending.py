from typing import Any

import pytest

from governor.cli.sending import outcome

TAKEN = {
    "id": "m_1",
    "state": "queued",
    "conversation": "c_1",
    "peer": "eva-host",
    "recipient": "eva@eva-host",
}


def state(name: str, reason: str | None = None) -> dict[str, Any]:
    return {"state": name, "reason": reason, "expires_at": "2026-03-02T09:10:00Z"}


@pytest.mark.parametrize(
    ("now", "code", "words"),
    [
        (state("accepted"), 0, "accepted by the peer's governor (not yet delivered). Conversation: c_1"),
        (
            state("queued", "peer_closed"),
            4,
            "the peer's governor is closed until a human there says GO: kept in the outbox until 09:10 UTC; do not send again",
        ),
        (
            state("queued", "connect"),
            4,
            "the peer's governor was not reached (connect): kept in the outbox until 09:10 UTC; do not send again",
        ),
        (
            state("sending"),
            4,
            "not yet accepted by the peer's governor: kept in the outbox until 09:10 UTC; do not send again",
        ),
        (state("held"), 4, "not yet accepted by the peer's governor: kept in the outbox"),
        (state("refused", "peer_reply"), 3, "refused (peer_reply): it was not delivered"),
        (state("expired", "expired"), 3, "expired (expired): it was not delivered"),
        (state("cancelled"), 3, "cancelled: it was not delivered"),
        (
            state("unconfirmed", "expired"),
            3,
            "unconfirmed (expired): it may have arrived, so ask before you send it again",
        ),
    ],
)
def test_each_state_has_its_words_and_exit_code(now: dict[str, Any], code: int, words: str) -> None:
    answer = outcome(TAKEN, now)
    assert answer.code == code
    assert answer.lines[0].startswith(f"m_1: {words}")
    assert answer.document["state"] == now["state"]
    assert answer.document["id"] == "m_1"
    assert ("error" in answer.document) == (code != 0)
