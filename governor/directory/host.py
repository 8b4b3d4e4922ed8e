"""What every use case knows about its own host."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from governor.clock import Clock
from governor.policy.known_values import Known
from governor.policy.state import Rules


@dataclass(frozen=True, slots=True)
class Host:
    """This host: its name, its clock, its source of ids and its limits.

    `new_id("m")` returns an unguessable id such as `m_5f...`. `rules` gives the limits of the link
    to a peer. `known_secrets` gives the strings that no message may carry, as they are now (ConfigError:
    they cannot be told, so nothing may be sent).
    """

    name: str
    clock: Clock
    new_id: Callable[[str], str]
    rules: Callable[[str], Rules]
    known_secrets: Callable[[], Known] = Known
    expires: timedelta = timedelta(minutes=10)
    hold_for: timedelta = timedelta(minutes=10)

    def address(self, agent: str) -> str:
        """Return the full name of a local agent."""
        return f"{agent}@{self.name}"
