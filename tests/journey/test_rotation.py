"""A change of keys and certificate: announced by the old key, proven by the new one, both good for a while (P7)."""

from collections.abc import Callable

import httpx
import pytest
from crafted import control, message, own_key, signed
from governor_pair import Governor, GovernorPair, pair_up

from governor.directory.identity import known_keys
from governor.directory.keyring import NewKeys
from governor.directory.own_keys import OVERLAP, start_rotation
from governor.errors import ConfigError, LocalError
from governor.message import PauseReason, Switch
from governor.store.tables import ControlWebhook, HostKey, PeerKey
from governor.supervision.switching import note_activity
from governor.webhook.certificates import certificate_fingerprint
from governor.webhook.incoming import WireType
from governor.webhook.rotation import rotate_data
from governor.webhook.signing import SigningKey


def rotate(governor: Governor) -> tuple[NewKeys, list[str]]:
    now = governor.clock.now()
    keys = governor.home.keyring.make(governor.host.name, [f"{governor.host.name}.example"], now)
    with governor.store.begin() as uow:
        return keys, start_rotation(uow, governor.host, governor.home.keyring, keys, now)


def key_states(governor: Governor) -> dict[str, str]:
    return {row.fingerprint: row.state for row in governor.rows(HostKey)}


def counting(governor: Governor) -> set[str]:
    with governor.store.reading() as uow:
        return {key.fingerprint for key in known_keys(uow, governor.clock.now())}


async def test_a_rotation_from_end_to_end(pair: GovernorPair) -> None:
    pair.go()
    old_key, old_certificate = own_key(pair.max), pair.max.certificate
    old = old_key.verify_key.fingerprint
    queued = pair.max.send("eva", "v1.0.0")  # made with the old key
    pair.max.wire.cut = True
    await pair.settle()
    keys, told = rotate(pair.max)
    assert told == ["eva-host"]
    pair.max.tick()
    assert key_states(pair.max) == {old: "active", keys.fingerprint: "incoming"}  # not before the peer has it

    pair.max.wire.cut = False
    pair.clock.advance(seconds=2)
    await pair.deliver()
    link = pair.eva.link("max-host")
    assert (link.switch, link.reason) == (Switch.PAUSED, PauseReason.KEY_CHANGED)
    assert any("new key" in notice for notice in pair.eva.notices())
    assert counting(pair.eva) == {old, keys.fingerprint}

    assert pair.max.tick()
    assert key_states(pair.max) == {old: "retiring", keys.fingerprint: "active"}
    assert pair.max.certificate == certificate_fingerprint(keys.certificate) != old_certificate
    assert own_key(pair.max).verify_key.fingerprint == keys.fingerprint

    pair.eva.go("max-host")
    pair.pass_time(seconds=31)
    await pair.settle()
    assert pair.max.message(queued.id).state == "accepted"
    fresh = pair.max.send("eva", "v1.0.1")
    answer = pair.eva.send("max", "v2.0.0")  # to the new key
    await pair.settle()
    assert pair.max.message(fresh.id).state == "accepted"
    assert pair.eva.message(answer.id).state == "accepted"
    assert {item.id for item in pair.eva.inbox()} == {queued.id, fresh.id}

    pair.clock.advance(days=2)
    pair.max.tick()
    assert key_states(pair.max)[old] == "retired"
    with pytest.raises(ConfigError):
        pair.max.home.keyring.signing_key(old)  # its file is gone, and so is that of TLS
    assert not pair.max.home.keyring.tls_file(old).exists()
    assert counting(pair.eva) == {keys.fingerprint}
    pair.eva.go("max-host")
    body = message(pair.max, pair.eva)
    headers = signed(pair.max, body, key=old_key) | {"governor-key": old}
    answer_ = await pair.eva.hook(headers, body, pair.max.certificate)
    assert answer_.status_code == 401
    assert pair.max.verify()


async def test_both_keys_and_both_certificates_count_during_the_overlap(pair: GovernorPair) -> None:
    pair.go()
    old_key, old_certificate = own_key(pair.max), pair.max.certificate
    body_of_old = message(pair.max, pair.eva)
    rotate(pair.max)
    await pair.settle()
    pair.max.tick()
    pair.eva.go("max-host")
    body_of_new = message(pair.max, pair.eva)
    old_headers = signed(pair.max, body_of_old, "m_1", key=old_key) | {
        "governor-key": old_key.verify_key.fingerprint
    }
    for certificate in (old_certificate, pair.max.certificate):
        for headers, body in (
            (old_headers, body_of_old),
            (signed(pair.max, body_of_new, "m_2"), body_of_new),
        ):
            assert (await pair.eva.hook(headers, body, certificate)).status_code == 202


async def test_the_old_key_cannot_rotate_again(pair: GovernorPair) -> None:
    pair.go()
    thief_has = own_key(pair.max)
    rotate(pair.max)
    await pair.settle()
    pair.eva.go("max-host")
    taken = key_of_mallory(pair)
    assert (await offered(pair, taken, by=thief_has)).status_code == 422
    assert taken.verify_key.fingerprint not in {row.fingerprint for row in pair.eva.rows(PeerKey)}
    assert pair.eva.link("max-host").switch == Switch.RUNNING
    assert pair.eva.audit("webhook_refused")[0].reason == "rotation"


def key_of_mallory(pair: GovernorPair) -> SigningKey:
    keys = pair.max.home.keyring.make("max-host", ["max-host.example"], pair.clock.now())
    return pair.max.home.keyring.signing_key(keys.fingerprint)


async def offered(
    pair: GovernorPair,
    new: SigningKey,
    *,
    by: SigningKey,
    proven_by: SigningKey | None = None,
    certificate: bytes | None = None,
) -> httpx.Response:
    """Offer a key to eva's governor as max's, signed by one key and proven by another."""
    if certificate is None:
        certificate = pair.max.home.keyring.make(
            "max-host", ["max-host.example"], pair.clock.now()
        ).certificate
    old = by.verify_key.fingerprint
    data = rotate_data(old, new, certificate, pair.clock.now() + OVERLAP)
    if proven_by is not None:
        data |= {"proof": rotate_data(old, proven_by, certificate, pair.clock.now() + OVERLAP)["proof"]}
    body = control(pair.max, pair.eva, WireType.ROTATE, data)
    current = own_key(pair.max).verify_key.fingerprint
    body = body.replace(f'"from":"{current}"'.encode(), f'"from":"{old}"'.encode())
    headers = signed(pair.max, body, "w_rotate", key=by) | {"governor-key": old}
    return await pair.eva.hook(headers, body, pair.max.certificate)


async def test_a_forged_proof_changes_nothing(pair: GovernorPair) -> None:
    pair.go()
    mine = own_key(pair.max)
    stolen = key_of_mallory(pair)  # announced as one's own, without holding it
    answer = await offered(pair, stolen, by=mine, proven_by=mine)
    assert answer.status_code == 422
    assert pair.eva.link("max-host").switch == Switch.RUNNING
    assert (await offered(pair, stolen, by=mine)).status_code == 202  # the same with the right proof


async def test_a_damaged_certificate_changes_nothing(pair: GovernorPair) -> None:
    pair.go()
    answer = await offered(pair, key_of_mallory(pair), by=own_key(pair.max), certificate=b"no certificate")
    assert answer.status_code == 422
    assert len(pair.eva.rows(PeerKey)) == 1


async def test_the_key_of_another_peer_is_not_taken(pair: GovernorPair) -> None:
    pair.go()
    answer = await offered(pair, own_key(pair.max), by=own_key(pair.max))
    assert answer.status_code == 422


async def test_the_switch_over_comes_at_the_latest_at_the_end_of_the_overlap(pair: GovernorPair) -> None:
    zoe = pair.third()
    pair.go()
    keys, told = rotate(pair.max)
    assert told == ["eva-host", "zoe-host"]
    zoe.peer_app = pair.eva.peer_app  # zoe's governor is away: what comes is not for it
    await pair.settle()
    pair.max.tick()
    assert key_states(pair.max)[keys.fingerprint] == "incoming"
    pair.clock.advance(hours=24)
    pair.max.tick()
    assert key_states(pair.max)[keys.fingerprint] == "active"
    with pytest.raises(LocalError, match="under way"):
        rotate(pair.max)


async def test_a_message_of_the_last_moment_before_the_switch_over_still_arrives(pair: GovernorPair) -> None:
    zoe = pair.third()
    pair.go()
    rotate(pair.max)
    zoe.peer_app = pair.eva.peer_app
    await pair.settle()
    pair.clock.advance(hours=24, seconds=-5)
    pair.go()
    pair.max.wire.cut = True
    late = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    pair.clock.advance(seconds=10)
    pair.max.tick()
    pair.max.wire.cut = False
    pair.clock.advance(seconds=60)
    await pair.settle()
    assert pair.max.message(late.id).state == "accepted"


async def test_a_peer_that_is_confirmed_during_a_rotation_is_told_too(pair: GovernorPair) -> None:
    pair.go()
    pair.max.wire.cut = True
    keys, _told = rotate(pair.max)
    zoe = Governor(pair.folder / "zoe", "zoe-host", "zoe", pair.clock, None)
    pair.all.append(zoe)
    pair_up(pair.max, zoe)
    pair.max.wire.cut = False
    pair.max.tick()
    await pair.settle()
    pair.clock.advance(seconds=40)
    await pair.settle()
    assert keys.fingerprint in counting(zoe)
    pair.max.tick()
    assert key_states(pair.max)[keys.fingerprint] == "active"
    assert len([row for row in pair.max.rows(ControlWebhook) if row.type == "rotate"]) == 2


async def test_a_clock_set_back_stops_no_rotation(pair: GovernorPair) -> None:
    pair.go()
    keys, _told = rotate(pair.max)
    pair.clock.sleep(minutes=-3)
    pair.max.restart()
    await pair.settle()
    assert keys.fingerprint in counting(pair.eva)


async def test_a_rotation_without_a_peer_is_done_at_the_next_tick(
    make_pair: Callable[..., GovernorPair],
) -> None:
    pair = make_pair(paired=False)
    keys, told = rotate(pair.max)
    assert told == []
    pair.max.tick()
    assert key_states(pair.max)[keys.fingerprint] == "active"


async def test_a_restart_in_between_loses_nothing(pair: GovernorPair) -> None:
    pair.go()
    keys, _told = rotate(pair.max)
    pair.max.restart()
    await pair.settle()
    pair.max.restart()
    pair.max.tick()
    assert key_states(pair.max)[keys.fingerprint] == "active"
    pair.eva.restart()
    pair.eva.go("max-host")
    note_activity(pair.max.store, pair.max.host, "tester", pair.clock.now())
    sent = pair.max.send("eva", "v1.0.0")
    await pair.settle()
    assert pair.max.message(sent.id).state == "accepted"
