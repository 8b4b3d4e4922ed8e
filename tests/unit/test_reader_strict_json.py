import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.strict_json import line, read_object


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"1",
        b'"text"',
        b"{",
        b"{} {}",
        b'{"a":1,"a":2}',
        b'{"b":{"a":1,"a":2}}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":"\xff"}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":' + b"[" * 100_000 + b"}",
        b'{"a":' + b"9" * 5_000 + b"}",
        "{'a':1}",
    ],
)
def test_anything_else_is_none(raw: bytes | str) -> None:
    assert read_object(raw) is None


@pytest.mark.parametrize("raw", [b' {"a": [1, null]}\n', '{"a": [1, null]}'])
def test_an_object_is_read(raw: bytes | str) -> None:
    assert read_object(raw) == {"a": [1, None]}


@given(st.dictionaries(st.text(), st.text()))
def test_a_line_is_one_line_of_ascii_and_reads_back(fields: dict[str, str]) -> None:
    written = line(fields)
    assert written.isascii()
    assert written.count(b"\n") == 1
    assert written.endswith(b"\n")
    assert read_object(written) == fields == json.loads(written)
