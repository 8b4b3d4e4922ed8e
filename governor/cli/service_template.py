"""What a service manager is told about a governor: the templates of `deploy/`, filled in.

Pure. launchd's keys are those of launchd.plist(5), systemd's those of systemd.exec(5) and
systemd.service(5).
"""

import plistlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from governor.errors import LocalError

_FIELD = re.compile(r"@[A-Z]+@")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Service:
    """One governor as a service: the absolute paths of its command and home.

    `user` and `group` are the accounts of a system service; a user's own service has none to set.
    """

    program: Path
    home: Path
    user: str | None = None
    group: str | None = None


def read_template(name: str) -> str:
    """Return a template such as `launchd/local.bridge-governor.agent.plist`.

    An installed package carries them inside; a checkout has them in `deploy/`.
    """
    packed = files("governor.cli") / "templates" / name
    if packed.is_file():
        return packed.read_text(encoding="utf-8")
    return (Path(__file__).parents[2] / "deploy" / name).read_text(encoding="utf-8")


def render_plist(template: str, service: Service) -> bytes:
    """Fill a property list in; raises LocalError for a path or an account that cannot stand in it."""
    return plistlib.dumps(_filled(plistlib.loads(template.encode()), _fields(service)), sort_keys=False)


def render_unit(template: str, service: Service) -> str:
    """Fill a systemd unit in; raises LocalError as `render_plist` does.

    Paths stand in double quotes in the templates, and `%` begins a specifier. systemd accepts no
    quotes or backslashes in the name of a program, however escaped.
    """
    fields = _fields(service)
    for value in fields.values():
        if set(value) & set("\"'\\"):
            raise LocalError(
                f"{value} cannot be used: systemd takes no quotes or backslashes in a path. Move it."
            )
    return _FIELD.sub(lambda found: fields[found[0]].replace("%", "%%"), template)


def _fields(service: Service) -> Mapping[str, str]:
    paths = {"@PROGRAM@": service.program, "@HOME@": service.home}
    for path in paths.values():
        if not (path.is_absolute() and str(path).isprintable()):
            raise LocalError(
                f"{str(path)!r} cannot be used: give an absolute path without control characters."
            )
    given = {"@USER@": service.user, "@GROUP@": service.group}
    accounts = {name: account for name, account in given.items() if account is not None}
    for account in accounts.values():
        if not _ACCOUNT.fullmatch(account):
            raise LocalError(f"{account!r} is no name of a user or group. Correct --user or --group.")
    return {name: str(path) for name, path in paths.items()} | accounts


def _filled(value: Any, fields: Mapping[str, str]) -> Any:  # noqa: ANN401 - plistlib's own type
    if isinstance(value, dict):
        return {key: _filled(part, fields) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, fields) for part in value]
    if isinstance(value, str):
        return _FIELD.sub(lambda found: fields[found[0]], value)
    return value
