"""The `governor` command: finds out which command is meant and loads that one only.

The commands of agents load nothing but the standard library and a few files of `governor.cli`: an
agent may run them often, and waits each time.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from governor import __version__
from governor.cli.failure import EXIT_CODES, Exit, Failure, told


class Command(NamedTuple):
    """The module of `governor.cli` whose `add_parsers` knows a command, what it does, how it may end."""

    module: str
    help: str
    exits: tuple[Exit, ...]


_AGENTS: Final = (Exit.OK, Exit.USAGE, Exit.NO_GOVERNOR)
_OPERATORS: Final = (Exit.OK, Exit.USAGE)
_WITH_CODE: Final = (Exit.OK, Exit.USAGE, Exit.REFUSED)
_CHECKS: Final = (Exit.OK, Exit.FAILED, Exit.USAGE)

COMMANDS: Final = {
    "send": Command(
        "sending",
        "send a message to an agent of a peer",
        (Exit.OK, Exit.USAGE, Exit.REFUSED, Exit.UNREACHABLE, Exit.NO_GOVERNOR),
    ),
    "inbox": Command("reading", "read the messages that wait for you", _AGENTS),
    "ack": Command("reading", "say that you have dealt with messages", _AGENTS),
    "wait": Command("reading", "return when messages wait; never shows them", (*_CHECKS, Exit.NO_GOVERNOR)),
    "show": Command("looking", "show the whole life of a message", _AGENTS),
    "agents": Command("looking", "list the agents you may write to", _AGENTS),
    "agent join": Command("joining", "turn a grant into your own credential", _AGENTS),
    "init": Command("init", "make the home of a governor: settings, keys, database, agents", _OPERATORS),
    "agent add": Command("agents", "register an agent and give it its credential", _OPERATORS),
    "agent remove": Command("agents", "remove an agent; its token is dead at once", _OPERATORS),
    "agent list": Command("agents", "list the agents of this host", _OPERATORS),
    "agent token": Command(
        "agents", "give an agent a new credential; the old token then is dead", _OPERATORS
    ),
    "config": Command("settings", "show the settings in force and where each comes from", _OPERATORS),
    "operator enroll": Command("operators", "show the secret of the operator's code, once", _WITH_CODE),
    "canary plant": Command("canaries", "make bait to hide where an agent may come upon it", _OPERATORS),
    "canary list": Command("canaries", "list the canaries of this host, never their values", _OPERATORS),
    "canary remove": Command("canaries", "forget a canary; its value may be sent again", _OPERATORS),
    "pair offer": Command(
        "pairing", "print the line that introduces this governor; good for a day", _OPERATORS
    ),
    "pair accept": Command("pairing", "store the governor of a line; it is not trusted yet", _OPERATORS),
    "pair confirm": Command("pairing", "trust a governor, after the phrases were compared", _WITH_CODE),
    "peers": Command("peers", "list the governors this one knows", _OPERATORS),
    "revoke": Command("peers", "end the link to a peer, at once; it is told nothing", _OPERATORS),
    "rotate": Command("peers", "change this governor's keys and certificate", _OPERATORS),
    "run": Command("running", "run the governor until SIGTERM or Ctrl-C", _OPERATORS),
    "go": Command("brake", "open a link for five minutes and give it a new allowance", _WITH_CODE),
    "stop": Command("brake", "close links at once; nothing passes until GO", _OPERATORS),
    "status": Command("brake", "show the links as they are now", _OPERATORS),
    "audit": Command("audit", "show the audit log", _OPERATORS),
    "audit stats": Command("audit", "sum the audit log up", _OPERATORS),
    "audit verify": Command("audit", "check the chain of all records", _CHECKS),
    "skills install": Command("skills", "give your agents a skill for each remote agent", _OPERATORS),
    "skills list": Command("skills", "show which skills of the governor are installed", _OPERATORS),
    "model fetch": Command("model", "get a model file that the governor can serve itself", _OPERATORS),
    "model serve": Command("model", "serve a model file on a Unix socket until Ctrl-C", _OPERATORS),
    "model status": Command("model", "tell whether a model file is there and can be served", _CHECKS),
    "demo": Command("demo", "show the whole route on this machine", _CHECKS),
    "service install": Command("service", "have launchd or systemd run the governor", _OPERATORS),
    "service uninstall": Command("service", "stop that service and remove its file", _OPERATORS),
    "service status": Command("service", "tell whether the service is installed and runs", _CHECKS),
}
"""Every command by its words. README's table is compared with this one by a test."""

HELP: Final = "\n".join(
    [
        "commands:",
        *(f"  {name:<18} {command.help}" for name, command in COMMANDS.items()),
        "",
        "exit codes:",
        *(f"  {code:<18d} {meaning}" for code, meaning in EXIT_CODES.items()),
        "",
        "governor COMMAND --help tells more. GOVERNOR_HOME names the home, GOVERNOR_AGENT the agent that speaks.",
    ]
)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help of one width: to ask the terminal for its own, argparse would load six compression modules."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=110)


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and tells an error in one line, as everything here does."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise Failure("usage", f"{message[:1].upper()}{message[1:]}. See: {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no text of a peer's can make printing fail
    try:
        return told(lambda: _run(words), as_json="--json" in words)
    except SystemExit as end:  # argparse has printed a help text or the version
        return int(end.code or 0)


def _run(words: list[str]) -> int:
    outer = Parser(
        prog="governor",
        usage="governor [--home DIR] COMMAND ...",
        description="Stands between the agents of this host and the governors of others.",
        epilog=HELP,
    )
    outer.add_argument("--home", metavar="DIR", help="default: $GOVERNOR_HOME, else ~/.bridge-governor")
    outer.add_argument("--version", action="version", version=__version__)
    outer.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    asked = outer.parse_args(words)
    if not asked.words:
        raise Failure("usage", "Which command? See: governor --help")
    parser = Parser(prog="governor")
    module = import_module(f"governor.cli.{_find(asked.words).module}")
    module.add_parsers(parser.add_subparsers())
    args = parser.parse_args(asked.words)
    args.home = _home(asked.home)
    code: int = args.func(args)
    return code


def _find(words: list[str]) -> Command:
    """Return the row of a command; of `agent` alone, one whose module knows what may follow."""
    for asked in (" ".join(words[:2]), words[0]):
        for name, command in reversed(COMMANDS.items()):
            if asked in (name, name.partition(" ")[0]):
                return command
    from difflib import get_close_matches  # noqa: PLC0415 - only who mistypes needs it

    near = get_close_matches(words[0], COMMANDS, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise Failure("usage", f"There is no command {words[0]!r}. {hint}All of them: governor --help")


def _home(given: str | None) -> Path:
    """Return the home as an absolute path: credentials and the service name it."""
    return Path(given or os.environ.get("GOVERNOR_HOME") or "~/.bridge-governor").expanduser().absolute()


if __name__ == "__main__":
    sys.exit(main())
