import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.supervision.commands import Command, Word, parse

BOT = "Max_Gov_bot"

STOPS = [
    "STOP",
    "stop",
    "Stop!",
    "stop.",
    "  stop\n",
    "/stop",
    "/STOP",
    "/stop@max_gov_bot",
    "/stop@MAX_GOV_BOT now, please",
    "STOP it, they are looping",
    "stop, now",
    "**STOP**",
    "\N{OCTAGONAL SIGN} STOP",
    "> stop",
    "\uff33\uff34\uff2f\uff30",  # full width
    "STOP @eva_gov_bot",
    "stop Eva-Host!",
    "stop human",  # reserved, so no peer: then all
]


@pytest.mark.parametrize("text", STOPS)
def test_stop_is_the_first_word_whatever_follows(text: str) -> None:
    assert parse(text, BOT) == Command(Word.STOP)


@pytest.mark.parametrize(
    "text", ["stop eva-host", "/stop EVA-HOST", "/stop@max_gov_bot eva-host", "STOP  eva-host "]
)
def test_stop_may_name_a_peer(text: str) -> None:
    assert parse(text, BOT) == Command(Word.STOP, "eva-host")


@pytest.mark.parametrize("text", ["nonstop", "stopwatch", "do not stop", "stop_it", "stops", "non stop"])
def test_stop_elsewhere_is_none(text: str) -> None:
    assert parse(text, BOT) is None


EXACT = [
    ("GO", Command(Word.GO)),
    ("go", Command(Word.GO)),
    (" Go ", Command(Word.GO)),
    ("/go", Command(Word.GO)),
    ("/go@max_gov_bot", Command(Word.GO)),
    ("go eva-host", Command(Word.GO, "eva-host")),
    ("/GO@max_gov_bot Eva-Host", Command(Word.GO, "eva-host")),
    ("status", Command(Word.STATUS)),
    ("/status", Command(Word.STATUS)),
    ("ETAT", Command(Word.STATUS)),
    ("\u00c9tat", Command(Word.STATUS)),
    ("help", Command(Word.HELP)),
    ("Aide", Command(Word.HELP)),
    ("/help@max_gov_bot", Command(Word.HELP)),
]


@pytest.mark.parametrize(("text", "command"), EXACT)
def test_the_other_words_are_the_whole_message(text: str, command: Command) -> None:
    assert parse(text, BOT) == command


NO_COMMAND = [
    "",
    "   ",
    "go!",
    "go.",
    "go on then",
    "let us go",
    "GO\nstop reading",
    "go eva_host",
    "go operator",
    "going",
    "status please",
    "status eva-host",
    "/start",
    "hello",
    "go:eva-host:7",
    "// go",
    "'go'",
    "\u0261\u043e",  # look-alikes of g and o
]


@pytest.mark.parametrize("text", NO_COMMAND)
def test_anything_else_is_no_command(text: str) -> None:
    assert parse(text, BOT) is None


@pytest.mark.parametrize(
    "text", ["/stop@eva_gov_bot", "/go@eva_gov_bot", "/status@eva_gov_bot", "stop@eva_gov_bot"]
)
def test_a_command_for_another_bot_is_ignored(text: str) -> None:
    assert parse(text, BOT) is None


@given(st.text(st.sampled_from("goGO/@ \n-!.x"), max_size=8))
def test_only_a_message_that_is_go_opens(text: str) -> None:
    command = parse(text, BOT)
    if command is not None:
        first, *peer = text.lower().split()
        assert command.word is Word.GO
        assert first in {"go", "/go"}
        assert [command.peer] == (peer or [None])


@given(st.text(max_size=40))
def test_nothing_written_after_stop_disarms_it(rest: str) -> None:
    command = parse(f"STOP {rest}", BOT)
    assert command is not None
    assert command.word is Word.STOP
