"""The last line of every benchmark: one JSON object with its figures, and which goals they meet."""

import json
import os
import platform
from collections.abc import Mapping
from typing import Any, NamedTuple


class Goal(NamedTuple):
    """A bound on a figure: at most, or at least."""

    figure: str
    bound: float
    at_least: bool = False

    def met_by(self, found: float) -> bool:
        """Tell whether a figure keeps the bound."""
        return found >= self.bound if self.at_least else found <= self.bound


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def line(name: str, figures: Mapping[str, Any], goals: tuple[Goal, ...]) -> str:
    """Return the last line."""
    judged = [
        {
            "figure": goal.figure,
            "at_least" if goal.at_least else "at_most": goal.bound,
            "met": goal.met_by(found),
        }
        for goal in goals
        if isinstance(found := figures.get(goal.figure), int | float)
    ]
    return json.dumps(
        {"name": name, "machine": machine(), "figures": figures, "goals": judged}, ensure_ascii=False
    )
