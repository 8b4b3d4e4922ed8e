"""The routes for local agents. Nothing here opens a link, and no operator's act is among them."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from governor.bell import Bell
from governor.delivery.inbox import ack, read_inbox, waiting
from governor.directory.agents import join, who_is
from governor.directory.host import Host
from governor.directory.routes import remote_agents
from governor.errors import CredentialError, GovernorError
from governor.local_api.answers import install
from governor.local_api.guard import Bounded
from governor.local_api.life import life_of, state_of_message
from governor.message import TEXT_LIMIT, UntrustedText
from governor.outbox.submit import Offer, submit
from governor.store.unit_of_work import Store

WAIT_LIMIT_S = 60.0
"""Longest wait of one request, in seconds."""

T = TypeVar("T")
router = APIRouter()
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


class EndingError(GovernorError):
    """The governor is ending; ask again when it runs anew."""

    code = "no_governor"
    status = 503


@dataclass(frozen=True, slots=True)
class Room:
    """What the routes work with. `bell` rings after every change, so that waiting is not polling."""

    store: Store
    host: Host
    bell: Bell

    async def until(self, seconds: float, look: Callable[[], T], enough: Callable[[T], bool]) -> T:
        """Look now and after each ring until it is enough or the time is over; return the last look.

        Raises EndingError when the governor ends first.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            seen = await asyncio.to_thread(look)
            left = end - loop.time()
            if left <= 0 or enough(seen):
                return seen
            if self.bell.is_over:
                raise EndingError
            await self.bell.wait(min(left, 1.0))  # another process may have changed the rows: no ring then


def make_app(room: Room) -> FastAPI:
    """Return the app; the TCP listener wraps it in `guard.LocalOnly`."""
    app = FastAPI(title="bridge-governor, local API", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.room = room
    app.add_middleware(Bounded)
    install(app)
    app.include_router(router)
    return app


def _room(request: Request) -> Room:
    room: Room = request.app.state.room
    return room


async def _caller(request: Request, authorization: Annotated[str, Header()] = "") -> str:
    """Return the agent whose token this is."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise CredentialError
    return await asyncio.to_thread(_who, _room(request).store, token)


InRoom = Annotated[Room, Depends(_room)]
Caller = Annotated[str, Depends(_caller)]


@router.get("/healthz")
async def healthz() -> dict[str, bool]:
    """Say that the governor runs."""
    return {"ok": True}


@router.post("/v1/messages")
async def send(room: InRoom, agent: Caller, body: Outgoing) -> dict[str, Any]:
    """Queue a message, or refuse it with a reason."""
    offer = Offer(agent, body.to, UntrustedText(body.text), body.conversation, body.reply_to)
    taken = await room.store.run(submit, room.store, room.host, offer)
    room.bell.ring()
    return asdict(taken)


@router.get("/v1/messages/{message_id}")
async def show(room: InRoom, agent: Caller, message_id: str) -> dict[str, Any]:
    """Return a message's whole life."""
    return await asyncio.to_thread(life_of, room.store, room.host, agent, message_id)


@router.get("/v1/messages/{message_id}/state")
async def state(room: InRoom, agent: Caller, message_id: str, wait: Wait = 0) -> dict[str, Any]:
    """Return a message's state; with `wait` (seconds) as soon as there is something to say."""

    def look() -> dict[str, Any]:
        return state_of_message(room.store, room.host, agent, message_id)

    return await room.until(wait, look, lambda now: bool(now["settled"]))


@router.get("/v1/inbox")
async def inbox(room: InRoom, agent: Caller, wait: Wait = 0) -> dict[str, Any]:
    """Return what may be read now; with `wait` as soon as there is anything."""
    await room.until(wait, lambda: waiting(room.store, room.host, agent), bool)
    items = await room.store.run(read_inbox, room.store, room.host, agent)
    return {"messages": [asdict(item) for item in items]}


@router.get("/v1/waiting")
async def count(room: InRoom, agent: Caller, wait: Wait = 0) -> dict[str, int]:
    """Return how many messages may be read now, without showing them."""
    return {"waiting": await room.until(wait, lambda: waiting(room.store, room.host, agent), bool)}


@router.post("/v1/inbox/{message_id}/ack")
async def done(room: InRoom, agent: Caller, message_id: str) -> dict[str, bool]:
    """Take a message out of the inbox."""
    return {"acked": await room.store.run(ack, room.store, room.host, agent, message_id)}


@router.get("/v1/agents", dependencies=[Depends(_caller)])
async def agents(room: InRoom) -> dict[str, list[str]]:
    """Return the full names of the agents one may write to."""
    return {"agents": await asyncio.to_thread(_remote, room.store)}


@router.post("/v1/join")
async def joining(room: InRoom, body: Joining) -> dict[str, str]:
    """Turn a grant into a token; the only route without one."""
    name, token = await room.store.run(_join, room.store, room.host, body.grant)
    return {"agent": name, "token": token}


def _who(store: Store, token: str) -> str:
    with store.reading() as uow:
        return who_is(uow, token)


def _remote(store: Store) -> list[str]:
    with store.reading() as uow:
        return remote_agents(uow)


def _join(store: Store, host: Host, grant: str) -> tuple[str, str]:
    with store.begin() as uow:
        return join(uow, grant, host.clock.now())
