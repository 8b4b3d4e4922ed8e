"""encodings: one spelling a value; every other is refused with a SpellingError."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governor.webhook.encodings import (
    WHOLE_LIMIT,
    SpellingError,
    from_base64,
    from_base64url,
    from_instant,
    from_json,
    from_object,
    to_base64,
    to_base64url,
    to_instant,
    to_json,
)

WHOLE = st.integers(-WHOLE_LIMIT, WHOLE_LIMIT)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | WHOLE | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=80))
def test_bytes_come_back(raw: bytes) -> None:
    assert from_base64(to_base64(raw)) == raw
    assert from_base64(to_base64(raw), len(raw)) == raw
    assert from_base64url(to_base64url(raw)) == raw


@given(st.text(max_size=12))
def test_base64_has_one_spelling(text: str) -> None:
    for read, write in ((from_base64, to_base64), (from_base64url, to_base64url)):
        try:
            raw = read(text)
        except SpellingError:
            continue
        assert write(raw) == text


@pytest.mark.parametrize(
    "text", ["QR==", "QQ", "QQ==\n", " QQ==", "QQ==QQ==", "Q*==", "QÄ==", "_w==", "===="]
)
def test_other_base64_is_refused(text: str) -> None:
    with pytest.raises(SpellingError):
        from_base64(text)


@pytest.mark.parametrize("text", ["QR", "QQ==", "+/8", "QÄ", "A", "Q Q"])
def test_other_base64url_is_refused(text: str) -> None:
    with pytest.raises(SpellingError):
        from_base64url(text)


def test_a_length_is_held() -> None:
    with pytest.raises(SpellingError):
        from_base64(to_base64(b"123"), 4)


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_come_back(at: datetime) -> None:
    assert from_instant(to_instant(at)) == at


def test_an_instant_is_written_in_utc() -> None:
    at = datetime(2026, 12, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert to_instant(at) == "2026-11-30T23:00:00.000000Z"


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(SpellingError):
        to_instant(datetime(2026, 12, 1))  # noqa: DTZ001 - the point


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-01T12:00:00Z",
        "2026-12-01T12:00:00.000000+00:00",
        "2026-12-01 12:00:00.000000Z",
        "2026-02-31T12:00:00.000000Z",
        "2026-12-01T12:00:00.000000Z\n",
        "٢026-12-01T12:00:00.000000Z",
        "",
    ],
)
def test_other_instants_are_refused(text: str) -> None:
    with pytest.raises(SpellingError):
        from_instant(text)


@given(VALUES)
def test_json_comes_back(value: object) -> None:
    raw = to_json(value)
    assert from_json(raw) == value
    assert json.loads(raw) == value


def test_json_is_the_same_bytes_whatever_the_order_of_keys() -> None:
    assert to_json({"b": 1, "a": "ü"}) == to_json({"a": "ü", "b": 1}) == '{"a":"ü","b":1}'.encode()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b"NaN",
        b"Infinity",
        b"-Infinity",
        b"1.0",
        b"1e3",
        b"9007199254740992",
        b"-9007199254740992",
        b"9" * 5000,
        b"\xef\xbb\xbf{}",
        '{"a":"ü"}'.encode("latin-1"),
        '{"a":1}'.encode("utf-16"),
        b'{"a":1}x',
        b"{",
        b"",
        b'"\x01"',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_other_json_is_refused(raw: bytes) -> None:
    with pytest.raises(SpellingError):
        from_json(raw)


@pytest.mark.parametrize("value", [None, 1, "a", [], ["a"], {}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 2}])
def test_an_object_has_exactly_its_keys(value: object) -> None:
    with pytest.raises(SpellingError):
        from_object(value, ("a", "b"))


def test_an_object_is_returned() -> None:
    assert from_object({"b": 1, "a": 2}, ("a", "b")) == {"a": 2, "b": 1}
