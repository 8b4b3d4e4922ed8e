"""A link's switch as a table: what each event does to it, in each state.

`decide` says which event came; this file says what follows. The version grows by one at each change
of the switch and at nothing else, so that a button made for an older state can be told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from governor.message import PauseReason, Switch
from governor.policy.state import Decision, Effect, LinkState


class SwitchEvent(StrEnum):
    """What can happen to a switch."""

    GO_GIVEN = "go_given"  # and found valid
    GO_REFUSED = "go_refused"
    HUMAN_ACTED = "human_acted"
    STOP_GIVEN = "stop_given"
    PEER_STOPPED = "peer_stopped"
    SUPERVISION_LOST = "supervision_lost"  # the deadline passed, the clock went back, a fault was seen
    TICKED = "ticked"  # a restart is a tick like any other
    PEER_REVOKED = "peer_revoked"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one event does in one state.

    `to` is the new state (None: the switch keeps its state). `watches` says that the human deadline
    is set anew. `effects` follow in either case.
    """

    to: Switch | None = None
    watches: bool = False
    effects: tuple[Effect, ...] = ()


_KEEP = Turn()
_OPEN = Turn(
    Switch.RUNNING, watches=True, effects=(Effect.CANCEL_STOP, Effect.SEND_HELLO, Effect.TELL_OPENED)
)
_RENEW = Turn(watches=True, effects=(Effect.TELL_OPENED,))
_WATCH = Turn(watches=True)
_PAUSE = Turn(Switch.PAUSED, effects=(Effect.TELL_CLOSED,))
_STOP = Turn(Switch.STOPPED, effects=(Effect.SEND_STOP, Effect.TELL_CLOSED))
# The peer knows already: a `stop` in answer to its `stop` would go to and fro.
_HEED = Turn(Switch.STOPPED, effects=(Effect.TELL_CLOSED,))
_END = Turn(Switch.REVOKED, effects=(Effect.TELL_CLOSED,))

_COLUMNS = (Switch.RUNNING, Switch.PAUSED, Switch.STOPPED, Switch.REVOKED)
_ROWS: Mapping[SwitchEvent, tuple[Turn, Turn, Turn, Turn]] = {
    # event                         running  paused  stopped  revoked
    SwitchEvent.GO_GIVEN: (_RENEW, _OPEN, _OPEN, _KEEP),
    SwitchEvent.GO_REFUSED: (_KEEP, _KEEP, _KEEP, _KEEP),
    SwitchEvent.HUMAN_ACTED: (_WATCH, _KEEP, _KEEP, _KEEP),
    SwitchEvent.STOP_GIVEN: (_STOP, _STOP, _KEEP, _KEEP),
    SwitchEvent.PEER_STOPPED: (_HEED, _HEED, _KEEP, _KEEP),
    SwitchEvent.SUPERVISION_LOST: (_PAUSE, _KEEP, _KEEP, _KEEP),
    SwitchEvent.TICKED: (_KEEP, _KEEP, _KEEP, _KEEP),
    SwitchEvent.PEER_REVOKED: (_END, _END, _END, _KEEP),
}

SWITCH: Final[Mapping[SwitchEvent, Mapping[Switch, Turn]]] = {
    event: dict(zip(_COLUMNS, row, strict=True)) for event, row in _ROWS.items()
}
"""Every event in every state. Nothing leaves `revoked`, and only `go_given` leads to `running`."""


def turn(
    state: LinkState,
    event: SwitchEvent,
    now: datetime,
    *,
    reason: PauseReason | None = None,
    until: datetime | None = None,
) -> Decision:
    """Apply one row of the table.

    `reason` is why the link pauses, if it does; `until` the human deadline, if one is set. A link
    that is stopped or revoked remembers why it was paused before: one that never had its first GO
    must not be opened by a GO that names no link.
    """
    row = SWITCH[event][state.switch]
    if row.watches:
        state = replace(state, watched_until=until)
    if row.to is not None:
        reasons = {Switch.RUNNING: None, Switch.PAUSED: reason}
        state = replace(
            state,
            switch=row.to,
            reason=reasons.get(row.to, state.reason),
            version=state.version + 1,
            closed_at=None if row.to is Switch.RUNNING else now,
        )
    return Decision(state, row.effects)
