"""STATUS: what is, link by link. Asking changes nothing and is no human activity."""

from datetime import datetime, timedelta

from governor.directory.host import Host
from governor.directory.links import state_of
from governor.message import PauseReason, Switch
from governor.policy.decide import decide
from governor.policy.state import Ticked
from governor.store.tables import Link
from governor.store.unit_of_work import Store, UnitOfWork
from governor.supervision.operations import LinkNow


def status(store: Store, host: Host) -> list[LinkNow]:
    """Return every link that has not ended, as policy sees it at this instant."""
    with store.reading() as uow:
        return links_now(uow, host, host.clock.now())


def links_now(uow: UnitOfWork, host: Host, now: datetime) -> list[LinkNow]:
    """Return every link that has not ended; deadlines that have passed count, noticed or not."""
    rows = sorted(uow.all(Link, Link.switch != Switch.REVOKED), key=lambda row: row.peer)
    return [link_now(host, row, now) for row in rows]


def link_now(host: Host, row: Link, now: datetime) -> LinkNow:
    """Return one link as it is."""
    rules = host.rules(row.peer)
    state = decide(state_of(row), Ticked(), rules, now).state
    watched: timedelta | None = None
    if state.switch is Switch.RUNNING and state.watched_until is not None:
        watched = state.watched_until - now
    return LinkNow(
        peer=row.peer,
        switch=state.switch,
        reason=PauseReason(state.reason) if state.reason else None,
        version=state.version,
        out_used=state.out_used,
        in_used=state.in_used,
        cap=rules.cap,
        watched_for=watched,
        acted_by=row.acted_by,
    )


def describe(link: LinkNow) -> str:
    """Return one line on a link in our own words, for people."""
    state = f"{link.switch} ({link.reason})" if link.reason else str(link.switch)
    left = ""
    if link.watched_for is not None:
        minutes, seconds = divmod(max(int(link.watched_for.total_seconds()), 0), 60)
        left = f", {minutes}:{seconds:02} left"
    actor = f", last by {link.acted_by}" if link.acted_by else ""
    return f"{link.peer}: {state}{left}, out {link.out_used}/{link.cap}, in {link.in_used}/{link.cap}{actor}"
