"""`governor operator enroll`: shows the secret of the operator's code, once."""

import argparse
import io
from typing import TYPE_CHECKING

import pyotp
import segno

from governor.cli.answer import Answer, answering
from governor.cli.arguments import add_code, add_json
from governor.cli.opened import opened
from governor.supervision.operator_code import enroll, enroll_anew

if TYPE_CHECKING:
    from governor.cli.answer import Subparsers

ISSUER = "bridge-governor"


def add_parsers(subparsers: "Subparsers") -> None:
    """Register `operator enroll`."""
    commands = subparsers.add_parser("operator", help="the operator's code").add_subparsers(
        required=True, metavar="COMMAND"
    )
    enrolling = commands.add_parser("enroll", help="show the secret of the operator's code, once")
    add_code(enrolling, "of the secret that is to be replaced")
    add_json(enrolling)
    enrolling.set_defaults(func=answering(_enroll))


def _enroll(args: argparse.Namespace) -> Answer:
    with opened(args.home) as home:
        now = home.host.clock.now()
        if args.code:
            secret = enroll_anew(home.store, home.path, now, args.code, pyotp.random_base32)
        else:
            secret = enroll(home.store, home.path, now, pyotp.random_base32)
    uri = pyotp.TOTP(secret).provisioning_uri(name=home.host.name, issuer_name=ISSUER)
    lines = [
        *_qr(uri).splitlines(),
        uri,
        "Scan this with an authenticator app, or type the secret in. It is not shown again.",
        "Its six digits are the operator's code: they let whoever holds them say GO.",
    ]
    return Answer(lines, {"uri": uri, "secret": secret})


def _qr(text: str) -> str:
    drawn = io.StringIO()
    segno.make(text, error="l").terminal(drawn, compact=True)
    return drawn.getvalue()
