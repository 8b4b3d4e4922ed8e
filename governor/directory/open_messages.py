"""The messages that still have a life before them, as the tables of lives call them open."""

from sqlalchemy import ColumnElement
from sqlmodel import col, func, select

from governor.message import Direction
from governor.policy.lives import INBOUND_OPEN, OUTBOUND_OPEN
from governor.store.tables import Message
from governor.store.unit_of_work import UnitOfWork

Where = ColumnElement[bool] | bool


def open_out(uow: UnitOfWork, *where: Where) -> list[Message]:
    """Return our unfinished messages, oldest first."""
    rows = uow.all(Message, Message.direction == Direction.OUT, col(Message.state).in_(OUTBOUND_OPEN), *where)
    return _by_age(rows)


def open_in(uow: UnitOfWork, *where: Where) -> list[Message]:
    """Return the unfinished messages of peers, oldest first."""
    rows = uow.all(Message, Message.direction == Direction.IN, col(Message.state).in_(INBOUND_OPEN), *where)
    return _by_age(rows)


def unread(uow: UnitOfWork, *where: Where) -> int:
    """Return how many messages of peers wait for a reader or for their agent.

    What an agent was shown waits no longer, acknowledged or not: an agent that never says so must not
    use up the allowance for ever.
    """
    counting = select(func.count(col(Message.n))).where(
        Message.direction == Direction.IN,
        col(Message.state).in_(INBOUND_OPEN),
        col(Message.shown_at).is_(None),
        *where,
    )
    return uow.session.exec(counting).one()


def _by_age(rows: list[Message]) -> list[Message]:
    return sorted(rows, key=lambda row: row.n or 0)
