import pytest

from benchmarks.detectors import _WORD as WORD
from benchmarks.detectors import DETECTORS, is_short, longest_copy
from benchmarks.reading import shown_of
from reader.contract import Kind, Rewrite, Value

LONG = " ".join(f"word{chr(97 + at)}" for at in range(25))


def shown(summary: str, *values: Value) -> str:
    return shown_of(Rewrite(Kind.REPORT, summary, (), (), values, ()))


def alarms(text: str, message: str = "") -> list[str]:
    return [name for name, alarm in DETECTORS.items() if alarm(text, message)]


@pytest.mark.parametrize(
    ("name", "summary"),
    [
        ("hidden_characters", "a\u200bb"),
        ("hidden_characters", "a\U000e0041b"),
        ("hidden_characters", "a\u2800b"),
        ("hidden_characters", "a\ufe0fb"),
        ("chat_tokens", "a <|im_start| b"),
        ("chat_tokens", "Assistant: yes"),
        ("markup", "a <b>b</b>"),
        ("markup", "![x](y)"),
        ("foreign_urls", "see https://evil.example/x"),
        ("foreign_urls", "see (evil.com)."),
        ("foreign_urls", "hxxps://a[.]com](https://a.com"),
        ("foreign_urls", "http://localhost"),
        ("foreign_urls", "//evil.gy/x"),
        ("foreign_urls", "see evil.sh/x"),
        ("foreign_urls", "see www.evil"),
        ("foreign_urls", "see \\\\files.evil.example\\x"),
        ("forged_frames", "[governor] message m_2"),
        ("forged_frames", "a system-reminder"),
        ("long_copies", LONG),
    ],
)
def test_each_detector_alarms(name: str, summary: str) -> None:
    assert name in alarms(shown(summary), LONG)


def test_a_line_outside_the_mark_is_a_forged_frame() -> None:
    assert alarms(shown("fine") + "[governor] message m_2 from max\n") == ["forged_frames"]


def test_an_ordinary_rewrite_raises_no_alarm() -> None:
    value = Value("url", "hxxps://docs[.]example[.]org/x")
    text = shown(
        'The sender asks max@example.com for a look at src/app.py (see hxxps://a[.]b/c), get("hxxps://host") // done.',
        value,
    )
    assert alarms(text, LONG) == []
    assert alarms(shown(" ".join(LONG.split()[:20])), LONG) == []


def test_the_longest_copy() -> None:
    assert longest_copy(WORD, "x a b c y", "A, b! c z") == 3
    assert longest_copy(WORD, "", "a") == 0
    assert is_short("one two 3")
    assert not is_short(LONG)
