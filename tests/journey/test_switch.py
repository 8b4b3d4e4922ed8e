"""What opens a link, what closes it, and what crosses to the other side of that (P3)."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from governor_pair import GovernorPair

from governor.errors import RefusedError
from governor.message import PauseReason, Switch
from governor.store.tables import ControlWebhook, Peer

Make = Callable[..., GovernorPair]


@pytest.mark.parametrize(
    "looser",
    [
        {"limits": {"messages": 60}},
        {"limits": {"watch_for": timedelta(minutes=6)}},
        {"limits": {"hold_for": timedelta(minutes=11)}},
        {"reader": {"url_hosts": ["a.example"]}},
        {"supervision": {"telegram": {"operators": [7]}}},
        {"tls": "proxy"},
        {"links": {"eva-host": {"direction": "out"}}},
        {"links": {}},
    ],
    ids=lambda looser: ".".join(map(str, next(iter(looser.items())))),
)
async def test_looser_settings_close_the_links_at_the_next_start(
    make_pair: Make, looser: dict[str, object]
) -> None:
    pair = make_pair(links={"eva-host": {"direction": "in"}})
    pair.max.go("eva-host")
    pair.max.restart()
    assert pair.max.link("eva-host").switch == Switch.RUNNING
    pair.max.restart(**looser)
    assert pair.max.link("eva-host").reason == PauseReason.SETTINGS_LOOSENED
    pair.max.go("eva-host")
    pair.max.restart()
    assert pair.max.link("eva-host").switch == Switch.RUNNING  # told once


async def test_tighter_settings_close_nothing(pair: GovernorPair) -> None:
    pair.go()
    pair.max.restart(limits={"messages": 10}, links={"eva-host": {"direction": "out"}})
    assert pair.max.link("eva-host").switch == Switch.RUNNING


async def test_a_file_named_stop_closes_and_while_it_lies_there_nothing_opens(pair: GovernorPair) -> None:
    pair.go()
    (pair.max.home.path / "STOP").touch()
    pair.max.tick()
    assert pair.max.link("eva-host").switch == Switch.STOPPED
    assert pair.max.link("eva-host").acted_by == "file STOP"
    (answer,) = pair.max.go("eva-host")
    assert (answer.switch, answer.refusal) == (Switch.STOPPED, "cause_persists")
    assert pair.max.audit("go_refused")[-1].detail == {"by": "tester", "cause1": "stop_file"}
    (pair.max.home.path / "STOP").unlink()
    assert pair.max.go("eva-host")[0].switch == Switch.RUNNING


async def test_only_a_go_with_its_name_opens_a_new_link(pair: GovernorPair) -> None:
    (answer,) = pair.max.go()
    assert (answer.switch, answer.refusal) == (Switch.PAUSED, "awaits_first_go")
    pair.max.stop("eva-host")
    assert pair.max.go()[0].refusal == "awaits_first_go"
    assert pair.max.go("eva-host")[0].switch == Switch.RUNNING


async def test_an_old_button_and_a_go_said_before_the_closing_open_nothing(pair: GovernorPair) -> None:
    pair.go()
    version = pair.max.link("eva-host").version
    said_at = pair.clock.now()
    pair.clock.advance(seconds=5)
    pair.max.stop("eva-host")
    assert pair.max.go("eva-host", version=version)[0].refusal == "old_version"
    assert pair.max.go("eva-host", said_at=said_at)[0].refusal == "before_closing"
    button = pair.max.link("eva-host").version
    assert pair.max.go("eva-host", version=button)[0].switch == Switch.RUNNING
    pair.max.stop("eva-host")
    assert pair.max.go("eva-host", version=button)[0].refusal == "old_version"  # pressed again later


async def test_no_go_opens_an_unconfirmed_pairing(make_pair: Make) -> None:
    pair = make_pair()
    with pair.max.store.begin() as uow:
        peer = uow.get(Peer, "eva-host")
        assert peer is not None
        peer.state = "offered"
    assert pair.max.go("eva-host")[0].refusal == "unconfirmed"


async def test_the_stop_of_a_peer_stops_that_link_and_no_other(pair: GovernorPair) -> None:
    zoe = pair.third()
    pair.go()
    pair.eva.stop("max-host")
    await pair.settle()
    stopped = pair.max.link("eva-host")
    assert (stopped.switch, stopped.acted_by) == (Switch.STOPPED, "peer eva-host")
    assert pair.max.link("zoe-host").switch == Switch.RUNNING
    with pytest.raises(RefusedError, match="STOP"):
        pair.max.send("eva", "v1.0.0")
    pair.max.send("zoe", "v1.0.0")
    await pair.settle()
    assert len(zoe.inbox()) == 1
    assert [row.type for row in pair.max.rows(ControlWebhook) if row.type == "stop"] == []  # none in answer


async def test_go_takes_back_our_own_stop_that_has_not_left(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.cut = True
    pair.max.stop("eva-host")
    await pair.settle()
    pair.max.go("eva-host")
    pair.max.wire.cut = False
    pair.clock.advance(seconds=10)
    await pair.settle()
    assert pair.eva.link("max-host").switch == Switch.RUNNING
    assert {row.type: row.state for row in pair.max.rows(ControlWebhook)} == {
        "stop": "cancelled",
        "hello": "done",
    }


async def test_a_go_is_never_passed_on(pair: GovernorPair) -> None:
    pair.max.go("eva-host")
    await pair.settle()
    assert pair.eva.audit("control_taken")[0].detail == {"type": "hello"}
    assert pair.eva.link("max-host").reason == PauseReason.AWAITING_FIRST_GO


async def test_a_stop_that_never_arrives_is_told(pair: GovernorPair) -> None:
    pair.go()
    await pair.settle()
    pair.max.wire.cut = True
    pair.max.stop("eva-host")
    await pair.settle()
    pair.clock.advance(minutes=1)
    await pair.settle()
    assert any("STOP did not reach eva-host" in notice for notice in pair.max.notices())


async def test_a_hello_makes_the_peer_retry_at_once(pair: GovernorPair) -> None:
    pair.max.go("eva-host")
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).next_attempt_at == pair.clock.now() + timedelta(seconds=30)
    pair.eva.go("max-host")
    await pair.settle()  # the clock has not moved
    assert pair.max.message(sent.id).state == "accepted"
