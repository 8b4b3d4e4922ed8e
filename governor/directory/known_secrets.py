"""The secrets this host knows by value: read anew whenever a file that holds one has changed.

What is enrolled, planted or rotated while the governor runs is known at the next message. An
unchanged set costs a look at each file's state, not its content.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from governor.directory.canaries import canary_folder, read_canary
from governor.errors import ConfigError
from governor.policy.known_values import Known, KnownValue, known, weakness

IN_SETTINGS: Final = "settings"
"""The name by which a canary from the settings goes."""

_KEYS: Final = (".totp", ".sign", ".pem")
_PRIVATE_BLOCK: Final = re.compile(r"-----BEGIN PRIVATE KEY-----\n([A-Za-z0-9+/=\n]{1,10000})-----END")
_LINE: Final = 40
"""A line of a private key of at least so many characters is a secret of its own."""

_State = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the secrets of a host are.

    `fixed` gives those that stay the same while it runs (the environment, the keyring, the settings)
    and is asked once; `listed` files are named by the user as secrets and must be strong enough to be
    told from harmless text; `own` files hold tokens of the governor's.
    """

    home: Path
    fixed: Callable[[], Iterable[KnownValue]] = tuple
    listed: tuple[Path, ...] = ()
    own: tuple[Path, ...] = ()


class KnownSecrets:
    """All secrets of a host, as they are at the moment of asking."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._fixed: tuple[KnownValue, ...] | None = None
        self._last: tuple[list[_State], Known] | None = None

    def __call__(self) -> Known:
        """Return them. Raises ConfigError when one cannot be read or is too plain: then nothing may leave."""
        states = [_state(path) for path in self._files()]
        if self._last is not None and self._last[0] == states:
            return self._last[1]
        if self._fixed is None:
            self._fixed = tuple(self._sources.fixed())
        # The states come first: what changes during the reading is seen as a change the next time.
        found = known([*self._fixed, *self._read()])
        self._last = states, found
        return found

    def _files(self) -> Iterator[Path]:
        yield from (*self._sources.listed, *self._sources.own, *self._keys(), *self._canaries())

    def _keys(self) -> list[Path]:
        return _in_folder(self._sources.home / "keys", _KEYS)

    def _canaries(self) -> list[Path]:
        return _in_folder(canary_folder(self._sources.home), (".json",))

    def _read(self) -> Iterator[KnownValue]:
        for path in self._sources.listed:
            yield strong(secret_text(path), f"{path}, listed in [secrets] files,")
        for path in self._sources.own:
            yield from own(secret_text(path))
        for path in self._keys():
            yield from map(KnownValue, _key_values(path))
        for path in self._canaries():
            if (canary := read_canary(path)) is not None:
                yield KnownValue(canary.value, canary.name)


def own(token: str) -> Iterator[KnownValue]:
    """Give a token of the governor's own, unless it is a word such as servers on this machine take for a key."""
    if not weakness(token):
        yield KnownValue(token)


def strong(value: str, what: str, canary: str = "") -> KnownValue:
    """Return a value somebody listed as a secret. Raises ConfigError, which names `what`, not the value."""
    if fault := weakness(value):
        raise ConfigError(
            f"{what} is no secret that can be searched for: {fault}, so it would be found in harmless"
            " messages. Take it out, or choose a longer secret."
        )
    return KnownValue(value, canary)


def _key_values(path: Path) -> list[str]:
    """Return what is secret in a key file of this home; of a PEM file each line, for one is enough."""
    text = secret_text(path, "a key of this home") if path.exists() else ""  # retired since it was listed
    if path.suffix != ".pem":
        return [text]
    return [line for block in _PRIVATE_BLOCK.findall(text) for line in block.split() if len(line) >= _LINE]


def _in_folder(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in suffixes)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read: {error.strerror}. Mend its rights.") from None


def _state(path: Path) -> _State:
    """Return what changes when a file does: a new inode where it is replaced, the times where it is written."""
    try:
        state = path.stat()
    except OSError:
        return (str(path), 0, 0, 0, 0)  # the reading will say it better
    return (str(path), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


def secret_text(path: Path, what: str = "named in the settings") -> str:
    """Return what a file holds, without white space around it. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        reason = error.strerror
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise ConfigError(f"{path}, {what}, cannot be read: {reason}. Restore it, or mend its rights.")
