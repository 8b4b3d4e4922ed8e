"""Compose what goes to the group: our words plain, foreign text in `pre` entities, in Telegram's limits.

No markup language is used, so nothing needs escaping; and Telegram makes no link, mention or command
of what stands in a `pre` entity. Offsets and lengths are UTF-16 code units
(https://core.telegram.org/api/entities).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from governor.message import is_name

MESSAGE_UNITS = 4096
"""Longest text of one Telegram message, in UTF-16 units."""

MOST_MESSAGES = 6
"""How many messages one post may become; enough for the longest text of all emoji."""

CALLBACK_BYTES = 64
"""Longest callback data of a button (Bot API, InlineKeyboardButton)."""

_AGAIN = "(sent again)\n"
_NUMBER_UNITS = len(f"({MOST_MESSAGES}/{MOST_MESSAGES})\n")
_ROOM = MESSAGE_UNITS - len(_AGAIN) - _NUMBER_UNITS
_NOTE_UNITS = 100
_LINE_WITHIN = 256
"""A cut moves back to the end of a line if one ended this few characters before."""

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BUTTON = re.compile(r"go:([a-z0-9-]{1,32}):(0|[1-9][0-9]{0,17})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a post; `foreign` if anybody but the governor wrote it."""

    text: str
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Pre:
    """Where a `pre` entity lies in its message, in UTF-16 units."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class TelegramText:
    """The text of one message and its `pre` entities."""

    text: str
    pres: tuple[Pre, ...] = ()


def units(text: str) -> int:
    """Return the length of `text` in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def visible(text: str) -> str:
    """Replace what cannot be seen (controls, direction marks, half surrogates) by U+FFFD.

    Line ends and tabs stay. Hidden characters could turn our own words around on the screen.
    """
    lines = text.replace("\r\n", "\n")
    return "".join("\ufffd" if c not in "\n\t" and _hidden(c) else c for c in lines)


def compose(parts: Sequence[Part], most: int = MOST_MESSAGES) -> tuple[TelegramText, ...]:
    """Return the messages that show `parts`, one below the other; at most `most`, then cut with a note.

    No message is longer than Telegram's limit, even when marked as sent again. Where foreign text goes
    over a cut, it is framed in each message anew.
    """
    shown = [replace(part, text=visible(part.text)) for part in parts if part.text]
    spans = list(_foreign_spans(shown))
    text = "\n".join(part.text for part in shown)
    cuts = list(_cuts(text))
    if not cuts:
        return ()
    note = ""
    if len(cuts) > most:
        start, end = cuts[most - 1][0], cuts[most - 1][1] - _NOTE_UNITS
        cuts = [*cuts[: most - 1], (start, end)]
        note = f"\n[cut here, {len(text) - end} more characters; `governor show` has the whole]"
    messages = [_window(text, spans, cut) for cut in cuts]
    messages[-1] = replace(messages[-1], text=messages[-1].text + note)
    if len(messages) == 1:
        return tuple(messages)
    return tuple(_headed(f"({i}/{len(messages)})\n", message) for i, message in enumerate(messages, 1))


def marked_again(message: TelegramText) -> TelegramText:
    """Return `message` with a mark that it may have arrived before."""
    return _headed(_AGAIN, message)


def button_data(peer: str, version: int) -> str:
    """Return the callback data of a GO button."""
    return f"go:{peer}:{version}"


def read_button(data: str | None) -> tuple[str, int] | None:
    """Return (peer, version) of a GO button's callback data; None for anything else.

    Callback data can be sent by hand, with no button there.
    """
    found = _BUTTON.fullmatch(data or "")
    if found is None or not is_name(found[1]):
        return None
    return found[1], int(found[2])


def _hidden(c: str) -> bool:
    return unicodedata.category(c) in _INVISIBLE


def _headed(head: str, message: TelegramText) -> TelegramText:
    pres = tuple(replace(pre, offset=pre.offset + len(head)) for pre in message.pres)
    return TelegramText(head + message.text, pres)


def _foreign_spans(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of each foreign part in the joined text, in code points."""
    start = 0
    for part in parts:
        if part.foreign:
            yield start, start + len(part.text)
        start += len(part.text) + 1


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yield the [start, end) of each message, in code points; each end follows a line if it can."""
    start = 0
    while start < len(text):
        end = min(len(text), start + _ROOM)
        while (excess := units(text[start:end]) - _ROOM) > 0:
            end -= (excess + 1) // 2  # a character is at most two units, so this is never too many
        if end < len(text):
            end = text.rfind("\n", max(start, end - _LINE_WITHIN), end) + 1 or end
        yield start, end
        start = end


def _window(text: str, spans: Sequence[tuple[int, int]], cut: tuple[int, int]) -> TelegramText:
    start, end = cut
    pres = []
    for span_start, span_end in spans:
        low, high = max(start, span_start), min(end, span_end)
        if low < high:
            pres.append(Pre(units(text[start:low]), units(text[low:high])))
    return TelegramText(text[start:end], tuple(pres))
