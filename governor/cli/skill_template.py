"""A skill is a folder of text: this renders the one for sending to one remote agent.

The format is that of the Agent Skills specification (https://agentskills.io/specification). What a
skill says stands in `templates/skill/`; only the recipient changes from one skill to the next.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from governor.errors import LocalError
from governor.message import is_address, is_name

SKILL_FILE = "SKILL.md"
SCRIPT = "scripts/send.sh"

_SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)
_SKILL_NAME_LIMIT = 64
_MARK = "  written-by: bridge-governor"
_RECIPIENT = re.compile(r'  recipient: "(.*)"')  # quoted, for an agent may be called `no` or `123`


@dataclass(frozen=True, slots=True)
class Skill:
    """A rendered skill: its name (also its folder's), whom it sends to, its files by relative path."""

    name: str
    recipient: str
    files: Mapping[str, bytes]


def skill_name(recipient: str) -> str:
    """Return the skill's name for an agent (`eva`) or its full name (`eva@eva-host`).

    Raises LocalError if it is neither, or has no name in the skills' narrower grammar (at most 64
    of a-z, 0-9 and single hyphens inside).
    """
    if not (is_name(recipient) or is_address(recipient)):
        raise LocalError(f"{recipient!r} is no agent's name. Give a name such as eva or eva@eva-host.")
    name = f"send-to-{recipient.replace('@', '-at-')}"
    if len(name) > _SKILL_NAME_LIMIT or not _SKILL_NAME.fullmatch(name):
        raise LocalError(
            f"No skill can be named {name!r}: skills take at most {_SKILL_NAME_LIMIT} of a-z, 0-9 and single "
            f"hyphens. Ask the peer's operator for an agent name that fits."
        )
    return name


def render_skill(recipient: str) -> Skill:
    """Return the skill for one remote agent; raises LocalError as `skill_name` does.

    The recipient has passed a closed grammar, so it needs no quoting in Markdown, YAML or shell.
    """
    name = skill_name(recipient)
    template = files("governor.cli") / "templates" / "skill"
    return Skill(
        name,
        recipient,
        {
            path: template.joinpath(path)
            .read_text(encoding="utf-8")
            .replace("@SKILL@", name)
            .replace("@RECIPIENT@", recipient)
            .encode()
            for path in (SCRIPT, SKILL_FILE)
        },
    )


def recipient_of(skill_file: bytes) -> str | None:
    """Return whom a SKILL.md of ours sends to; None for a file that we did not write."""
    head, _, _ = skill_file.decode(errors="replace").removeprefix("---\n").partition("\n---\n")
    lines = head.splitlines()
    if _MARK not in lines:
        return None
    return next((found[1] for line in lines if (found := _RECIPIENT.fullmatch(line))), None)
