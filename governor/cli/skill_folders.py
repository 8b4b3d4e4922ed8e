"""Skills on the disk: where each client looks for them, what is there, how one gets there."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from governor.cli.skill_template import SCRIPT, SKILL_FILE, Skill, recipient_of, render_skill
from governor.cli.whole_file import write_whole
from governor.errors import GovernorError, LocalError


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client looks for its user's skills.

    `$variable/skills` if the client has such a variable and it is set, else `default` in the home.
    """

    variable: str | None
    default: str


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client("CLAUDE_CONFIG_DIR", ".claude/skills"),
    "codex": Client(None, ".agents/skills"),
    "gemini": Client(None, ".agents/skills"),
    "hermes": Client("HERMES_HOME", ".hermes/skills"),
    "openclaw": Client("OPENCLAW_STATE_DIR", ".agents/skills"),
}


class Finding(StrEnum):
    """How a skill stands in a folder."""

    ABSENT = "absent"
    CURRENT = "current"
    OUTDATED = "outdated"
    FOREIGN = "foreign"  # something of that name is there which we did not write


def skills_folder(client: str, environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder in which a client of CLIENTS keeps its user's skills."""
    where = CLIENTS[client]
    moved = environ.get(where.variable, "") if where.variable else ""
    return Path(moved) / "skills" if moved else home / where.default


def inspect(folder: Path, skill: Skill) -> Finding:
    """Tell how a skill stands in a folder of skills."""
    place = folder / skill.name
    if not os.path.lexists(place):
        return Finding.ABSENT
    try:
        if recipient_of((place / SKILL_FILE).read_bytes()) != skill.recipient:
            return Finding.FOREIGN
    except OSError:
        return Finding.FOREIGN
    same = all(_same(place / path, content, _mode(path)) for path, content in skill.files.items())
    return Finding.CURRENT if same else Finding.OUTDATED


def installed(folder: Path) -> list[Skill]:
    """Return the skills of ours in a folder, as they would be written today, sorted by name."""
    found = []
    for skill_file in sorted(folder.glob(f"*/{SKILL_FILE}")):
        try:
            recipient = recipient_of(skill_file.read_bytes())
            skill = render_skill(recipient) if recipient else None
        except (OSError, GovernorError):
            continue  # not ours, or no longer: nothing to report
        if skill and skill.name == skill_file.parent.name:
            found.append(skill)
    return found


def write(folder: Path, skill: Skill) -> None:
    """Write a skill that `inspect` found absent or outdated; raises LocalError if the disk refuses.

    A new skill appears whole, by one rename. An older one gets its files replaced one by one, each
    atomically, SKILL.md last; other files in its folder stay.
    """
    place = folder / skill.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            _fill(place, skill)
            return
        staging = Path(tempfile.mkdtemp(prefix=f".{skill.name}-", dir=folder))
        try:
            _fill(staging, skill)
            staging.chmod(0o755)
            staging.rename(place)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    except OSError as error:
        raise LocalError(
            f"{place} cannot be written: {error.strerror}. Mend that, or name another folder with --dir."
        ) from None


def _fill(place: Path, skill: Skill) -> None:
    for path, content in skill.files.items():
        write_whole(place / path, content, _mode(path))


def _mode(path: str) -> int:
    return 0o755 if path == SCRIPT else 0o644


def _same(path: Path, content: bytes, mode: int) -> bool:
    try:
        return path.read_bytes() == content and path.stat().st_mode & 0o777 == mode
    except OSError:
        return False
