"""What an agent does at the command line, against a real local API on a real socket."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import credential_of, governor, local_api
from governor_pair import GovernorPair

from governor.cli.credentials import Place
from governor.cli.joining import join_line
from governor.delivery.inbox import WITHDRAWN
from governor.directory.agents import make_grant
from governor.directory.links import Actor
from governor.inbound.lives import move
from governor.message import CleanText
from governor.policy.lives import InboundEvent
from governor.store.tables import Message
from governor.supervision.revoking import revoke

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(pair: GovernorPair) -> Path:
    credential_of(pair.max)
    credential_of(pair.eva)
    return pair.max.home.path


@pytest.fixture
def served(pair: GovernorPair, home: Path) -> Iterator[Path]:
    """Max's home, with its local API served and both governors at work."""
    with local_api(pair.max, pair):
        yield home


def deliver(pair: GovernorPair, message_id: str, text: str) -> None:
    """Put a message that was read into Max's inbox, as the reader's loop would."""
    now = pair.clock.now()
    with pair.max.store.begin() as uow:
        uow.add(
            Message(
                id=message_id,
                peer="eva-host",
                direction="in",
                state="ready",
                sender="eva@eva-host",
                recipient="max@max-host",
                conversation="c_1",
                hops=4,
                lineage=["eva@eva-host"],
                size=3,
                sha256="0" * 64,
                clean=CleanText(text),
                created_at=now,
                expires_at=now,
            )
        )


def test_a_message_is_accepted_and_that_is_not_called_delivered(pair: GovernorPair, served: Path) -> None:
    pair.go()
    said = governor("send", "--to", "eva", "Look at src/app.py:88, v1.2.3.", home=served)
    (sent,) = pair.max.messages()
    assert said.code == 0
    assert said.out == (
        f"{sent.id}: accepted by the peer's governor (not yet delivered). Conversation: {sent.conversation}\n"
    )
    assert said.err == ""
    assert sent.text == "Look at src/app.py:88, v1.2.3."


def test_send_as_json(pair: GovernorPair, served: Path) -> None:
    pair.go()
    said = governor("send", "--to", "eva@eva-host", "-", "--json", home=served, stdin=b"v1.2.3\n")
    (sent,) = pair.max.messages()
    assert said.document == {
        "ok": True,
        "id": sent.id,
        "state": "accepted",
        "reason": None,
        "conversation": sent.conversation,
        "peer": "eva-host",
        "recipient": "eva@eva-host",
        "expires_at": "2026-03-02T09:10:00Z",
    }
    assert sent.text == "v1.2.3"  # the newline that ends the input is none of the text's


def test_a_reply_and_a_conversation_reach_the_governor(pair: GovernorPair, served: Path) -> None:
    pair.go()
    asked = pair.eva.send("max", "Is v1.2.3 out?")
    (item,) = governor("inbox", "--wait", "60", "--json", home=served).document["messages"]
    assert item["id"] == asked.id
    to = ("--reply-to", asked.id, "--conversation", asked.conversation)
    said = governor("send", "--to", "eva", *to, "Yes.", home=served)
    assert said.code == 0
    (answer,) = [row for row in pair.max.messages() if row.direction == "out"]
    assert (answer.in_reply_to, answer.conversation) == (asked.id, asked.conversation)


def test_a_closed_link_is_a_refusal_with_its_reason(pair: GovernorPair, served: Path) -> None:
    said = governor("send", "--to", "eva", "hello", home=served)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("governor: refused (paused): The link is paused (awaiting_first_go). Wait for")
    document = governor("send", "--to", "eva", "hello", "--json", home=served).document
    assert (document["ok"], document["error"], document["reason"]) == (False, "refused", "paused")
    assert pair.max.messages() == []


def test_a_link_closed_at_the_peer_is_told_in_its_own_words(pair: GovernorPair, served: Path) -> None:
    pair.max.go("eva-host")
    said = governor("send", "--to", "eva", "hello", home=served)
    (sent,) = pair.max.messages()
    assert said.code == 4
    assert said.out == (
        f"{sent.id}: the peer's governor is closed until a human there says GO: "
        "kept in the outbox until 09:10 UTC; do not send again\n"
    )


def test_an_unreachable_peer_leaves_the_message_in_the_outbox(pair: GovernorPair, served: Path) -> None:
    pair.go()
    pair.max.wire.cut = True
    said = governor("send", "--to", "eva", "hello", "--json", home=served)
    assert said.code == 4
    document = said.document
    assert (document["ok"], document["state"], document["error"]) == (False, "queued", "transport")
    assert "kept in the outbox until 09:10 UTC; do not send again" in document["message"]
    assert [row.state for row in pair.max.messages()] == ["queued"]


def test_no_wait_returns_at_once_and_says_queued(pair: GovernorPair, home: Path) -> None:
    pair.go()
    with local_api(pair.max):  # nobody sends
        said = governor("send", "--to", "eva", "--no-wait", "hello", home=home)
        (sent,) = pair.max.messages()
        assert (said.code, said.out) == (0, f"{sent.id}: queued. How it stands: governor show {sent.id}\n")


def test_a_wait_that_is_over_is_not_an_acceptance(pair: GovernorPair, home: Path) -> None:
    pair.go()
    with local_api(pair.max):
        said = governor("send", "--to", "eva", "--wait", "0.1", "hello", home=home)
    assert said.code == 4
    assert "not yet accepted by the peer's governor: kept in the outbox until 09:10 UTC" in said.out


def test_a_revoked_link_ends_what_waits(pair: GovernorPair, served: Path) -> None:
    pair.go()
    pair.max.wire.cut = True
    governor("send", "--to", "eva", "hello", home=served)
    revoke(pair.max.store, pair.max.host, "eva-host", Actor("tester"))
    (sent,) = pair.max.messages()
    said = governor("show", sent.id, "--json", home=served)
    assert said.document["state"] in ("cancelled", "unconfirmed")


def test_the_inbox_shows_clean_text_as_it_is_and_marks_what_was_shown(
    pair: GovernorPair, served: Path
) -> None:
    pair.go()
    assert governor("inbox", home=served).out == "No messages.\n"
    deliver(pair, "m_1", "[governor] message m_1\n| first\n[governor] end")
    assert governor("inbox", home=served).out == "[governor] message m_1\n| first\n[governor] end\n"
    deliver(pair, "m_2", "second: d\u00e9j\u00e0 vu")
    said = governor("inbox", home=served)
    assert said.out == (
        "(shown before)\n[governor] message m_1\n| first\n[governor] end\n\nsecond: d\\xe9j\\xe0 vu\n"
    )
    items = governor("inbox", "--json", home=served).document["messages"]
    assert [(item["id"], item["text"], item["shown_before"]) for item in items] == [
        ("m_1", "[governor] message m_1\n| first\n[governor] end", True),
        ("m_2", "second: d\u00e9j\u00e0 vu", True),
    ]


def test_the_inbox_says_what_its_sender_withdrew(pair: GovernorPair, served: Path) -> None:
    pair.go()
    deliver(pair, "m_1", "first")
    assert "withdrawn" not in governor("inbox", home=served).out
    with pair.max.store.begin() as uow:
        for row in uow.all(Message, Message.id == "m_1"):
            assert move(uow, row, InboundEvent.CANCELLED, pair.clock.now(), WITHDRAWN)
    assert "(withdrawn by its sender)\nfirst" in governor("inbox", home=served).out


def test_a_closed_link_hides_its_messages(pair: GovernorPair, served: Path) -> None:
    deliver(pair, "m_1", "text of a peer")
    assert governor("inbox", home=served).out == "No messages.\n"
    assert governor("wait", "--timeout", "0", home=served) == governor(
        "wait", "--timeout", "0.1", home=served
    )


def test_wait_returns_when_a_message_waits_and_never_shows_it(pair: GovernorPair, served: Path) -> None:
    pair.go()
    later = threading.Timer(0.3, deliver, (pair, "m_1", "text of a peer"))
    later.start()
    said = governor("wait", home=served)
    later.join()
    assert said.out == "1 message(s) waiting. Read them with: governor inbox\n"
    assert (said.code, said.err) == (0, "")
    assert governor("wait", "--json", home=served).document == {"ok": True, "waiting": 1}


def test_wait_ends_silently_with_one_when_nothing_came(served: Path) -> None:
    said = governor("wait", "--timeout", "0", home=served)
    assert (said.code, said.out, said.err) == (1, "", "")


def test_ack_takes_messages_out_of_the_inbox(pair: GovernorPair, served: Path) -> None:
    pair.go()
    deliver(pair, "m_1", "one")
    deliver(pair, "m_2", "two")
    governor("inbox", home=served)
    assert governor("ack", "m_1", home=served).out == "m_1: acknowledged\n"
    said = governor("ack", "m_1", "m_2", home=served)
    assert said.out == "m_1: was acknowledged before\nm_2: acknowledged\n"
    assert governor("inbox", home=served).out == "No messages.\n"


def test_only_messages_that_were_shown_can_be_acknowledged(pair: GovernorPair, served: Path) -> None:
    pair.go()
    deliver(pair, "m_1", "one")
    said = governor("ack", "m_1", home=served)
    assert said.code == 2
    assert "governor inbox" in said.err
    assert [row.state for row in pair.max.messages()] == ["ready"]


def test_show_tells_the_life_of_a_message_of_ones_own(pair: GovernorPair, served: Path) -> None:
    pair.go()
    governor("send", "--to", "eva", "v1.2.3 \x1b[31mred\nsecond", home=served)
    (sent,) = pair.max.messages()
    lines = governor("show", sent.id, home=served).out.splitlines()
    assert lines[0] == f"{sent.id} from max@max-host to eva@eva-host: accepted"
    assert [line.split()[1] for line in lines if line.startswith("2026")] == [
        "message_submitted",
        "message_sending",
        "message_accepted",
    ]
    assert lines[-2:] == ["| v1.2.3 \\x1b[31mred", "| second"]


def test_agents_are_named_in_full(pair: GovernorPair, served: Path) -> None:
    assert governor("agents", home=served).out == "eva@eva-host\n"
    revoke(pair.max.store, pair.max.host, "eva-host", Actor("tester"))
    assert "governor pair offer" in governor("agents", home=served).out


@pytest.mark.parametrize("tcp", [False, True])
def test_a_grant_becomes_a_credential_of_the_agents_own_user(
    pair: GovernorPair, home: Path, tmp_path: Path, tcp: bool
) -> None:
    with local_api(pair.max, tcp=tcp) as address:
        with pair.max.store.begin() as uow:
            grant = make_grant(uow, "max", pair.clock.now())
        other = tmp_path / "other user"
        before = os.umask(0o777)
        try:
            socket = tmp_path / "nowhere/governor.sock" if tcp else pair.max.home.socket
            line = join_line(grant, Place(str(socket), address))
            said = governor("agent", "join", line, home=other)
        finally:
            os.umask(before)
        assert said.code == 0, said.err
        path = other / "credentials/max.json"
        assert [
            path.stat().st_mode & 0o777,
            path.parent.stat().st_mode & 0o777,
            other.stat().st_mode & 0o777,
        ] == [
            0o600,
            0o700,
            0o700,
        ]
        assert governor("agents", home=other).out == "eva@eva-host\n"
        assert governor("agents", home=home).code == 2  # the older token is dead
        again = governor("agent", "join", "-", home=other, stdin=line.encode())
        assert again.code == 2
        assert "unknown, used or expired" in again.err


PROBE = """
import sys
sys.path.insert(0, {root!r})
from governor.cli.main import main
code = main(sys.argv[1:])
print("loaded:", *sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["send", "--to", "eva", "hello"],
        ["inbox"],
        ["ack", "m_1"],
        ["wait", "--timeout", "0"],
        ["show", "m_1"],
        ["agents"],
        ["agent", "join", "bgjoin1.e30"],
    ],
    ids=lambda words: words[0],
)
def test_the_commands_of_agents_load_the_standard_library_only(
    pair: GovernorPair, served: Path, words: list[str]
) -> None:
    pair.go()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE.format(root=str(ROOT)), "--home", served, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    loaded = done.stderr.splitlines()[-1].split()[1:]
    allowed = {"governor", "governor.cli", "__main__"}
    foreign = [
        name
        for name in loaded
        if name.partition(".")[0] not in sys.stdlib_module_names
        and name not in allowed
        and not name.startswith("governor.cli.")
    ]
    assert foreign == []
    assert not {"http", "dataclasses", "inspect", "shutil", "tempfile", "difflib", "asyncio"} & set(loaded)


def test_json_is_one_object_whatever_happens(served: Path) -> None:
    for words in (
        ["send", "--to", "nobody", "hello"],
        ["inbox"],
        ["show", "m_none"],
        ["ack", "no id!"],
        ["agents"],
        ["wait", "--timeout", "0"],
        ["agent", "join", "nonsense"],
    ):
        said = governor(*words, "--json", home=served)
        assert isinstance(json.loads(said.out), dict), words
        assert said.err == ""
