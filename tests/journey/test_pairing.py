"""Pairing: what a line may bring about, and what it may not (P3, P7)."""

from datetime import timedelta

import pytest
from governor_pair import Governor, GovernorPair, pair_up

from governor.directory.pairing import accept_offer, confirm, make_offer, own_phrase, peer_phrase
from governor.errors import LocalError, NotYoursError, RefusedError
from governor.message import PauseReason
from governor.store.tables import Link, Peer, PeerKey


@pytest.fixture
def strangers(make_pair: object) -> GovernorPair:
    pair: GovernorPair = make_pair(paired=False)  # type: ignore[operator]
    return pair


def offer(governor: Governor, *, public_tls: bool = False) -> str:
    with governor.store.begin() as uow:
        home = governor.home
        return make_offer(
            uow, governor.host, home.keyring, home.url, governor.clock.now(), public_tls=public_tls
        )


def accept(governor: Governor, line: str, *, loopback: bool = True) -> object:
    with governor.store.begin() as uow:
        return accept_offer(uow, governor.host, line, governor.clock.now(), loopback=loopback)


def test_both_sides_see_the_same_two_phrases(strangers: GovernorPair) -> None:
    at_eva = accept(strangers.eva, offer(strangers.max))
    at_max = accept(strangers.max, offer(strangers.eva))
    assert (at_eva.ours, at_eva.theirs) == (at_max.theirs, at_max.ours)
    assert at_eva.ours != at_eva.theirs
    with strangers.max.store.reading() as uow:
        assert own_phrase(uow) == at_max.ours
        assert peer_phrase(uow, "eva-host") == at_max.theirs
        with pytest.raises(NotYoursError):
            peer_phrase(uow, "nobody")


async def test_until_it_is_confirmed_a_link_is_of_no_use(strangers: GovernorPair) -> None:
    accept(strangers.max, offer(strangers.eva))
    assert strangers.max.go("eva-host")[0].refusal == "unconfirmed"
    with pytest.raises(RefusedError) as error:
        strangers.max.send("eva", "v1.0.0")
    assert error.value.reason == "unknown_recipient"
    with strangers.max.store.begin() as uow:
        assert confirm(uow, "eva-host", strangers.clock.now())
        assert not confirm(uow, "eva-host", strangers.clock.now())
    assert strangers.max.link("eva-host").reason == PauseReason.AWAITING_FIRST_GO


def test_the_same_line_twice_is_one_peer(strangers: GovernorPair) -> None:
    line = offer(strangers.eva)
    assert accept(strangers.max, line).new
    assert not accept(strangers.max, line).new
    assert (
        len(strangers.max.rows(Peer))
        == len(strangers.max.rows(PeerKey))
        == len(strangers.max.rows(Link))
        == 1
    )


def test_a_second_peer_of_the_same_name_is_refused(pair: GovernorPair) -> None:
    other = Governor(pair.folder / "eva2", "eva-host", "eva", pair.clock, None)
    pair.all.append(other)
    with pytest.raises(LocalError, match="governor revoke eva-host"):
        accept(pair.max, offer(other))
    assert pair.max.link("eva-host").version == 1


def test_a_peer_of_our_own_name_is_refused(strangers: GovernorPair) -> None:
    other = Governor(strangers.folder / "max2", "max-host", "max", strangers.clock, None)
    strangers.all.append(other)
    with pytest.raises(LocalError, match="another name"):
        accept(strangers.max, offer(other))


def test_two_names_for_one_key_are_refused(pair: GovernorPair) -> None:
    with pair.max.store.begin() as uow:
        row = uow.one(PeerKey)
        assert row is not None
        uow.add(Peer(name="other", state="confirmed", url="https://x", agents=[], paired_at=pair.clock.now()))
        row.peer = "other"
        peer = uow.get(Peer, "eva-host")
        assert peer is not None
        peer.state = "revoked"
    with pytest.raises(LocalError, match="belongs to peer other"):
        accept(pair.max, offer(pair.eva))


def test_a_line_is_good_for_a_day(strangers: GovernorPair) -> None:
    line = offer(strangers.eva)
    strangers.clock.advance(hours=24)
    with pytest.raises(LocalError, match="expired"):
        accept(strangers.max, line)


def test_a_governor_without_an_agent_has_nothing_to_offer(strangers: GovernorPair) -> None:
    from governor.directory.agents import remove  # noqa: PLC0415 - only here

    with strangers.max.store.begin() as uow:
        remove(uow, "max", strangers.clock.now())
    with pytest.raises(LocalError, match="governor agent add"):
        offer(strangers.max)


def test_confirming_nobody_is_refused(strangers: GovernorPair) -> None:
    with pytest.raises(NotYoursError, match="governor peers"), strangers.max.store.begin() as uow:
        confirm(uow, "eva-host", strangers.clock.now())


def test_pairing_anew_with_the_same_key_begins_closed(pair: GovernorPair) -> None:
    pair.go()
    pair.max.send("eva", "v1.0.0")
    pair.max.revoke("eva-host")
    pair.eva.revoke("max-host")
    pair.clock.advance(seconds=1)
    pair_up(pair.max, pair.eva)
    link = pair.max.link("eva-host")
    assert (link.reason, link.out_used, link.watched_until) == (PauseReason.AWAITING_FIRST_GO, 0, None)
    assert pair.max.go()[0].refusal == "awaits_first_go"
    assert timedelta(0) < pair.clock.now() - pair.max.messages()[0].created_at


def test_revoking_nobody_is_refused(pair: GovernorPair) -> None:
    with pytest.raises(NotYoursError):
        pair.max.revoke("nobody")
