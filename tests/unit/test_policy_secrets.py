"""Secrets: every shape in every disguise, known values, harmless texts, and patterns that stay linear."""

import base64
from collections.abc import Callable, Collection
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from governor.message import TEXT_LIMIT
from governor.policy.known_values import KNOWN_LENGTH, KnownValue, known
from governor.policy.secret_shapes import MADE_UP, SHAPES
from governor.policy.secrets import Found
from governor.policy.secrets import find_secret as find

UNTIMED = settings(deadline=None)  # a busy machine is no fault

PROSE_LIKE = {shape.kind for shape in SHAPES if shape.changes is None}
TOKENS = {shape.kind: shape.example for shape in SHAPES if shape.changes is not None}
PLAIN_ONLY = {kind: shape.example for shape in SHAPES if (kind := shape.kind) in PROSE_LIKE - set(TOKENS)}
MIX = MADE_UP[:60]
# Put together here, so that no scanner of repositories takes them for real.
VARIANTS = [
    ("openai_key", "sk-" + "svcacct-" + MIX[:40]),
    ("aws_key_id", "AS" + "IA" + "IOSFODNN7EXAMPLE"),
    ("aws_secret_key", '"Secret' + 'AccessKey": "' + MIX[:40] + '"'),
    ("azure_signature", "https://a.blob.core.windows.net/c?se=2026&" + "sig=" + MIX[:43] + "%3D&sp=r"),
    ("gitlab_token", "gl" + "rt-" + MIX[:20]),
    ("github_token", "gh" + "s_" + MIX[:36]),
    ("stripe_key", "rk" + "_live_" + MIX[:24]),
    ("stripe_key", "sk" + "_test_" + MIX[:24]),
    ("webhook_secret", "wh" + "sk_" + MIX[:32]),
    ("vault_token", "hv" + "b." + MIX),
    ("private_key", "-----BEGIN " + "PRIVATE KEY-----"),
    ("private_key", "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----"),
    ("connection_string", "redis://:" + MIX[:10] + "@localhost"),
    ("connection_string", "https://eva:" + "pa$$word@10.0.0.1/"),
    ("connection_string", "Driver={X};Server=db; " + "PWD = hunter2"),
    ("pin", "my pin is 471122"),
    ("pin", "PIN 4711."),
    ("pin", "Pin code = '4 7 1 1'"),
    ("pin", "the PIN number is: 4711, thanks"),
    ("pin", "le code PIN est 4711"),
    ("pin", "die PIN lautet: 4711"),
    ("pin", "Code PIN : 4711"),
]
HARMLESS = [
    "The sig= parameter and AccountKey= are documented; hf_hub_download is a function, npm_config_registry a name",
    "Call shelf_stable_products_in_the_warehouse and gsk_shares; xai-explainable-artificial-intelligence-methods",
    "secret access key: see the vault. Password=<yours>; Pwd=${PW}; the PIN is four digits, pin 4 to 7",
    "",
    "Commit 3f2a9c1e8b7d6a5f4e3d2c1b0a9f8e7d6c5b4a39 fixes /usr/lib/python3.11/site-packages/x.py:42.",
    "The id is 123e4567-e89b-12d3-a456-426614174000, sha256 " + "ab12" * 16,
    "bgt_ tokens are made of 43 characters, ghp_ ones have 36 and whsec_ ones come in base64 at all times",
    "Rename the branch task-admin-panel-permissions-rework and task-ant-design-upgrade-to-version-5",
    "The task_live_ prefix means that the service is up; disk_live_migrations run at 10 in the evening",
    "See http://localhost:8080 and ask @bob, or https://example.com/@user:8080/x, or mail eva@example.com",
    "DATABASE_URL=postgres://user:<password>@host/db and redis://:${PW}@host and amqp://u:***@h",
    "pinned to 2024.1, pin: 1.2.3, pin 12 is high, spinning 4711, pin: 20240101.5",
    "Build 20250110: the whole suite passed in 35 seconds and nobody had to look at it again",
    "Opérations à Genève le 3 février : « tout va bien », 北京 работа",
]


def find_secret(text: str, values: Collection[str] = (), canaries: Collection[str] = ()) -> Found | None:
    return find(text, known([*map(KnownValue, values), *(KnownValue(value, "bait") for value in canaries)]))


CARRIERS: list[Callable[[str], str]] = [
    "{}".format,
    "Here it is: {} - keep it".format,
    "line one\nline two\n\t'{}'\n".format,
    "token={}&x=1".format,
]


def spaced(text: str) -> str:
    return " ".join(text)


def wrapped(text: str) -> str:
    return "\n".join(text[start : start + 7] for start in range(0, len(text), 7))


def zero_width(text: str) -> str:
    return "\u200b".join(text)


def struck_through(text: str) -> str:
    return "".join(character + "\u0336" for character in text)


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def filled(text: str) -> str:
    return "\u3164".join(text)


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def base64_standard(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def base64_lines(text: str) -> str:
    return wrapped(base64_standard("so it begins " + text + " and so it ends"))


def base64_url(text: str) -> str:
    return "id" + base64.urlsafe_b64encode(b"\xff\xfe?>" + text.encode()).decode().rstrip("=")


def hexed(text: str) -> str:
    return text.encode().hex()


def hexed_off(text: str) -> str:
    return "f" + text.encode().hex()


def hexed_apart(text: str) -> str:
    return text.encode().hex(" ").upper()


def backwards(text: str) -> str:
    return text[::-1]


GAPS = (spaced, wrapped, zero_width, struck_through, full_width, filled)
ENCODINGS = (
    percent,
    quote,
    base64_standard,
    base64_lines,
    base64_url,
    hexed,
    hexed_off,
    hexed_apart,
    backwards,
)


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("kind", "token"), [*(TOKENS | PLAIN_ONLY).items(), *VARIANTS])
def test_a_shape_is_found_as_it_is(kind: str, token: str, carrier: Callable[[str], str]) -> None:
    found = find_secret(carrier(token), ())
    assert found is not None
    assert found.kind == kind
    assert found.where.startswith("line ")


@pytest.mark.parametrize("disguise", GAPS + ENCODINGS)
@pytest.mark.parametrize("kind", TOKENS)
def test_a_shape_is_found_in_every_disguise(kind: str, disguise: Callable[[str], str]) -> None:
    found = find_secret(f"Please store this: {disguise(TOKENS[kind])}. Thanks", ())
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("disguise", [zero_width, struck_through, percent, base64_standard, hexed])
@pytest.mark.parametrize("kind", PLAIN_ONLY)
def test_shapes_that_need_their_spaces_are_found_in_the_disguises_that_leave_them(
    kind: str, disguise: Callable[[str], str]
) -> None:
    found = find_secret(disguise("it is " + PLAIN_ONLY[kind] + " today"), ())
    assert found is not None
    assert found.kind == kind


@pytest.mark.parametrize("disguise", [str, *GAPS, *ENCODINGS])
@pytest.mark.parametrize("value", ["canary-8842", "473829", "correct horse battery", "größe-ñandú-42"])
def test_a_known_value_is_found_in_every_disguise(value: str, disguise: Callable[[str], str]) -> None:
    found = find_secret(f"Ha: {disguise(value)}! Bye", ["something-else", value])
    assert found is not None
    assert found.kind == "known_value"


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_texts_are_left_alone(text: str) -> None:
    assert find_secret(text, ["canary-8842", "473829"]) is None


def test_a_known_value_too_short_to_tell_apart_is_not_searched_for() -> None:
    assert find_secret("the abcde of it", ["abcde"]) is None
    assert find_secret("the abcdef of it", ["abcdef"]) is not None
    assert find_secret("abcd", ["a b c d"]) is None


@pytest.mark.parametrize("between", [".", " - ", "_", '", "', "`|`", "\n* "])
def test_a_strong_value_is_found_through_punctuation(between: str) -> None:
    value = "heron-4417-Lantern"
    found = find_secret("It is " + between.join(value), [value])
    assert found == Found("known_value", "punctuation")


def test_a_weak_value_is_not_looked_for_through_punctuation() -> None:
    assert find_secret("4-7-3-8-2-9", ["473829"]) is None
    assert find_secret("(a, b, c), (d, e, f)", ["abcdef"]) is None


def test_a_space_written_as_a_query_does_is_found() -> None:
    found = find_secret("?q=correct+horse+battery%21", ["correct horse battery!"])
    assert found == Found("known_value", "percent-encoded")


@pytest.mark.parametrize("disguise", [str, *GAPS, *ENCODINGS])
def test_a_canary_comes_before_all_other_secrets(disguise: Callable[[str], str]) -> None:
    bait = TOKENS["github_token"]
    text = f"{TOKENS['stripe_key']} other-value-77 {disguise(bait)}"
    found = find_secret(text, ["other-value-77"], [bait])
    assert found is not None
    assert (found.kind, found.canary) == ("canary", "bait")


def test_the_answer_says_where_and_never_what() -> None:
    token = TOKENS["github_token"]
    assert find_secret(f"one\ntwo {token}", ()) == Found("github_token", "line 2, character 5")
    assert find_secret(token, ()) == Found("github_token", "line 1, character 1")
    assert find_secret(spaced(token), ()) == Found("github_token", "white space")
    assert find_secret(zero_width(token), ()) == Found("github_token", "invisible characters")
    assert find_secret(percent(token), ()) == Found("github_token", "percent-encoded")
    assert find_secret(base64_standard(token), ()) == Found("github_token", "base64")
    assert find_secret(hexed(token), ()) == Found("github_token", "hex")
    assert find_secret(backwards(token), ()) == Found("github_token", "reversed")
    assert find_secret("one\nxy canary-1", ["canary-1"]) == Found("known_value", "line 2, character 4")


def test_of_several_secrets_the_answer_is_always_the_same_one() -> None:
    values = [f"canary-{number:04}" for number in range(50)]
    text = " ".join(values)
    assert {find_secret(text, order) for order in (values, values[::-1], set(values))} == {
        Found("known_value", "line 1, character 1")
    }


def test_prose_that_speaks_of_a_prefix_hides_no_token_behind_it() -> None:
    token = spaced(TOKENS["github_token"])
    found = find_secret(f"ghp_ tokens have been rotated by the whole team on call: {token}", ())
    assert found == Found("github_token", "white space")


def test_a_secret_at_the_very_end_of_the_longest_text_is_found() -> None:
    token = TOKENS["anthropic_key"]
    for disguise in (str, zero_width, percent, base64_standard, hexed, backwards):
        tail = disguise(token)
        assert find_secret("a" * (TEXT_LIMIT - len(tail) - 1) + " " + tail, ()) is not None
        assert find_secret("/" * (TEXT_LIMIT - len(tail)) + tail, ()) is not None


@UNTIMED
@given(st.text(st.characters(), max_size=200), st.lists(st.text(st.characters(), max_size=12), max_size=3))
def test_any_text_gets_an_answer(text: str, values: list[str]) -> None:
    answer = find_secret(text, values)
    assert answer == find_secret(text, values)
    if any(len(value) >= KNOWN_LENGTH and value in text for value in values):
        assert answer is not None


@UNTIMED
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.sampled_from(ENCODINGS))
def test_no_surroundings_hide_a_token(before: str, disguise: Callable[[str], str]) -> None:
    assert find_secret(before + disguise(TOKENS["governor_token"]) + " end", ()) is not None
