from datetime import UTC, datetime, timedelta

import pytest

from governor.supervision.freshness import (
    FRESH_FOR,
    Stale,
    active_at,
    pressed_go,
    queue_empty_at,
    typed_go,
)

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
HOLD = timedelta(seconds=25)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


@pytest.mark.parametrize(
    ("age", "stale"),
    [
        (0, None),
        (60, None),
        (61, Stale.TOO_OLD),
        (86_400, Stale.TOO_OLD),
        (-60, None),
        (-61, Stale.CLOCKS_DIFFER),
    ],
)
def test_a_typed_go_counts_for_sixty_seconds(age: float, stale: Stale | None) -> None:
    assert typed_go(NOW - seconds(age), NOW) is stale


@pytest.mark.parametrize(
    ("said", "closed", "stale"),
    [
        (5, 5, None),
        (6, 5.999, None),
        (5, 5.001, Stale.BEFORE_CLOSING),  # said in the second of the closing: perhaps before it
        (4, 5, Stale.BEFORE_CLOSING),
    ],
)
def test_a_go_said_before_the_closing_does_not_mean_it(
    said: float, closed: float, stale: Stale | None
) -> None:
    assert typed_go(NOW + seconds(said), NOW + seconds(10), NOW + seconds(closed)) is stale


@pytest.mark.parametrize(
    ("ago", "stale"),
    [(None, Stale.NOT_POLLED), (0, None), (60, None), (61, Stale.NOT_POLLED), (-1, Stale.NOT_POLLED)],
)
def test_a_press_is_dated_by_the_poll_before_it(ago: float | None, stale: Stale | None) -> None:
    assert pressed_go(None if ago is None else NOW - seconds(ago), NOW) is stale


@pytest.mark.parametrize(
    ("took", "full", "proves"),
    [
        (0, False, True),
        (25, False, True),
        (40, False, True),
        (41, False, False),  # the answer lay somewhere while we slept
        (-1, False, False),  # the clock went back
        (1, True, False),  # more may be waiting
    ],
)
def test_what_a_poll_proves(took: float, *, full: bool, proves: bool) -> None:
    ended = NOW + seconds(took)
    assert queue_empty_at(NOW, ended, HOLD, full=full) == (ended if proves else None)


def test_two_polls_that_prove_leave_room_for_a_press_to_count() -> None:
    assert HOLD + seconds(15) <= FRESH_FOR


def test_activity_is_dated_by_itself_but_never_in_the_future() -> None:
    assert active_at(NOW - seconds(200), NOW) == NOW - seconds(200)
    assert active_at(NOW + seconds(30), NOW) == NOW
