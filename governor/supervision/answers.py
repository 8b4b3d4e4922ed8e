"""Say in our own words what an act came to, and what the links are now."""

from collections.abc import Sequence
from datetime import timedelta

from governor.message import PauseReason, Switch
from governor.supervision.freshness import Stale
from governor.supervision.operations import GoAnswer, LinkNow
from governor.supervision.who_may import Doubt

HELP = """\
STOP [peer]: stop one link, or all. Anybody in this group may.
GO [peer]: open one link, or all but new ones. Named operators only; the whole message.
STATUS (or ETAT): the links as they are now.
HELP (or AIDE): this text."""

LIMITED_SIGHT = """\
Warning: this bot sees only commands addressed to it, and no reactions. A plain STOP may not reach it.
Make it an administrator of the group, or turn its privacy mode off with @BotFather (/setprivacy) and
add it to the group again."""

NO_LINKS = "There is no link to a peer. Pair one first: governor pair offer."

UNKNOWN_BUTTON = "unknown_button"

_REFUSALS: dict[str, str] = {
    Doubt.ANONYMOUS: "An anonymous admin or a channel cannot be told apart. Write in your own name.",
    Doubt.NOT_AN_OPERATOR: "Only the operators named in the governor's settings may do that.",
    Doubt.FORWARDED: "A forwarded message does not count. Write it yourself.",
    Doubt.EDITED: "An edited message does not count. Write a new one.",
    Doubt.AUTOMATIC: "A scheduled or automatic message does not count. Write it yourself, now.",
    Stale.TOO_OLD: "That GO was more than 60 s old. Nothing was opened; say GO again.",
    Stale.CLOCKS_DIFFER: "That GO is dated in the future. Nothing was opened; set this host's clock right.",
    Stale.BEFORE_CLOSING: "That GO came before a STOP. Nothing was opened; say GO again if you still mean it.",
    Stale.NOT_POLLED: "It is not certain when that button was pressed. Nothing was opened; press it again, or say GO.",
    UNKNOWN_BUTTON: "This button is not known here. Use the latest one, or say GO.",
}

_PAUSES: dict[PauseReason, str] = {
    PauseReason.AWAITING_FIRST_GO: "new: needs a GO with its name",
    PauseReason.UNWATCHED: "no human activity",
    PauseReason.SLEPT: "this host slept",
    PauseReason.CLOCK_WENT_BACK: "this host's clock went back",
    PauseReason.KEY_CHANGED: "the peer changed its key",
    PauseReason.READER_DOWN: "the reader does not work",
    PauseReason.RIVAL_POLLER: "another program polls with this bot's token",
    PauseReason.UNSEEN: "the exchanges could not be shown here",
    PauseReason.SETTINGS_LOOSENED: "a limit was loosened in the settings",
    PauseReason.STOP_FILE: "a file named STOP lies in the governor's home",
    PauseReason.CANARY_TOUCHED: "an agent of this host gave a canary away; look at it before GO",
}

_GO_REFUSALS: dict[str, str] = {
    "old_version": "that button belongs to an earlier pause; use the latest, or say GO",
    "cause_persists": "the cause of the pause persists; remove it first",
    "awaits_first_go": "a new link needs a GO with its name",
    "unconfirmed": "the pairing is not confirmed; on this host: governor pair confirm PEER --code N",
    "revoked": "the link was revoked; pair anew",
    Stale.TOO_OLD: "that GO was more than 60 s old; say GO again",
    Stale.CLOCKS_DIFFER: "that GO is dated in the future; set this host's clock right",
    Stale.BEFORE_CLOSING: "that GO was said before the link closed; say GO again",
}


def of_status(links: Sequence[LinkNow]) -> str:
    """Return one line for each link."""
    return "\n".join(map(link_line, links)) or NO_LINKS


def of_go(answers: Sequence[GoAnswer], peer: str | None) -> str:
    """Return what a GO did to each link concerned; `peer` is the one it named."""
    if not answers and peer is not None:
        return f"There is no link to {peer}. STATUS shows the links."
    return "\n".join(map(_go_line, answers)) or NO_LINKS


def of_refusal(reason: str) -> str:
    """Return why an act did not count and what to do instead; `reason` is a Doubt, a Stale or UNKNOWN_BUTTON."""
    return _REFUSALS[reason]


def link_line(link: LinkNow) -> str:
    """Return the state of a link in one line."""
    state = link.switch.value
    if link.reason is not None:
        state += f" ({_PAUSES[link.reason]})"
    if link.acted_by is not None:
        state += f", by {link.acted_by}"
    counts = f"out {link.out_used}/{link.cap}, in {link.in_used}/{link.cap}"
    watched = (
        "nobody watching" if link.watched_for is None else f"watched for {_short(link.watched_for)} more"
    )
    if link.switch is Switch.RUNNING:
        return f"{link.peer}: {state}; {counts}; {watched}"
    return f"{link.peer}: {state}; {counts}"


def _go_line(answer: GoAnswer) -> str:
    line = link_line(answer.link)
    if answer.opened or answer.reason is None:
        return line
    if answer.reason == "old_version" and answer.link.switch is Switch.RUNNING:
        return f"{line}\n  this pause was already lifted; nothing changed"
    return f"{line}\n  not opened: {_GO_REFUSALS.get(answer.reason, answer.reason)}"


def _short(span: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(span.total_seconds())), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
