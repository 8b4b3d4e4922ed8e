"""From a name an agent uses (`eva`, `eva@eva-host`) to the one link it means."""

from collections import Counter
from dataclasses import dataclass

from governor.directory.agents import local_agents
from governor.errors import LocalError
from governor.store.tables import Peer
from governor.store.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class Route:
    """The peer that has the agent, and the agent's full name."""

    peer: str
    recipient: str


def find_route(uow: UnitOfWork, to: str) -> Route | None:
    """Return the route to an agent of a confirmed peer; None when nobody has it.

    Raises LocalError when two peers have an agent of this short name.
    """
    routes = [route for route in _routes(uow) if to in (route.recipient, route.recipient.partition("@")[0])]
    if len(routes) > 1:
        names = " or ".join(sorted(route.recipient for route in routes))
        raise LocalError(f"{to!r} is at more than one peer. Write the full name: {names}")
    return routes[0] if routes else None


def remote_agents(uow: UnitOfWork) -> list[str]:
    """Return the full names of the agents of all confirmed peers, sorted."""
    return sorted(route.recipient for route in _routes(uow))


def short_names(uow: UnitOfWork) -> list[str]:
    """Return each remote agent by the shortest name that means it alone here: `eva`, else `eva@eva-host`."""
    full = remote_agents(uow)
    taken = Counter([name.partition("@")[0] for name in full] + local_agents(uow))
    return [short if taken[short := name.partition("@")[0]] == 1 else name for name in full]


def known_names(uow: UnitOfWork) -> list[str]:
    """Return the names that could have been meant: remote agents, short and full."""
    full = remote_agents(uow)
    return sorted({name.partition("@")[0] for name in full} | set(full) | set(local_agents(uow)))


def _routes(uow: UnitOfWork) -> list[Route]:
    return [
        Route(peer.name, f"{agent}@{peer.name}")
        for peer in uow.all(Peer, Peer.state == "confirmed")
        for agent in peer.agents
    ]
