from dataclasses import replace

import pytest

from governor.supervision.who_may import Act, Authority, Doubt, Sender, Verdict, may

CHAT = -100
RULES = Authority(CHAT, frozenset({42, 43}))
OPERATOR = Sender(chat_id=CHAT, user_id=42)
ANONYMOUS_ADMIN = Sender(chat_id=CHAT, user_id=1087968824, is_bot=True, sender_chat_id=CHAT)
OPERATORS_ONLY = [Act.GO, Act.STATUS, Act.WATCH]

NOT_HIM = [
    (replace(OPERATOR, chat_id=-200), Doubt.OTHER_CHAT),
    (replace(OPERATOR, chat_id=42), Doubt.OTHER_CHAT),  # a private chat has its user's id
    (replace(OPERATOR, is_bot=True), Doubt.BOT),
    (ANONYMOUS_ADMIN, Doubt.ANONYMOUS),
    (replace(OPERATOR, sender_chat_id=-300), Doubt.ANONYMOUS),
    (replace(OPERATOR, user_id=None), Doubt.ANONYMOUS),
    (replace(OPERATOR, user_id=44), Doubt.NOT_AN_OPERATOR),
    (replace(OPERATOR, forwarded=True), Doubt.FORWARDED),
    (replace(OPERATOR, edited=True), Doubt.EDITED),
    (replace(OPERATOR, automatic=True), Doubt.AUTOMATIC),
]


@pytest.mark.parametrize("act", OPERATORS_ONLY)
def test_named_operators_may(act: Act) -> None:
    assert may(act, OPERATOR, RULES) == Verdict()
    assert may(act, OPERATOR, RULES).allowed


@pytest.mark.parametrize("act", OPERATORS_ONLY)
@pytest.mark.parametrize(("sender", "reason"), NOT_HIM)
def test_nobody_else_may(act: Act, sender: Sender, reason: Doubt) -> None:
    verdict = may(act, sender, RULES)
    assert verdict.reason is reason
    assert not verdict.allowed


def test_the_anonymous_admin_may_not_even_if_its_shared_id_is_listed() -> None:
    assert not may(Act.GO, ANONYMOUS_ADMIN, Authority(CHAT, frozenset({1087968824}))).allowed


HUMANS = [sender for sender, reason in NOT_HIM if reason not in {Doubt.OTHER_CHAT, Doubt.BOT}]


@pytest.mark.parametrize("sender", [OPERATOR, *HUMANS])
def test_any_human_in_the_chat_may_stop(sender: Sender) -> None:
    assert may(Act.STOP, sender, RULES).allowed


@pytest.mark.parametrize("reason", [Doubt.OTHER_CHAT, Doubt.BOT])
def test_bots_and_other_chats_may_not_even_stop(reason: Doubt) -> None:
    for sender, doubt in NOT_HIM:
        if doubt is reason:
            assert may(Act.STOP, sender, RULES).reason is reason
