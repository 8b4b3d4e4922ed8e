"""The routes for local agents. Nothing here opens a link, and no operator's act is among them."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Header, Query
from pydantic import BaseModel, ConfigDict, Field

from governor.bell import Bell
from governor.delivery.inbox import ack, read_inbox, waiting
from governor.directory.agents import join, who_is
from governor.directory.host import Host
from governor.directory.routes import remote_agents
from governor.errors import CredentialError
from governor.local_api.answers import install
from governor.local_api.life import life_of, state_of_message
from governor.message import TEXT_LIMIT, UntrustedText
from governor.outbox.submit import Offer, submit
from governor.store.unit_of_work import Store

WAIT_LIMIT_S = 60.0
"""Longest wait of one request, in seconds."""

T = TypeVar("T")
Wait = Annotated[float, Query(ge=0, le=WAIT_LIMIT_S)]


class Outgoing(BaseModel):
    """Body of `POST /v1/messages`."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(min_length=1, max_length=65)
    text: str = Field(max_length=8 * TEXT_LIMIT)  # policy refuses what is too long, with its reason
    conversation: str | None = Field(default=None, max_length=64)
    reply_to: str | None = Field(default=None, max_length=64)


class Joining(BaseModel):
    """Body of `POST /v1/join`."""

    model_config = ConfigDict(extra="forbid")

    grant: str = Field(max_length=100)


@dataclass(frozen=True, slots=True)
class Room:
    """What the routes work with. `bell` rings after every change, so that waiting is not polling."""

    store: Store
    host: Host
    bell: Bell

    async def until(self, seconds: float, look: Callable[[], T], enough: Callable[[T], bool]) -> T:
        """Look now and after each ring until it is enough or the time is over; return the last look."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            seen = await asyncio.to_thread(look)
            left = end - loop.time()
            if left <= 0 or enough(seen):
                return seen
            await self.bell.wait(min(left, 1.0))  # another process may have changed the rows: no ring then


def make_app(room: Room) -> FastAPI:
    """Return the app; the TCP listener wraps it in `guard.LocalOnly`."""
    app = FastAPI(title="bridge-governor, local API", docs_url=None, redoc_url=None, openapi_url=None)
    install(app)
    store, host = room.store, room.host

    async def caller(authorization: Annotated[str, Header()] = "") -> str:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise CredentialError
        return await asyncio.to_thread(_who, store, token)

    @app.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    @app.post("/v1/messages")
    async def send(agent: Annotated[str, Depends(caller)], body: Outgoing) -> dict[str, Any]:
        offer = Offer(agent, body.to, UntrustedText(body.text), body.conversation, body.reply_to)
        taken = await store.run(submit, store, host, offer)
        room.bell.ring()
        return asdict(taken)

    @app.get("/v1/messages/{message_id}")
    async def show(agent: Annotated[str, Depends(caller)], message_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(life_of, store, host, agent, message_id)

    @app.get("/v1/messages/{message_id}/state")
    async def state(
        agent: Annotated[str, Depends(caller)], message_id: str, wait: Wait = 0
    ) -> dict[str, Any]:
        def look() -> dict[str, Any]:
            return state_of_message(store, host, agent, message_id)

        return await room.until(wait, look, lambda now: bool(now["settled"]))

    @app.get("/v1/inbox")
    async def inbox(agent: Annotated[str, Depends(caller)], wait: Wait = 0) -> dict[str, Any]:
        await room.until(wait, lambda: waiting(store, host, agent), bool)
        items = await store.run(read_inbox, store, host, agent)
        return {"messages": [asdict(item) for item in items]}

    @app.get("/v1/waiting")
    async def count(agent: Annotated[str, Depends(caller)], wait: Wait = 0) -> dict[str, int]:
        return {"waiting": await room.until(wait, lambda: waiting(store, host, agent), bool)}

    @app.post("/v1/inbox/{message_id}/ack")
    async def done(agent: Annotated[str, Depends(caller)], message_id: str) -> dict[str, bool]:
        return {"acked": await store.run(ack, store, host, agent, message_id)}

    @app.get("/v1/agents", dependencies=[Depends(caller)])
    async def agents() -> dict[str, list[str]]:
        return {"agents": await asyncio.to_thread(_remote, store)}

    @app.post("/v1/join")
    async def joining(body: Joining) -> dict[str, str]:
        name, token = await store.run(_join, store, host, body.grant)
        return {"agent": name, "token": token}

    return app


def _who(store: Store, token: str) -> str:
    with store.reading() as uow:
        return who_is(uow, token)


def _remote(store: Store) -> list[str]:
    with store.reading() as uow:
        return remote_agents(uow)


def _join(store: Store, host: Host, grant: str) -> tuple[str, str]:
    with store.begin() as uow:
        return join(uow, grant, host.clock.now())
