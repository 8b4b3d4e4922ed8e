from typing import Any

from governor.cli.looking import life_lines

LIFE: dict[str, Any] = {
    "id": "m_1",
    "direction": "out",
    "from": "max@max-host",
    "to": "eva@eva-host",
    "conversation": "c_1",
    "in_reply_to": "m_0",
    "state": "refused",
    "reason": "peer_reply",
    "size": 5,
    "text": "a\x1b]0;title\x07b\r\n| c\u202e\t\u00e9",
    "expires_at": "2026-03-02T09:10:00Z",
    "steps": [{"at": "2026-03-02T09:00:00Z", "event": "message_submitted", "reason": None}],
}


def test_a_sent_text_is_framed_and_harmless_to_a_terminal() -> None:
    assert list(life_lines(LIFE)) == [
        "m_1 from max@max-host to eva@eva-host: refused (peer_reply)",
        "conversation c_1, in reply to m_0",
        "2026-03-02T09:00:00Z  message_submitted",
        "expires 2026-03-02T09:10:00Z; 5 characters",
        "| a\\x1b]0;title\\x07b\\r",
        "| | c\\u202e\\t\u00e9",
    ]


def test_a_received_text_is_shown_as_it_was_framed() -> None:
    life = {**LIFE, "direction": "in", "text": "[governor] frame\n| x", "in_reply_to": None, "reason": None}
    assert list(life_lines(life))[-1] == "[governor] frame\n| x"


def test_an_erased_text_is_said_to_be_so() -> None:
    assert list(life_lines({**LIFE, "text": None}))[-1] == "The text is no longer kept."
