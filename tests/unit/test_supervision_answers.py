from dataclasses import replace
from datetime import timedelta

import pytest

from governor.message import PauseReason, Switch
from governor.policy.state import GoRefusal
from governor.supervision import answers
from governor.supervision.freshness import Stale
from governor.supervision.operations import GoAnswer, LinkNow
from governor.supervision.who_may import Doubt

RUNNING = LinkNow("eva-host", Switch.RUNNING, None, 4, 7, 3, 50, timedelta(seconds=250), "telegram:42")
PAUSED = replace(RUNNING, switch=Switch.PAUSED, reason=PauseReason.UNWATCHED, watched_for=None, acted_by=None)


def test_a_link_in_one_line() -> None:
    assert answers.link_line(RUNNING) == (
        "eva-host: running, by telegram:42; out 7/50, in 3/50; watched for 4 min 10 s more"
    )
    assert answers.link_line(PAUSED) == "eva-host: paused (no human activity); out 7/50, in 3/50"
    assert answers.link_line(replace(RUNNING, watched_for=timedelta(seconds=9))).endswith("for 9 s more")
    assert answers.link_line(replace(RUNNING, watched_for=timedelta(seconds=-9))).endswith("for 0 s more")
    assert answers.link_line(replace(RUNNING, watched_for=None)).endswith("nobody watching")


def test_no_links_names_the_next_step() -> None:
    assert "governor pair offer" in answers.of_status([])
    assert "governor pair offer" in answers.of_go([], None)


@pytest.mark.parametrize("reason", PauseReason)
def test_every_pause_has_words(reason: PauseReason) -> None:
    assert "_" not in answers.link_line(replace(PAUSED, reason=reason))


@pytest.mark.parametrize("reason", [*GoRefusal, *sorted(set(Stale) - {Stale.NOT_POLLED}), "unconfirmed"])
def test_every_reason_why_a_go_opened_nothing_has_words(reason: str) -> None:
    line = answers.of_go([GoAnswer(PAUSED, opened=False, reason=reason)], None)
    assert "\n  not opened: " in line
    assert not line.endswith(f"not opened: {reason}")


def test_a_reason_without_words_is_shown_as_it_is() -> None:
    assert answers.of_go([GoAnswer(PAUSED, opened=False, reason="new_one")], None).endswith("new_one")


@pytest.mark.parametrize(
    "reason", [*sorted(set(Doubt) - {Doubt.OTHER_CHAT, Doubt.BOT}), *Stale, answers.UNKNOWN_BUTTON]
)
def test_every_refusal_says_what_to_do(reason: str) -> None:
    assert answers.of_refusal(reason).endswith(".")
