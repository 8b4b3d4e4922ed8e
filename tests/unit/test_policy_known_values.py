"""Values a host knows: which can be told from harmless text, and the forms they are searched for in."""

import pytest

from governor.policy.known_values import Known, KnownValue, Needle, known, strength, visible, weakness


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "shorter than 6"),
        ("4711", "shorter than 6"),
        ("a b c d e", "shorter than 6"),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", "fewer than 6 different"),
        ("01010101010101010101", "fewer than 6 different"),
        ("473829", "as plain as a word"),
        ("20250918", "as plain as a word"),
        ("localhost", "as plain as a word"),
        ("production", "as plain as a word"),
        ("Administrator", "as plain as a word"),
        ("Infrastructure", "as plain as a word"),
        ("hunter2", "as plain as a word"),
        ("lm-studio", "as plain as a word"),
    ],
)
def test_what_harmless_texts_would_hold_is_weak(value: str, fault: str) -> None:
    assert fault in weakness(value)


@pytest.mark.parametrize(
    "value",
    [
        "correct horse battery staple",
        "heron-4417-lantern",
        "xK9mQ2pL",
        "9182736450",
        "JBSWY3DPEHPK3PXP",
        "größe-ñandú-42-Öl",
        "北京-7Q-уголь-x",
    ],
)
def test_what_nobody_writes_by_chance_is_strong(value: str) -> None:
    assert weakness(value) == ""


def test_strength_grows_where_kinds_of_characters_change() -> None:
    assert strength("abcdefgh") < strength("aBcDeFgH") < strength("aB3dE5gH7jK9")
    assert strength("") == 0


def test_each_form_is_searched_for_once_and_canaries_stand_apart() -> None:
    found = known([KnownValue("ab cd ef"), KnownValue("heron-4417-lantern", "bait"), KnownValue("12345")])
    assert found == Known(
        canaries=(Needle("heron-4417-lantern", "bait"), Needle("heron4417lantern", "bait", bare=True)),
        others=(Needle("ab cd ef", ""), Needle("abcdef", "")),
    )
    assert known([]) == Known()
    twice = [KnownValue("two words here!"), KnownValue("two words here!")]
    assert known(twice) == known(twice[:1])


def test_control_characters_are_not_visible_and_line_ends_stay() -> None:
    assert visible("a\x00b\x1b\x7fc\td\r\n") == "abc\td\r\n"
    assert visible("a\u200bb\u0301\u3164") == "ab"
