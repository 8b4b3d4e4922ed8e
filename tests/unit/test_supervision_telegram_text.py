import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governor.message import TEXT_LIMIT
from governor.supervision.telegram_text import (
    CALLBACK_BYTES,
    MESSAGE_UNITS,
    MOST_MESSAGES,
    Part,
    Pre,
    TelegramText,
    button_data,
    compose,
    marked_again,
    read_button,
    units,
    visible,
)

STOP_SIGN = "\U0001f6d1"  # two UTF-16 units


def framed(message: TelegramText) -> list[str]:
    """Return what the pre entities cover, cut as Telegram cuts: in UTF-16 units."""
    utf16 = message.text.encode("utf-16-le")
    return [utf16[2 * p.offset : 2 * (p.offset + p.length)].decode("utf-16-le") for p in message.pres]


def test_lengths_are_utf16_units() -> None:
    assert units("a\u00e9" + STOP_SIGN) == 4
    (message,) = compose([Part(STOP_SIGN), Part(STOP_SIGN + "x", foreign=True)])
    assert message == TelegramText(f"{STOP_SIGN}\n{STOP_SIGN}x", (Pre(3, 3),))


def test_our_words_are_plain_and_foreign_text_is_framed() -> None:
    (message,) = compose(
        [Part("max sent:"), Part("/go @you", foreign=True), Part("end"), Part("", foreign=True)]
    )
    assert message.text == "max sent:\n/go @you\nend"
    assert framed(message) == ["/go @you"]


def test_nothing_composes_to_nothing() -> None:
    assert compose([]) == ()


@pytest.mark.parametrize(
    "hidden",
    ["\u202e", "\u2066", "\u200b", "\u0000", "\u001b", "\r", "\u2028", "\ufeff", "\U000e0041", "\ud800"],
)
def test_what_cannot_be_seen_is_shown_as_a_replacement(hidden: str) -> None:
    assert visible(f"a{hidden}b") == "a\ufffdb"


def test_lines_and_tabs_stay() -> None:
    assert visible("a\r\n\tb\n") == "a\n\tb\n"


@pytest.mark.parametrize("character", ["x", "\u00e9", STOP_SIGN])
def test_the_longest_message_is_shown_whole(character: str) -> None:
    messages = compose([Part("max to eva, conversation c1"), Part(character * TEXT_LIMIT, foreign=True)])
    assert sum(message.text.count(character) for message in messages if message.pres) >= TEXT_LIMIT
    assert "".join("".join(framed(m)) for m in messages) == character * TEXT_LIMIT
    assert all(units(marked_again(m).text) <= MESSAGE_UNITS for m in messages)


def test_a_cut_moves_back_to_the_end_of_a_line() -> None:
    line = "x" * 99 + "\n"
    first, second = compose([Part(line * 60, foreign=True)])
    assert first.text.endswith("x\n")
    assert second.text.startswith("(2/2)\nxxx")


def test_what_is_too_long_for_all_is_cut_and_says_so() -> None:
    messages = compose([Part("x" * 30_000, foreign=True)])
    assert len(messages) == MOST_MESSAGES
    shown = sum(len(piece) for message in messages for piece in framed(message))
    assert f"cut here, {30_000 - shown} more characters" in messages[-1].text
    assert all("cut here" not in piece for message in messages for piece in framed(message))
    assert units(marked_again(messages[-1]).text) <= MESSAGE_UNITS


def test_a_mark_moves_the_frames_along() -> None:
    (message,) = compose([Part("ours"), Part("theirs", foreign=True)])
    again = marked_again(message)
    assert again.text == "(sent again)\nours\ntheirs"
    assert framed(again) == ["theirs"]


texts = st.text(st.sampled_from("ab \n" + STOP_SIGN + "\u00e9\u202e"), max_size=30)
parts = st.lists(st.builds(Part, texts.map(lambda t: t * 300), st.booleans()), min_size=1, max_size=4)


@settings(deadline=None, max_examples=50)  # a text of some messages takes its time
@given(parts)
def test_every_character_is_shown_once_framed_if_foreign_and_whole(given_parts: list[Part]) -> None:
    messages = compose(given_parts, most=1000)
    wanted = [Part(visible(p.text), p.foreign) for p in given_parts if p.text]
    bodies, foreign = [], ""
    for message in messages:
        assert units(marked_again(message).text) <= MESSAGE_UNITS
        foreign += "".join(framed(message))  # decoding fails if half a pair were cut off
        bodies.append(re.sub(r"\A\(\d+/\d+\)\n", "", message.text) if len(messages) > 1 else message.text)
    assert "".join(bodies) == "\n".join(p.text for p in wanted)
    assert foreign == "".join(p.text for p in wanted if p.foreign)


def test_buttons_come_back_as_they_went() -> None:
    data = button_data("a" * 32, 10**17)
    assert len(data.encode()) <= CALLBACK_BYTES
    assert read_button(data) == ("a" * 32, 10**17)


@pytest.mark.parametrize(
    "data",
    [None, "", "go:", "go:eva-host", "go:eva-host:", "go:eva-host:-1", "go:eva-host:07", "go:Eva:1",
     "go:operator:1", "stop:eva-host:1", "go:eva-host:1 ", "go:eva-host:\u0661", "go:" + "a" * 33 + ":1",
     "go:eva-host:" + "9" * 19],
)  # fmt: skip
def test_other_callback_data_is_no_button(data: str | None) -> None:
    assert read_button(data) is None
