import pytest

from reader.urls import defang, host_of, is_shown_safely

KNOWN = frozenset({"docs.example.org"})


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://docs.example.org/a.b?c=d.e#f", "docs.example.org"),
        ("HTTPS://Docs.Example.ORG:8443/", "docs.example.org"),
        ("https://docs.example.org@evil.example/", "evil.example"),
        ("https://docs.example.org:x@evil.example:1/", "evil.example"),
        ("https://evil.example?docs.example.org", "evil.example"),
        ("https://evil.example#@docs.example.org/", "evil.example"),
        ("docs.example.org/path", "docs.example.org"),
        ("docs.example.org.", "docs.example.org"),
        ("//evil.example/x", "evil.example"),
    ],
)
def test_host(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://evil.example/a.b", "hxxps://evil[.]example/a.b"),
        ("HTTP://evil.example", "hxxp://evil[.]example"),
        ("evil.example/x", "evil[.]example/x"),
        ("ftp://evil/x", "ftp[:]//evil/x"),
        ("mb://://", "mb[:]//[:]//"),
        ("//evil.example/x.y", "//evil[.]example/x.y"),
        ("\\\\evil.example\\a.b", "\\\\evil[.]example\\a.b"),
        ("http://localhost:1/", "hxxp://localhost:1/"),
        ("https://me@evil.example?q=1.2", "hxxps://me@evil[.]example?q=1.2"),
        ("https://a.example/?u=https://b.example", "hxxps://a[.]example/?u=https[:]//b.example"),
    ],
)
def test_defanged(url: str, shown: str) -> None:
    assert defang(url) == shown
    assert defang(shown) == shown
    assert not is_shown_safely(url, KNOWN)
    assert is_shown_safely(shown, KNOWN)


def test_an_allowed_host_is_exact() -> None:
    assert is_shown_safely("https://docs.example.org/x", KNOWN)
    assert not is_shown_safely("https://sub.docs.example.org/x", KNOWN)
    assert not is_shown_safely("https://docs.example.org.evil.example/x", KNOWN)
    assert not is_shown_safely("https://docs.example.org@evil.example/x", KNOWN)
