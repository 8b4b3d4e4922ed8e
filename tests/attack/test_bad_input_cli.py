"""Bad input at the command line: one clear line, the right exit code, nothing changed."""

import os
import socket
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Said, credential_of, governor, local_api
from governor_pair import GovernorPair

from governor.cli.credentials import Credential, Place, save_credential
from governor.cli.joining import join_line
from governor.store.tables import AuditRecord
from governor.store.unit_of_work import Store

SCRIPT = Path(sysconfig.get_path("scripts")) / "governor"


def one_line(said: Said, code: int, *parts: str) -> None:
    assert said.code == code, said
    assert said.out == ""
    assert said.err.startswith("governor: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    assert "bug" not in said.err
    for part in parts:
        assert part in said.err


# --- agents ---


@pytest.fixture
def served(pair: GovernorPair) -> Iterator[Path]:
    pair.go()
    credential_of(pair.max)
    with local_api(pair.max):
        yield pair.max.home.path


def nothing_was_sent(pair: GovernorPair) -> bool:
    return pair.max.messages() == [] and pair.max.verify()


def test_an_unknown_agent_is_answered_with_the_nearest_name(pair: GovernorPair, served: Path) -> None:
    one_line(governor("send", "--to", "evva", "hi", home=served), 3, "unknown_recipient", "Did you mean eva?")
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("to", ["e\x1b[2Jva", "\udcff", "eva\n", "../eva"])
def test_a_name_that_is_none_is_told_without_harm(pair: GovernorPair, served: Path, to: str) -> None:
    said = governor("send", "--to", to, "hi", home=served)
    assert said.code in (2, 3)
    assert said.err.count("\n") == 1
    assert "\x1b" not in said.err
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("to", ["", "x" * 100])
def test_a_name_of_the_wrong_length_names_the_field(pair: GovernorPair, served: Path, to: str) -> None:
    one_line(governor("send", f"--to={to}", "hi", home=served), 2, "to: String should have at")
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("stdin", [b"abc\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"caf\xe9"])
def test_a_text_that_is_not_utf8_is_refused(pair: GovernorPair, served: Path, stdin: bytes) -> None:
    one_line(governor("send", "--to", "eva", "-", home=served, stdin=stdin), 2, "not UTF-8 (byte ")
    one_line(governor("send", "--to", "eva", os.fsdecode(stdin), home=served), 2, "not UTF-8 (byte ")
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("stdin", [b"", b"\n"])
def test_an_empty_text_is_refused(pair: GovernorPair, served: Path, stdin: bytes) -> None:
    one_line(governor("send", "--to", "eva", home=served, stdin=stdin), 3, "refused (empty)")
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("character", ["x", "\u00e9", "\U0001f600"])
def test_the_limit_counts_characters_and_nothing_is_cut(
    pair: GovernorPair, served: Path, character: str
) -> None:
    most = (character * 10_000).encode()
    too_long = governor("send", "--to", "eva", home=served, stdin=most + b"x")
    one_line(too_long, 3, "refused (too_long)", "send it in parts")
    assert nothing_was_sent(pair)
    assert governor("send", "--to", "eva", "--no-wait", home=served, stdin=most + b"\r\n").code == 0
    assert [row.text for row in pair.max.messages()] == [most.decode()]


@pytest.mark.parametrize("length", [80_000, 80_001, 400_000])
def test_a_text_far_too_long_gets_the_same_answer(pair: GovernorPair, served: Path, length: int) -> None:
    said = governor("send", "--to", "eva", home=served, stdin=b"x" * length)
    one_line(said, 3, "refused (too_long)", "The text is too long; shorten it or send it in parts.")
    assert nothing_was_sent(pair)


def test_input_without_end_is_not_read_to_its_end(served: Path) -> None:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [SCRIPT, "--home", served, "send", "--to", "eva", "-"], stdin=reading, stderr=subprocess.PIPE
    )
    os.close(reading)
    written = 0
    try:
        while True:
            written += os.write(writing, b"x" * 65_536)
    except BrokenPipeError:
        pass
    finally:
        os.close(writing)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"too_long" in err
    assert written < 2_000_000


@pytest.mark.parametrize("text", [b"a\x00b", b"\x00"])
def test_a_nul_is_refused(pair: GovernorPair, served: Path, text: bytes) -> None:
    one_line(governor("send", "--to", "eva", home=served, stdin=text), 2, "U+0000")
    assert nothing_was_sent(pair)


@pytest.mark.parametrize("option", ["--reply-to", "--conversation"])
@pytest.mark.parametrize("value", ["", "no id", "x" * 65, "m_1'--"])
def test_an_id_that_is_none_is_refused(pair: GovernorPair, served: Path, option: str, value: str) -> None:
    one_line(governor("send", "--to", "eva", f"{option}={value}", "hi", home=served), 2)
    assert nothing_was_sent(pair)


def test_a_message_of_somebody_else_is_not_shown(pair: GovernorPair, served: Path) -> None:
    theirs = pair.eva.send("max", "secret v1.2.3")
    one_line(governor("show", theirs.id, home=served), 2, "You have no message")
    one_line(governor("ack", theirs.id, home=served), 2, "You were shown no message")


def test_no_governor(pair: GovernorPair) -> None:
    credential_of(pair.max)
    for words in (
        ("send", "--to", "eva", "hi"),
        ("inbox",),
        ("ack", "m_1"),
        ("wait",),
        ("show", "m_1"),
        ("agents",),
    ):
        one_line(governor(*words, home=pair.max.home.path), 5, "No governor answers at", "governor run")


def test_a_wrong_token(pair: GovernorPair, served: Path) -> None:
    path = served / "credentials/max.json"
    path.write_text(path.read_text().replace("bgt_", "bgt_x"))
    one_line(governor("send", "--to", "eva", "hi", home=served), 2, "governor agent token NAME")
    assert nothing_was_sent(pair)


def test_a_used_grant(pair: GovernorPair, served: Path) -> None:
    line = join_line("bgg_" + "x" * 43, Place(str(pair.max.home.socket), ""))
    one_line(governor("agent", "join", line, home=served), 2, "governor agent token NAME --grant")


class Impostor:
    """Answers the connections on a socket with the next of some bytes, and with the last for ever."""

    def __init__(self, path: Path, *answers: bytes) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.answers = list(answers)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body


@pytest.mark.parametrize(
    ("answer", "words", "part"),
    [
        (b"", ("send", "--to", "eva", "hi"), "may or may not have been taken"),
        (b"", ("inbox",), "did not answer as it should"),
        (http(b'{"agent": "../../x", "token": "bgt_1"}'), ("agent", "join", None), "is no governor"),
        (http(b'{"agent": "max", "token": "a b"}'), ("agent", "join", None), "is no governor"),
        (http(b"{}"), ("agent", "join", None), "is no governor"),
    ],
)
def test_what_only_looks_like_a_governor(
    tmp_path: Path, answer: bytes, words: tuple[str | None, ...], part: str
) -> None:
    place = Place(str(tmp_path / "s"), "")
    save_credential(tmp_path / "h", Credential("max", "bgt_1", place))
    impostor = Impostor(tmp_path / "s", answer)
    line = join_line("bgg_1", place)
    try:
        one_line(governor(*[word or line for word in words], home=tmp_path / "h"), 5, part)
    finally:
        impostor.listener.close()
    assert [path.name for path in (tmp_path / "h").rglob("*.json")] == ["max.json"]


def test_a_governor_that_ends_after_it_took_a_message(tmp_path: Path) -> None:
    save_credential(tmp_path / "h", Credential("max", "bgt_1", Place(str(tmp_path / "s"), "")))
    impostor = Impostor(tmp_path / "s", http(b'{"id": "m_1", "conversation": "c_1"}'), b"")
    try:
        said = governor("send", "--to", "eva", "hi", home=tmp_path / "h")
    finally:
        impostor.listener.close()
    one_line(said, 5, "Message m_1 is in the outbox, so do not send it again.")


# --- operators ---


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GOVERNOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GOVERNOR_LOOPBACK_PEERS", "true")
    assert governor("init", "--name", "max-host", "--agent", "max", home=tmp_path / "h").code == 0
    return tmp_path / "h"


def records(home: Path) -> int:
    store = Store(home / "governor.db")
    try:
        with store.reading() as uow:
            return len(uow.all(AuditRecord))
    finally:
        store.close()


OPERATORS = [
    ("agent", "list"),
    ("agent", "add", "mia"),
    ("pair", "offer"),
    ("peers",),
    ("revoke", "eva-host"),
    ("rotate",),
    ("operator", "enroll"),
    ("go", "--code", "123456"),
    ("stop",),
    ("status",),
    ("run",),
]


@pytest.mark.parametrize("words", [*OPERATORS, ("config",), ("audit",)], ids=" ".join)
def test_a_home_that_is_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    one_line(governor(*words, home=tmp_path / "none"), 2, "governor init")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('name = "max-host\n', ("is not valid TOML", "line 1")),
        (
            'name = "max-host"\nlimts.messages = 3\n',
            ("Unknown setting limts.messages", "Did you mean limits.messages?"),
        ),
        ('name = "max-host"\nlisten = 3\n', ("Setting listen",)),
        ('name = "max-host"\n[limits]\nmessages = "many"\n', ("Setting limits.messages",)),
        ('name = "max-host"\nreader = 3\n', ("Setting reader",)),
        ('\xff name = "max-host"\n', ("is not valid TOML",)),
    ],
)
def test_broken_settings(home: Path, text: str, parts: tuple[str, ...]) -> None:
    before = records(home)
    (home / "governor.toml").write_text(text, encoding="latin-1")
    for words in (*OPERATORS, ("config",)):
        one_line(governor(*words, home=home), 2, *parts)
    assert records(home) == before


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        (
            "GOVERNOR_LIMITS__MESAGES",
            "3",
            "Unknown setting limits.mesages in the environment. Did you mean limits.messages?",
        ),
        ("GOVERNOR_LIMITS__MESSAGES", "many", "Setting limits.messages"),
        ("GOVERNOR_LIMITS", "{", "cannot be read"),
    ],
)
def test_a_broken_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, part: str
) -> None:
    monkeypatch.setenv(name, value)
    one_line(governor("status", home=home), 2, part)


@pytest.mark.parametrize("damage", ["missing", "garbage", "another key"])
def test_a_key_that_cannot_be_used(home: Path, damage: str) -> None:
    (path,) = (home / "keys").glob("*.sign")
    if damage == "missing":
        path.unlink()
    elif damage == "garbage":
        path.write_text("nonsense")
    else:
        governor("rotate", home=home)
        other = next(key for key in (home / "keys").glob("*.sign") if key != path)
        path.write_bytes(other.read_bytes())
    before = records(home)
    one_line(governor("pair", "offer", home=home), 2, str(path), "Restore")
    assert records(home) == before


@pytest.mark.parametrize("damage", [b"this is no database at all, but a text" * 40, b""])
def test_a_database_that_is_none(home: Path, damage: bytes) -> None:
    (home / "governor.db").write_bytes(damage)
    said = governor("status", home=home)
    if damage:
        one_line(said, 1, str(home / "governor.db"), "restore a backup")
        assert (home / "governor.db").read_bytes() == damage
        one_line(governor("init", "--name", "max-host", home=home), 1, "restore a backup")
        one_line(governor("audit", "verify", home=home), 1, "restore a backup")
    else:
        one_line(governor("pair", "offer", home=home), 2)


def test_a_damaged_database(home: Path) -> None:
    path = home / "governor.db"
    raw = bytearray(path.read_bytes())
    raw[4096 * 3 : 4096 * 12] = os.urandom(4096 * 9)
    path.write_bytes(raw)
    one_line(governor("agent", "add", "mia", home=home), 1, str(path), "damaged", "restore a backup")
    assert not (home / "credentials/mia.json").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("agent", "add", "operator"), ("'operator' is reserved",)),
        (("agent", "add", "Max!"), ("use 1 to 32 of a-z",)),
        (("agent", "add", "../../max"), ("use 1 to 32 of a-z",)),
        (("agent", "remove", "mix"), ("There is no agent 'mix' here", "governor agent list")),
        (("agent", "remove", "../../max"), ("There is no agent",)),
        (("agent", "token", "mix", "--grant"), ("There is no agent 'mix' here",)),
        (("pair", "accept", "hello"), ("That is not a pairing line", "governor pair offer")),
        (("pair", "accept", "bgpair1.abc"), ("cut off",)),
        (("pair", "confirm", "eva-host", "--code", "123456"), ("No peer 'eva-host' waits", "governor peers")),
        (("revoke", "eva-host"), ("There is no peer 'eva-host'", "governor peers")),
        (("go", "eva-host", "--code", "123456"), ("There is no peer 'eva-host'", "governor pair offer")),
        (("go",), ("--code N", "governor operator enroll")),
        (("audit", "--since", "yesterday"), ("'yesterday' is neither a date nor a span",)),
        (("skills", "install", "--for", "codex"), ("governor pair offer",)),
    ],
    ids=lambda value: " ".join(value)[:40] if value else "",
)
def test_a_wrong_operand_changes_nothing(home: Path, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    before = records(home), sorted(path.name for path in home.rglob("*.json"))
    one_line(governor(*words, home=home), 2, *parts)
    assert (records(home), sorted(path.name for path in home.rglob("*.json"))) == before


def test_a_line_of_ones_own_is_refused(home: Path) -> None:
    line = governor("pair", "offer", home=home).out
    one_line(
        governor("pair", "accept", "-", home=home, stdin=line.encode()), 2, "is of a governor called max-host"
    )
    one_line(
        governor("pair", "accept", "-", home=home, stdin=b"\xff\xfe" + line.encode()), 2, "not a pairing line"
    )
    one_line(governor("pair", "accept", "-", home=home, stdin=b"x" * 1_000_000), 2, "not a pairing line")
    assert governor("peers", home=home).out == "No peer yet. Pair with one: governor pair offer\n"


def test_five_wrong_codes_lock_the_code(home: Path) -> None:
    governor("operator", "enroll", home=home)
    for _ in range(5):
        one_line(governor("go", "--code", "000000", home=home), 3, "Wrong code.")
    one_line(governor("go", "--code", "123456", home=home), 3, "locked until")


@pytest.mark.parametrize("place", ["a file", "/proc/none"])
def test_a_home_that_cannot_be(tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").write_text("")
    said = governor("init", "--name", "max-host", home=tmp_path / place)
    one_line(said, 2, place, "Mend that and try again.")
