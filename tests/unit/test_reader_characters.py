import unicodedata

import pytest

from reader.characters import HIDING_CLASSES, hiding_class, is_plain


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\U000e0041", "tag"),
        ("\u200b", "zero_width"),
        ("\u00ad", "zero_width"),
        ("\u3164", "zero_width"),
        ("\u2800", "zero_width"),
        ("\u202e", "bidi"),
        ("\u2066", "bidi"),
        ("\ufe0f", "variation"),
        ("\U000e0100", "variation"),
        ("\x00", "control"),
        ("\x1b", "control"),
        ("\x7f", "control"),
        ("\x85", "control"),
        ("\u2028", "control"),
        ("\ud800", "control"),
        ("\ue000", "control"),
        ("\U0010ffff", "control"),
        ("\ufff9", "control"),
    ],
)
def test_hiding_characters_have_a_class(character: str, name: str) -> None:
    assert hiding_class(character) == name
    assert name in HIDING_CLASSES
    assert not is_plain(f"a{character}b")


@pytest.mark.parametrize("character", ["a", " ", "\n", "\t", "~", "é", "中", "ß", "€", "😀", "\u0301"])
def test_visible_characters_have_none(character: str) -> None:
    assert hiding_class(character) is None


@pytest.mark.parametrize("text", ["", "plain", "é 中文 😀 ½", "cafe\u0301", "שָׁלוֹם", "ก็"])
def test_visible_lines_are_plain(text: str) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text", ["a\nb", "a\tb", "a\u00a0b", "é\nb", "a\u3000b", "a\u2028b", "a" + "\u0301" * 5]
)
def test_line_ends_odd_spaces_and_piled_marks_are_not_plain(text: str) -> None:
    assert not is_plain(text)


def test_every_format_control_surrogate_private_and_unassigned_character_hides() -> None:
    for at in range(0x110000):
        if unicodedata.category(chr(at))[0] == "C" and chr(at) not in "\n\t":
            assert hiding_class(chr(at)), hex(at)
