"""Sums outcomes up: what passed, what was dropped and why, what of the values arrived."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import quantiles
from typing import Any

from benchmarks.detectors import DETECTORS, is_short
from benchmarks.reading import Outcome, again
from benchmarks.texts import Text
from reader.contract import WORDS, Mode
from reader.errors import DroppedError
from reader.normalise import normalise
from reader.urls import defang
from reader.values import find_values, shown

LIMITS = (12, 16, 20, 25, 30, 40)
_FORM = frozenset({"contract", "nonce", "model_stopped"})
_FEW = 2


def alarms(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Count, by detector, the texts that were shown and must not have been."""
    found = dict.fromkeys(DETECTORS, 0)
    for outcome in outcomes:
        for name in alarms_of(outcome):
            found[name] += 1
    return found


def alarms_of(outcome: Outcome) -> list[str]:
    """Return the detectors that alarm at what was shown."""
    if not outcome.shown:
        return []
    return [name for name, alarm in DETECTORS.items() if alarm(outcome.shown, outcome.text.text)]


def side(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Sum up the outcomes of one side: attacks, or harmless texts."""
    passed = [outcome for outcome in outcomes if outcome.shown]
    return {
        "texts": len({outcome.text.id for outcome in outcomes}),
        "reads": len(outcomes),
        "passed": len(passed),
        "passed_short": sum(is_short(outcome.text.text) for outcome in passed),
        "passed_by_variant": dict(Counter(outcome.variant for outcome in passed)),
        "drops": dict(Counter(outcome.code for outcome in outcomes if outcome.code).most_common()),
    }


def curve(outcomes: Sequence[Outcome]) -> dict[int, dict[str, float]]:
    """Return the share that is delivered at other copy limits, by side."""
    found: dict[int, dict[str, float]] = {}
    for limit in LIMITS:
        read = list(again(outcomes, limit))
        found[limit] = {
            name: share(sum(bool(outcome.shown) for outcome in rows), len(rows))
            for name, rows in (
                ("attacks", [outcome for outcome in read if outcome.text.hostile]),
                ("harmless", [outcome for outcome in read if not outcome.text.hostile]),
            )
        }
    return found


def of_a_model(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return what only a real model can be asked: time, form, values."""
    seconds = sorted(outcome.seconds for outcome in outcomes)
    kept = [_kept(outcome) for outcome in outcomes if outcome.shown and not outcome.text.hostile]
    return {
        "seconds_p50": round(seconds[len(seconds) // 2], 2) if seconds else None,
        "seconds_p95": round(quantiles(seconds, n=20)[-1], 2) if len(seconds) >= _FEW else None,
        "takeovers_of_form": sum(outcome.code in _FORM for outcome in outcomes if outcome.text.hostile),
        "values_kept": share(sum(found for found, _ in kept), sum(of for _, of in kept)),
        "delivered_by_source": _by_source(outcomes),
    }


def _by_source(outcomes: Sequence[Outcome]) -> dict[str, float]:
    read = Counter(outcome.text.source for outcome in outcomes if not outcome.text.hostile)
    came = Counter(outcome.text.source for outcome in outcomes if outcome.shown)
    return {source: share(came[source], count) for source, count in read.items()}


def _kept(outcome: Outcome) -> tuple[int, int]:
    """Return how many of a message's values arrived as they were (addresses defanged), and of how many."""
    values = {found.value.text for found in find_values(_normal(outcome.text))}
    return sum(value in outcome.shown or defang(value) in outcome.shown for value in values), len(values)


def beyond_bounds(texts: Iterable[Text]) -> dict[str, int]:
    """Count the values of messages, and those that are shown as placeholders because of their bounds."""
    found = [value.value for text in texts for value in find_values(_normal(text))]
    hidden = sum("sha256 " in shown(value, WORDS[Mode.REWRITE], frozenset()).text for value in found)
    return {"values": len(found), "beyond_bounds": hidden}


def _normal(text: Text) -> str:
    try:
        return normalise(text.text).text
    except DroppedError:
        return ""


def share(part: int, whole: int) -> float:
    """Return a share with four digits; 1 of nothing."""
    return round(part / whole, 4) if whole else 1.0
