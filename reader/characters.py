"""Which characters can be seen, and which only hide, reorder or smuggle (Unicode TR 36, TR 39)."""

import re
import unicodedata

_HIDING: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = (
    ("tag", ((0xE0000, 0xE007F),)),
    (
        "zero_width",
        (
            (0x00AD, 0x00AD),  # soft hyphen
            (0x034F, 0x034F),  # combining grapheme joiner
            (0x115F, 0x1160),  # Hangul fillers: letters without a shape
            (0x17B4, 0x17B5),
            (0x180E, 0x180E),
            (0x200B, 0x200D),
            (0x2060, 0x2064),
            (0x206A, 0x206F),
            (0x2800, 0x2800),  # Braille without a dot
            (0x3164, 0x3164),
            (0xFEFF, 0xFEFF),
            (0xFFA0, 0xFFA0),
        ),
    ),
    ("bidi", ((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069))),
    ("variation", ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))),
)
_CLASS_OF = {
    chr(at): name for name, ranges in _HIDING for first, last in ranges for at in range(first, last + 1)
}

HIDING_CLASSES = (*(name for name, _ in _HIDING), "control")

_PILED_MARKS = 4
"""No script needs more combining marks on one letter; more paint over the lines around them."""

_ASCII_TEXT = re.compile(r"[ -~]*", re.ASCII)


def hiding_class(character: str) -> str | None:
    """Return the class of a character that has no place in visible text, or None.

    Line feed and tab are text. `control` holds the rest of categories C* (controls, other formats,
    surrogates, private use, unassigned) and the line and paragraph separators.
    """
    if " " <= character <= "~" or character in "\n\t":
        return None
    if (name := _CLASS_OF.get(character)) is not None:
        return name
    category = unicodedata.category(character)
    return "control" if category[0] == "C" or category in ("Zl", "Zp") else None


def is_plain(text: str) -> bool:
    """Tell whether text is one line of visible characters: all that may stand in a rewrite."""
    if _ASCII_TEXT.fullmatch(text):
        return True
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        if hiding_class(character) or character in "\n\t" or (category == "Zs" and character != " "):
            return False
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks > _PILED_MARKS:
            return False
    return True
