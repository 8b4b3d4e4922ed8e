"""The operator's code in the hands of somebody who guesses, watches or waits (P3)."""

import stat
from collections.abc import Callable
from datetime import timedelta

import pyotp
import pytest
from governor_pair import Governor, GovernorPair

from governor.errors import CodeError, LocalError
from governor.store.tables import OperatorCode
from governor.store.unit_of_work import Store
from governor.supervision.operator_code import STEP_S, check_code, enroll, enroll_anew, secret_file, unlock

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
OTHER = "KRSXG5CTMVRXEZLUKRSXG5CTMVRXEZLU"


@pytest.fixture
def governor(pair: GovernorPair) -> Governor:
    enroll(pair.max.store, pair.max.home.path, pair.clock.now(), lambda: SECRET)
    return pair.max


def code(governor: Governor, *, steps: int = 0, secret: str = SECRET) -> str:
    """Return the code that is valid now, or so many half minutes from now."""
    return pyotp.TOTP(secret).generate_otp(int(governor.clock.now().timestamp()) // STEP_S + steps)


def wrong(governor: Governor) -> str:
    """Return a code that no step near now has."""
    near = {code(governor, steps=step) for step in range(-3, 4)}
    return next(f"{number:06}" for number in range(10) if f"{number:06}" not in near)


def check(governor: Governor, given: str, store: Store | None = None) -> None:
    check_code(store or governor.store, governor.home.path, governor.clock.now(), given)


def guess(governor: Governor, times: int) -> None:
    for _ in range(times):
        with pytest.raises(CodeError, match="Wrong code"):
            check(governor, wrong(governor))


def test_without_enrolment_no_code_counts(pair: GovernorPair) -> None:
    for given in ("000000", "", code(pair.max)):
        with pytest.raises(CodeError, match="governor operator enroll"):
            check(pair.max, given)


def test_the_secret_is_a_private_file_and_stands_in_no_row(governor: Governor) -> None:
    path = secret_file(governor.home.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().strip() == SECRET
    assert all(SECRET not in str(rows) for rows in governor.everything().values())


def test_a_code_counts_once(governor: Governor) -> None:
    given = code(governor)
    check(governor, given)
    with pytest.raises(CodeError, match="used before"):
        check(governor, given)
    governor.clock.advance(seconds=30)
    check(governor, code(governor))


def test_an_older_code_does_not_count_after_a_newer_one(governor: Governor) -> None:
    older = code(governor)
    check(governor, code(governor, steps=1))
    with pytest.raises(CodeError, match="used before"):
        check(governor, older)


@pytest.mark.parametrize(("steps", "counts"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_code_counts_for_a_step_before_and_after_its_own(
    governor: Governor, steps: int, counts: bool
) -> None:
    given = code(governor, steps=steps)
    if counts:
        check(governor, given)
    else:
        with pytest.raises(CodeError, match="Wrong code"):
            check(governor, given)


@pytest.mark.parametrize(
    "given",
    [
        "",
        " ",
        "12345",
        "1234567",
        "\u0661\u0662\u0663\u0664\u0665\u0666",
        "\uff10" * 6,
        "-00001",
        "0x0000",
        "\x00" * 6,
    ],
)
def test_nothing_but_six_digits_is_a_code(governor: Governor, given: str) -> None:
    with pytest.raises(CodeError, match="Wrong code"):
        check(governor, given)


def test_five_wrong_codes_lock_for_ten_minutes_then_an_hour_then_until_a_go_in_telegram(
    governor: Governor,
) -> None:
    for locked_for in (timedelta(minutes=10), timedelta(hours=1)):
        guess(governor, 5)
        governor.clock.advance(seconds=(locked_for - timedelta(seconds=1)).total_seconds())
        with pytest.raises(CodeError, match="locked until"):
            check(governor, code(governor))
        governor.clock.advance(seconds=1)
    guess(governor, 5)
    governor.clock.advance(days=400)
    with pytest.raises(CodeError, match="until a GO in Telegram"):
        check(governor, code(governor))
    assert len(governor.audit("code_locked")) == 3
    assert len(governor.audit("code_refused")) == 15  # tries against the lock are none
    assert len([notice for notice in governor.notices() if "locked until" in notice]) == 3

    with governor.store.begin() as uow:
        unlock(uow)
    check(governor, code(governor))


def test_a_right_code_begins_the_count_anew(governor: Governor) -> None:
    guess(governor, 4)
    check(governor, code(governor))
    guess(governor, 4)
    governor.clock.advance(seconds=30)
    check(governor, code(governor))


def test_a_code_that_is_tried_again_counts_as_a_wrong_one(governor: Governor) -> None:
    given = code(governor)
    check(governor, given)
    for _ in range(5):
        with pytest.raises(CodeError):
            check(governor, given)
    governor.clock.advance(seconds=30)
    with pytest.raises(CodeError, match="locked until"):
        check(governor, code(governor))


def test_use_and_lock_outlive_a_restart_and_are_shared_by_all_processes(governor: Governor) -> None:
    given = code(governor)
    check(governor, given)
    other = Store(governor.home.store.path)  # another process of this host: the console
    with pytest.raises(CodeError, match="used before"):
        check(governor, given, other)
    for turn in range(4):
        with pytest.raises(CodeError):
            check(governor, wrong(governor), other if turn % 2 else governor.store)
    governor.restart()
    for store in (other, governor.store):
        with pytest.raises(CodeError, match="locked until"):
            check(governor, code(governor, steps=1), store)
    other.close()


def test_a_clock_that_goes_back_makes_no_old_code_new(governor: Governor) -> None:
    given = code(governor)
    check(governor, given)
    governor.clock.sleep(seconds=-30)
    with pytest.raises(CodeError):
        check(governor, given)


def test_enrolment_happens_once_and_again_only_with_a_code(governor: Governor) -> None:
    home, now = governor.home.path, governor.clock.now()
    with pytest.raises(LocalError, match="enrolled already"):
        enroll(governor.store, home, now, lambda: OTHER)
    with pytest.raises(CodeError):
        enroll_anew(governor.store, home, now, wrong(governor), lambda: OTHER)
    assert secret_file(home).read_text().strip() == SECRET
    enroll_anew(governor.store, home, now, code(governor), lambda: OTHER)
    governor.clock.advance(seconds=60)
    with pytest.raises(CodeError, match="Wrong code"):
        check(governor, code(governor))
    check(governor, code(governor, secret=OTHER))
    assert len(governor.rows(OperatorCode)) == 1


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\xff\xfe")])
def test_a_secret_that_cannot_be_read_lets_nobody_in(
    governor: Governor, damage: Callable[..., object]
) -> None:
    given = code(governor)
    damage(secret_file(governor.home.path))
    with pytest.raises(CodeError):
        check(governor, given)


def test_no_error_repeats_a_code_or_the_secret(governor: Governor) -> None:
    for given in (wrong(governor), code(governor, steps=9)):
        with pytest.raises(CodeError) as error:
            check(governor, given)
        assert given not in error.value.message
        assert SECRET not in error.value.message
