"""The local API in the hands of another program, another agent, or a web page (P3, P7)."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from governor_pair import GovernorPair
from local_routes import routes_of

from governor.directory import agents
from governor.errors import LocalError
from governor.local_api.guard import REQUEST_LIMIT, LocalOnly

ROUTES = {
    ("GET", "/healthz"),
    ("POST", "/v1/messages"),
    ("GET", "/v1/messages/{message_id}"),
    ("GET", "/v1/messages/{message_id}/state"),
    ("GET", "/v1/inbox"),
    ("GET", "/v1/waiting"),
    ("POST", "/v1/inbox/{message_id}/ack"),
    ("GET", "/v1/agents"),
    ("POST", "/v1/join"),
}
WITHOUT_TOKEN = {("GET", "/healthz"), ("POST", "/v1/join")}


async def test_no_route_is_an_operators(pair: GovernorPair) -> None:
    """Whatever an agent's token can do is on this list: no GO, no pairing, no settings."""
    assert {route for route in routes_of(pair.max.local_app) if route[0] != "HEAD"} == ROUTES


@pytest.mark.parametrize(("method", "path"), sorted(ROUTES - WITHOUT_TOKEN))
async def test_no_token_and_a_wrong_token_get_nowhere(pair: GovernorPair, method: str, path: str) -> None:
    pair.go()
    asked = path.replace("{message_id}", "m_1")
    body = {"to": "eva", "text": "v1.0.0"} if path == "/v1/messages" else None
    headers: list[dict[str, str]] = [
        {},
        {"authorization": ""},
        {"authorization": pair.max.token},
        {"authorization": "Bearer "},
        {"authorization": "Bearer bgt_" + "A" * 43},
        {"authorization": f"Basic {pair.max.token}"},
        {"authorization": f"Bearer {pair.eva.token}"},  # of another host
        {"authorization": f"Bearer {agents.hash_of(pair.max.token)}"},
        {"authorization": "Bearer bgt_\xfc"},
        {"x-token": pair.max.token},
    ]
    for header in headers:
        raw = {name: value.encode("latin-1") for name, value in header.items()}
        answer = await pair.max.local.request(method, asked, headers=raw, json=body)
        assert (answer.status_code, answer.json()["error"]) == (401, "credential"), header
    assert pair.max.messages() == []


async def test_the_sender_follows_from_the_token_alone(pair: GovernorPair) -> None:
    ida = pair.max.add_agent("ida")
    pair.go()
    answer = await pair.max.ask(
        "POST", "/v1/messages", token=ida, json={"to": "eva", "text": "[from max] v1.0.0"}
    )
    assert pair.max.message(answer.json()["id"]).sender == "ida@max-host"
    answer = await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": "v1", "sender": "ida"})
    assert answer.status_code == 422


async def test_a_removed_agents_token_is_dead_at_once(pair: GovernorPair) -> None:
    assert (await pair.max.ask("GET", "/v1/inbox")).status_code == 200
    with pair.max.store.begin() as uow:
        agents.remove(uow, "max", pair.clock.now())
    assert (await pair.max.ask("GET", "/v1/inbox")).status_code == 401
    with pair.max.store.begin() as uow:
        agents.add(uow, "max", pair.clock.now())
    assert (await pair.max.ask("GET", "/v1/inbox")).status_code == 401  # back, but without the old token


@pytest.mark.parametrize(
    "name", ["operator", "governor", "human", "system", "Max", "", "a" * 33, "a b", "ä", "a@b"]
)
async def test_no_agent_takes_a_reserved_or_odd_name(pair: GovernorPair, name: str) -> None:
    with pytest.raises(LocalError), pair.max.store.begin() as uow:
        agents.add(uow, name, pair.clock.now())


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "attacker.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:18802"},
        {"host": "localhost:18801", "origin": "http://localhost:18801"},
        {"host": "127.0.0.1:18801", "origin": "null"},
    ],
)
async def test_a_web_page_gets_nowhere(pair: GovernorPair, headers: dict[str, str]) -> None:
    names = frozenset({"127.0.0.1:18801", "localhost:18801"})
    guarded = httpx.ASGITransport(LocalOnly(pair.max.local_app, names))
    async with httpx.AsyncClient(transport=guarded, base_url="http://127.0.0.1:18801") as client:
        token = {"authorization": f"Bearer {pair.max.token}"}
        assert (await client.get("/v1/inbox", headers=token)).status_code == 200
        answer = await client.get("/v1/inbox", headers=token | headers)
        assert (answer.status_code, answer.json()["error"]) == (421, "host")
        answer = await client.get(
            "/v1/inbox", headers=[*token.items(), ("host", "localhost:18801"), ("host", "x")]
        )
        assert answer.status_code == 421


BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "no JSON": ({"content": b"{"}, 422),
    "not UTF-8": ({"content": b'{"to": "eva", "text": "\xff"}'}, 422),
    "a list": ({"json": []}, 422),
    "nothing": ({}, 422),
    "no text": ({"json": {"to": "eva"}}, 422),
    "text that is none": ({"json": {"to": "eva", "text": 7}}, 422),
    "a field too many": ({"json": {"to": "eva", "text": "v1", "hops": 99}}, 422),
    "a surrogate": ({"content": b'{"to": "eva", "text": "\\ud800"}'}, 422),
    "a NUL": ({"json": {"to": "eva", "text": "a\x00"}}, 400),
    "a name too long": ({"json": {"to": "e" * 66, "text": "v1"}}, 422),
    "an id that is none": ({"json": {"to": "eva", "text": "v1", "conversation": "../etc"}}, 400),
    "deep": ({"content": b'{"to":' + b"[" * 100_000}, 422),
    "text far too long": ({"json": {"to": "eva", "text": "a" * 80_001}}, 422),
    "text too long": ({"json": {"to": "eva", "text": "a" * 10_001}}, 409),
    "body too long": ({"content": b"x" * (REQUEST_LIMIT + 1)}, 413),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_malformed_or_huge_body_is_one_clear_error_and_changes_nothing(
    pair: GovernorPair, name: str
) -> None:
    pair.go()
    request, status = BODIES[name]
    answer = await pair.max.ask("POST", "/v1/messages", **request)
    assert answer.status_code == status
    assert answer.json().keys() >= {"error", "message"}
    assert pair.max.messages() == []


async def test_a_body_without_end_is_cut(pair: GovernorPair) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 65_536

    answer = await pair.max.ask("POST", "/v1/messages", content=endless())
    assert answer.status_code == 413
    assert taken <= REQUEST_LIMIT // 65_536 + 2


@pytest.mark.parametrize("path", ["/", "/hooks", "/v1/go", "/docs", "/openapi.json", "/v1/messages/m_1/text"])
async def test_there_is_nothing_else(pair: GovernorPair, path: str) -> None:
    answer = await pair.max.ask("GET", path)
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def join(pair: GovernorPair, grant: str) -> httpx.Response:
    return await pair.max.local.post("/v1/join", json={"grant": grant})


def grant(pair: GovernorPair, name: str = "max") -> str:
    with pair.max.store.begin() as uow:
        return agents.make_grant(uow, name, pair.clock.now())


async def test_a_grant_works_once(pair: GovernorPair) -> None:
    once = grant(pair)
    answer = await join(pair, once)
    assert answer.json()["agent"] == "max"
    assert (await pair.max.ask("GET", "/v1/inbox", token=answer.json()["token"])).status_code == 200
    assert (await pair.max.ask("GET", "/v1/inbox")).status_code == 401  # the older token is dead
    again = await join(pair, once)
    assert (again.status_code, again.json()["error"]) == (401, "credential")
    assert once not in again.text


async def test_a_grant_works_for_an_hour(pair: GovernorPair) -> None:
    late, just = grant(pair), grant(pair)
    pair.clock.advance(minutes=59, seconds=59)
    assert (await join(pair, just)).status_code == 200
    pair.clock.advance(seconds=1)
    assert (await join(pair, late)).status_code == 401


async def test_a_grant_of_a_removed_agent_and_one_that_never_was_are_worth_nothing(
    pair: GovernorPair,
) -> None:
    pair.max.add_agent("ida")
    of_removed = grant(pair, "ida")
    with pair.max.store.begin() as uow:
        agents.remove(uow, "ida", pair.clock.now())
    for each in (of_removed, "bgg_" + "A" * 43, "", pair.max.token):
        assert (await join(pair, each)).status_code == 401


async def test_a_wait_ends_and_has_a_limit(pair: GovernorPair) -> None:
    pair.go()
    assert (await pair.max.ask("GET", "/v1/inbox?wait=61")).status_code == 422
    assert (await pair.max.ask("GET", "/v1/inbox?wait=-1")).status_code == 422
    assert (await pair.max.ask("GET", "/v1/inbox?wait=nan")).status_code == 422
    assert (await pair.max.ask("GET", "/v1/waiting?wait=0.01")).json() == {"waiting": 0}
    sent = (await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": "v1.0.0"})).json()
    assert (await pair.max.ask("GET", f"/v1/messages/{sent['id']}/state?wait=0.01")).json()[
        "settled"
    ] is False
    await pair.settle()
    state = (await pair.max.ask("GET", f"/v1/messages/{sent['id']}/state?wait=10")).json()
    assert (state["state"], state["settled"], state["reason"]) == ("accepted", True, None)
    assert (await pair.eva.ask("GET", "/v1/inbox?wait=10")).json()["messages"][0]["id"] == sent["id"]
    assert (await pair.max.ask("GET", "/v1/agents")).json() == {"agents": ["eva@eva-host"]}


async def test_an_agent_that_is_refused_learns_when_to_stop_trying(
    make_pair: Callable[..., GovernorPair],
) -> None:
    pair = make_pair(limits={"watch_for": timedelta(minutes=1)})
    pair.go()
    pair.clock.advance(minutes=1)
    answer = await pair.max.ask("POST", "/v1/messages", json={"to": "eva", "text": "v1.0.0"})
    assert answer.status_code == 409
    assert answer.json() == {
        "error": "refused",
        "message": "No human has been active lately. Wait for a human's GO; do not retry before.",
        "reason": "unwatched",
        "retry_at": None,
    }
