"""`governor send`: hands a message to the governor and tells what became of it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_speaker, seconds
from governor.cli.credentials import load_credential
from governor.cli.failure import NO_ANSWER, Exit, Failure, clock_time
from governor.cli.local_client import ask, ask_until

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

OFFER_LIMIT: Final = 80_000
"""Characters the local API takes; what is longer than a message may be, it refuses and records."""

WAIT_S: Final = 15.0

_OPEN: Final = frozenset({"queued", "held", "sending"})


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `send`."""
    send = subparsers.add_parser("send", help="send a message to an agent of a peer")
    send.add_argument("--to", required=True, metavar="AGENT", help="eva, or eva@eva-host")
    send.add_argument("--reply-to", metavar="ID", help="the message that this one answers")
    send.add_argument("--conversation", metavar="ID", help="the conversation to go on with")
    how_long = send.add_mutually_exclusive_group()
    how_long.add_argument(
        "--wait",
        type=seconds,
        default=WAIT_S,
        metavar="SECONDS",
        help="for the peer's governor to accept it; default: %(default)g",
    )
    how_long.add_argument("--no-wait", action="store_true", help="return as soon as it is queued")
    add_speaker(send)
    send.add_argument(
        "text",
        nargs="?",
        default="-",
        metavar="TEXT",
        help="the text; - or none: standard input, less the newline at its end",
    )
    send.set_defaults(func=answering(_send))


def _send(args: argparse.Namespace) -> Answer:
    credential = load_credential(args.home, args.who)
    offer = {"to": args.to, "text": _text(args.text)}
    offer |= {"conversation": args.conversation} if args.conversation is not None else {}
    offer |= {"reply_to": args.reply_to} if args.reply_to is not None else {}
    try:
        taken = ask(credential, "POST", "/v1/messages", offer)
    except Failure as failure:
        if failure.code != NO_ANSWER:
            raise
        raise Failure(
            NO_ANSWER,
            "The governor ended the call, so the message may or may not have been taken."
            " Ask your operator before you send it again: governor audit --direction out",
        ) from failure
    if args.no_wait:
        line = f"{taken['id']}: queued. How it stands: governor show {taken['id']}"
        return Answer([line], taken)
    try:
        state = ask_until(
            credential, f"/v1/messages/{taken['id']}/state", args.wait, lambda now: bool(now["settled"])
        )
    except Failure as failure:
        raise Failure(
            failure.code,
            f"Message {taken['id']} is in the outbox, so do not send it again. But then: {failure.message}",
        ) from failure
    return outcome(taken, state)


def outcome(taken: dict[str, Any], state: dict[str, Any]) -> Answer:
    """Say what became of a message: `taken` is the answer to the POST, `state` its state now."""
    document = {
        **taken,
        "state": state["state"],
        "reason": state["reason"],
        "expires_at": state["expires_at"],
    }
    words, code = _words(state)
    line = f"{taken['id']}: {words}"
    if code == Exit.OK:
        return Answer([f"{line}. Conversation: {taken['conversation']}"], document)
    error = "transport" if code == Exit.UNREACHABLE else "refused"
    return Answer([line], {**document, "error": error, "message": words}, code)


def _words(state: dict[str, Any]) -> tuple[str, Exit]:
    name, reason = state["state"], state["reason"]
    if name == "accepted":
        return "accepted by the peer's governor (not yet delivered)", Exit.OK
    if name in _OPEN:
        kept = f"kept in the outbox until {clock_time(state['expires_at'])}; do not send again"
        if reason == "peer_closed":
            return f"the peer's governor is closed until a human there says GO: {kept}", Exit.UNREACHABLE
        if reason:
            return f"the peer's governor was not reached ({reason}): {kept}", Exit.UNREACHABLE
        return f"not yet accepted by the peer's governor: {kept}", Exit.UNREACHABLE
    why = f" ({reason})" if reason else ""
    if name == "unconfirmed":
        return f"unconfirmed{why}: it may have arrived, so ask before you send it again", Exit.REFUSED
    return f"{name}{why}: it was not delivered", Exit.REFUSED


def _text(given: str) -> str:
    """Return the text; raises Failure if it is not UTF-8 or far too long, which is never cut."""
    raw = os.fsencode(given) if given != "-" else _standard_input()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failure(
            "usage", f"The text is not UTF-8 (byte {error.start + 1}). Convert it and send it again."
        ) from None
    if len(text) > OFFER_LIMIT:
        raise _too_long()
    return text


def _standard_input() -> bytes:
    most = OFFER_LIMIT * 4 + 2  # a character has up to four bytes in UTF-8, the newline up to two
    raw = sys.stdin.buffer.read(most + 1)
    if len(raw) > most:
        raise _too_long()
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _too_long() -> Failure:
    return Failure("refused", "The text is too long; shorten it or send it in parts.", reason="too_long")
