import sys

import pytest

from governor.inbound.reader_locks import LOCKS, Sandbox, described, locks_needed
from reader.sandbox.lock import ANYWHERE, STEPS


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_required_is_all_that_the_platform_is_known_for(platform: str) -> None:
    assert locks_needed(Sandbox.REQUIRED, platform) == {name for name, _ in STEPS[platform]}


@pytest.mark.parametrize("platform", ["linux", "darwin", "freebsd14"])
def test_best_is_less_yet_never_nothing(platform: str) -> None:
    least = locks_needed(Sandbox.BEST, platform)
    assert "limits" in least
    assert least < locks_needed(Sandbox.REQUIRED, platform)
    assert least.isdisjoint({"landlock", "seccomp", "sandbox_exec"})


def test_an_unknown_platform_has_too_few_locks_unless_told() -> None:
    there = {name for name, _ in ANYWHERE}
    assert not locks_needed(Sandbox.REQUIRED, "freebsd14") <= there
    assert locks_needed(Sandbox.BEST, "freebsd14") <= there


def test_this_platform_is_the_one_asked_about() -> None:
    for sandbox in Sandbox:
        assert locks_needed(sandbox) == locks_needed(sandbox, sys.platform)


def test_locks_are_described_with_their_degree_and_only_known_ones() -> None:
    assert described({"limits": 1, "landlock": 7, "</log> hello": 1}) == "limits, landlock 7"
    assert all(LOCKS.values())
