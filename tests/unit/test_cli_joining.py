import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.cli.credentials import Place
from governor.cli.failure import Failure
from governor.cli.joining import join_line, read_join_line

GRANT = "bgg_" + "a" * 43


@given(
    st.from_regex(r"bgg_[A-Za-z0-9_-]{43}", fullmatch=True),
    st.text(min_size=0, max_size=50).map(lambda text: f"/{text}"),
    st.sampled_from(["", "127.0.0.1:18801", "localhost:1", "[::1]:65535"]),
)
def test_a_line_carries_grant_and_place(grant: str, socket: str, tcp: str) -> None:
    assert read_join_line(join_line(grant, Place(socket, tcp))) == (grant, Place(socket, tcp))


def test_white_space_of_a_mail_program_does_no_harm() -> None:
    line = join_line(GRANT, Place("/s", ""))
    assert read_join_line(f" {line[:20]}\r\n  {line[20:]}\n") == (GRANT, Place("/s", ""))


def line_of(**found: object) -> str:
    whole = {"grant": GRANT, "socket": "/run/governor.sock", "tcp": "127.0.0.1:18801"} | found
    return "bgjoin1." + urlsafe_b64encode(json.dumps(whole).encode()).decode()


def test_the_usual_line() -> None:
    assert read_join_line(line_of())[0] == GRANT


@pytest.mark.parametrize(
    "line",
    [
        "",
        GRANT,
        "bgjoin1.",
        "bgjoin1.!!!!",
        "bgjoin1.\u00e9",
        "bgjoin1.e30",
        "bgjoin1.W10",
        "bgjoin2." + line_of()[8:],
        line_of()[:-9],
        line_of(grant=None),
        line_of(grant="a\r\nb"),
        line_of(socket=3),
        line_of(socket="relative/path"),
        line_of(socket="", tcp=""),
        line_of(tcp="10.0.0.1:18801"),
        line_of(tcp="evil.example:18801"),
        line_of(tcp="127.0.0.1.evil.example:1"),
        line_of(tcp="127.0.0.1:18801\r\nX: y"),
        "bgjoin1." + urlsafe_b64encode(b"[" * 100_000).decode(),
    ],
)
def test_what_is_no_grant_is_refused(line: str) -> None:
    with pytest.raises(Failure, match="governor agent add NAME --grant") as failure:
        read_join_line(line)
    assert failure.value.exit == 2
