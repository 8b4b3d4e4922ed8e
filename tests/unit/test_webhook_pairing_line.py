"""pairing_line, peer_url: what a line may say, and where a URL may lead."""

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.errors import LocalError
from governor.webhook.encodings import from_base64url, from_json, to_base64url, to_json
from governor.webhook.pairing_line import AGENTS_LIMIT, LINE_LIMIT, PREFIX, Offer, decode_offer, encode_offer
from governor.webhook.peer_url import is_local, read_peer_url
from governor.webhook.signing import Context, sign_in_context
from tests.webhook_samples import EVA, MALLORY, MAX, NOW, sample_certificate

OFFER = Offer(
    name="max-host",
    agents=("max", "mia"),
    url="https://100.64.0.7:18802",
    public_key=MAX.verify_key,
    certificate=sample_certificate(),
    expires_at=NOW + timedelta(hours=1),
)
LINE = encode_offer(OFFER, MAX)


def refusal(line: str, **options: bool) -> str:
    with pytest.raises(LocalError) as caught:
        decode_offer(line, NOW, **options)
    return str(caught.value)


def line(**changes: object) -> str:
    return encode_offer(dataclasses.replace(OFFER, **changes), MAX)  # type: ignore[arg-type]


def forged(**changes: object) -> str:
    """Return a line whose document has other values, rightly signed."""
    document = to_json(from_json(from_base64url(LINE.removeprefix(PREFIX).split(".")[0])) | changes)
    return f"{PREFIX}{to_base64url(document)}.{to_base64url(sign_in_context(MAX, Context.PAIRING, document))}"


def test_an_offer_comes_back() -> None:
    assert decode_offer(LINE, NOW) == OFFER
    assert decode_offer(f"  {LINE[:70]}\r\n  {LINE[70:]}\n", NOW) == OFFER  # wrapped by a mail program
    assert "\n" not in LINE
    assert OFFER.certificate_fingerprint == decode_offer(LINE, NOW).certificate_fingerprint
    assert decode_offer(line(public_tls=True), NOW).public_tls


@pytest.mark.parametrize("text", ["", "hello", "bgpair2.abc.def", LINE[1:], "x" + LINE])
def test_what_is_no_line_is_named(text: str) -> None:
    assert "not a pairing line" in refusal(text)


def test_a_line_cut_off_anywhere_is_named() -> None:
    for end in range(len(PREFIX), len(LINE)):
        assert "cut off" in refusal(LINE[:end])


@given(st.integers(len(PREFIX), len(LINE) - 1), st.sampled_from("AZaz09-_.!~ü"))
def test_a_line_altered_anywhere_is_refused(place: int, char: str) -> None:
    if LINE[place] != char:
        message = refusal(LINE[:place] + char + LINE[place + 1 :])
        assert "altered" in message or "cut off" in message


def test_a_line_with_too_much_is_refused() -> None:
    assert "altered" in refusal(LINE + "A")
    assert "too long" in refusal(LINE + "A" * LINE_LIMIT)


def test_a_line_signed_by_another_key_is_refused() -> None:
    assert "altered" in refusal(encode_offer(OFFER, MALLORY))
    assert "altered" in refusal(encode_offer(dataclasses.replace(OFFER, public_key=EVA.verify_key), MAX))


def test_a_line_expires() -> None:
    assert decode_offer(line(expires_at=NOW + timedelta(microseconds=1)), NOW)
    assert "expired" in refusal(line(expires_at=NOW))


@pytest.mark.parametrize("name", ["operator", "governor", "", "Max", "a" * 33, "max host"])
def test_names_outside_the_grammar_are_refused(name: str) -> None:
    assert "not permitted" in refusal(line(name=name))
    assert "not permitted" in refusal(line(agents=("max", name)))


def test_agents_are_bounded_and_different() -> None:
    many = tuple(f"a{number}" for number in range(AGENTS_LIMIT + 1))
    assert decode_offer(line(agents=many[:-1]), NOW)
    assert decode_offer(line(agents=()), NOW).agents == ()
    assert "not permitted" in refusal(line(agents=many))
    assert "twice" in refusal(line(agents=("max", "max")))


def test_the_certificate_is_checked() -> None:
    assert "certificate" in refusal(line(certificate=b"c"))


@pytest.mark.parametrize(
    "changes",
    [
        {"more": 1},
        {"name": 1},
        {"agents": "max"},
        {"agents": [1]},
        {"url": None},
        {"public_tls": 1},
        {"certificate": 1},
        {"certificate": "!"},
        {"expires_at": 1},
        {"expires_at": "tomorrow"},
    ],
)
def test_a_signed_line_of_another_shape_is_of_another_version(changes: dict[str, Any]) -> None:
    assert "another version" in refusal(forged(**changes))


@pytest.mark.parametrize("changes", [{"public_key": 1}, {"public_key": "whpk_"}, {"public_key": None}])
def test_a_line_without_its_key_is_refused(changes: dict[str, Any]) -> None:
    assert "altered" in refusal(forged(**changes))


@pytest.mark.parametrize("document", [b"[]", b"1", b"null", b'"whpk"', b"{}", b"["])
def test_a_line_whose_document_is_no_object_is_refused(document: bytes) -> None:
    signature = to_base64url(sign_in_context(MAX, Context.PAIRING, document))
    assert "altered" in refusal(f"{PREFIX}{to_base64url(document)}.{signature}")


@pytest.mark.parametrize(
    "url",
    [
        "https://100.64.0.7:18802",
        "https://100.64.0.7:18802/",
        "https://max.tail1234.ts.net",
        "https://max",
        "https://[fd7a:115c:a1e0::1]:18802",
        "HTTPS://Max.Example",
    ],
)
def test_urls_of_peers(url: str) -> None:
    found = read_peer_url(url)
    assert read_peer_url(str(found)) == found
    assert decode_offer(line(url=url), NOW).url == url


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://max.example", "https://"),
        ("ftp://max.example", "https://"),
        ("max.example", "https://"),
        ("", "characters"),
        ("https://", "no valid host"),
        ("https://user@max.example", "user name"),
        ("https://:pw@max.example", "user name"),
        ("https://@max.example", "user name"),
        ("https://max.example/hooks", "ends after"),
        ("https://max.example//", "ends after"),
        ("https://max.example?a", "ends after"),
        ("https://max.example?", "ends after"),
        ("https://max.example#a", "ends after"),
        ("https://max.example#", "ends after"),
        ("https://max.example:0", "no port"),
        ("https://max.example:65536", "cannot be read"),
        ("https://max.example:x", "cannot be read"),
        ("https://[::1", "cannot be read"),
        ("https://max .example", "characters"),
        ("https://max\n.example", "characters"),
        ("https://mäx.example", "characters"),
        ("https://max_.example", "no valid host"),
        ("https://max.example.", "no valid host"),
        ("https://" + "a" * 300, "too long"),
        ("https://127.1", "no valid host"),
        ("https://0x7f000001", "no valid host"),
        ("https://2130706433", "no valid host"),
        ("https://[fe80::1%25eth0]", "no valid host"),
        ("https://127.0.0.1:18802", "this machine"),
        ("https://127.9.9.9", "this machine"),
        ("https://[::1]", "this machine"),
        ("https://[::ffff:127.0.0.1]", "this machine"),
        ("https://0.0.0.0", "this machine"),
        ("https://[::]", "this machine"),
        ("https://169.254.169.254", "this machine"),
        ("https://[fe80::1]", "this machine"),
        ("https://224.0.0.1", "this machine"),
        ("https://localhost", "this machine"),
        ("https://a.localhost", "this machine"),
    ],
)
def test_other_urls_are_refused(url: str, why: str) -> None:
    with pytest.raises(LocalError, match=why):
        read_peer_url(url)
    assert why in refusal(line(url=url))


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1", "https://[::1]:1", "https://localhost", "http://127.0.0.1:80"]
)
def test_loopback_is_for_the_flag(url: str) -> None:
    assert str(read_peer_url(url, allow_loopback=True)).startswith(url[:9])
    assert decode_offer(line(url=url), NOW, allow_loopback=True).url == url
    assert "loop" not in refusal(line(url=url))


@pytest.mark.parametrize("url", ["http://max.example", "http://100.64.0.7", "http://localhost"])
def test_plain_http_is_for_loopback_addresses_only(url: str) -> None:
    assert "https://" in refusal(line(url=url), allow_loopback=True)


def test_ports_have_their_default() -> None:
    assert read_peer_url("https://max.example").port == 443
    assert read_peer_url("http://127.0.0.1", allow_loopback=True).port == 80


@pytest.mark.parametrize("address", ["fe80::1%eth0", "127.0.0.1", "::ffff:169.254.1.1"])
def test_addresses_of_this_machine_or_link(address: str) -> None:
    assert is_local(address)


@pytest.mark.parametrize(
    "address", ["100.64.0.7", "10.0.0.1", "192.168.1.2", "fd7a::1", "8.8.8.8", "::ffff:8.8.8.8"]
)
def test_addresses_elsewhere(address: str) -> None:
    assert not is_local(address)
