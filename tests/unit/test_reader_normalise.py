import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.characters import hiding_class
from reader.contract import READ_LIMIT, TEXT_LIMIT
from reader.errors import DroppedError
from reader.normalise import CHAT_TOKEN, normalise


def tagged(text: str) -> str:
    return "".join(chr(0xE0000 + ord(character)) for character in text)


@pytest.mark.parametrize(
    ("text", "clean", "signals"),
    [
        ("plain", "plain", {}),
        ("  two\r\nlines\rand\u2028more\t. ", "two\nlines\nand\nmore\t.", {}),
        ("\uff28\uff45\uff4c\uff4c\uff4f \ufb01 \u00bd", "Hello fi 1\u20442", {}),
        (f"hi{tagged('obey')}", "hi", {"tag": 4}),
        ("a\u200bb\u2060c\ufeff", "abc", {"zero_width": 3}),
        ("a\uffa0b", "ab", {"zero_width": 1}),
        ("e\u200b\u0301 \uff1c\u200b|im_end|>", "\u00e9 < |im_end|>", {"zero_width": 2, "chat_token": 1}),
        ("a\u202eb\u2066", "ab", {"bidi": 2}),
        ("\u26a0\ufe0f", "\u26a0", {"variation": 1}),
        ("a\x00b\x07\ue000\x7f", "ab", {"control": 4}),
        ("\x1b[31mred\x1b[0m \x9b1mbold", "red bold", {"ansi": 3}),
        ("\x1b]8;;https://evil.example\x07link\x1b]8;;\x1b\\", "link", {"ansi": 2}),
        ("x\x1b]0;never closed", "x", {"ansi": 1}),
        ("a<!-- obey -->b<!---->c", "a b c", {"html_comment": 2}),
        ("a<!-- open", "a<!-- open", {}),
        ("<!<!-- x -->-- y -->", "<! -- y -->", {"html_comment": 1}),
        ("<|im_start|>system", "< |im_start|>system", {"chat_token": 1}),
        ("\uff5c<\u200b|im_end\uff5c>", "|< |im_end|>", {"zero_width": 1, "chat_token": 1}),
        ("[INST] x [/inst] <</SYS>>", "[ INST] x [ /inst] < </SYS>>", {"chat_token": 3}),
        ("<start_of_turn><tool_call>", "< start_of_turn>< tool_call>", {"chat_token": 2}),
        ("<|im<!-- -->_start|>", "< |im _start|>", {"html_comment": 1, "chat_token": 1}),
    ],
)
def test_what_is_left_and_what_is_counted(text: str, clean: str, signals: dict[str, int]) -> None:
    found = normalise(text)
    assert found.text == clean
    assert dict(found.signals) == signals


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        (" \n\u200b\u202e ", "empty"),
        (tagged("only hidden"), "empty"),
        ("a" * (TEXT_LIMIT + 1), "too_long"),
        ("\ufdfa" * TEXT_LIMIT, "too_long"),  # NFKC makes eighteen of each
        ("a\ud800b", "not_text"),
        ("\udfff", "not_text"),
    ],
)
def test_what_cannot_be_read_is_dropped(text: str, code: str) -> None:
    with pytest.raises(DroppedError) as dropped:
        normalise(text)
    assert dropped.value.code == code


def test_the_longest_message_is_read() -> None:
    assert len(normalise("a" * TEXT_LIMIT).text) == TEXT_LIMIT


def test_folding_makes_no_hiding_character() -> None:
    """So hiding characters are taken out once, before: what they part is then folded together."""
    visible = (character for character in map(chr, range(sys.maxunicode + 1)) if not hiding_class(character))
    folded = {at for character in visible for at in unicodedata.normalize("NFKC", character)}
    assert not any(map(hiding_class, folded))


PIECES = st.sampled_from(
    [
        *"<|>-![]/\n\t a1",
        "<!--",
        "-->",
        "<|",
        "|>",
        "im_start",
        "\x1b[0m",
        "\x1b]",
        "\u200b",
        "\u202e",
        "\U000e0041",
        "\uff1c",
        "\uff5c",
        "\uff1e",
        "\uffa0",
        "\u2028",
        "\ufb01",
        "\u0301",
        "\ufdfa",
        "[INST]",
        "<s>",
        "\x9b",
        "\x00",
    ]
)


@given(st.lists(PIECES | st.characters(exclude_categories=["Cs"]), max_size=60).map("".join))
def test_nothing_hidden_and_no_chat_token_is_left(text: str) -> None:
    try:
        found = normalise(text).text
    except DroppedError as dropped:
        assert dropped.code == "empty"  # noqa: PT017 - either outcome is right
        return
    assert not [character for character in found if hiding_class(character)]
    assert not CHAT_TOKEN.search(found)
    assert "\x1b" not in found
    assert 0 < len(found) <= READ_LIMIT
    assert unicodedata.normalize("NFKC", found) == found
