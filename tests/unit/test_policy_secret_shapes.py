"""The shapes of credentials: each example is found by its row, and no pattern can run away."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from governor.message import TEXT_LIMIT
from governor.policy.known_values import Known
from governor.policy.secret_shapes import SHAPES, Shape
from governor.policy.secrets import find_secret

ROWS = [pytest.param(shape, id=f"{shape.kind}-{n}") for n, shape in enumerate(SHAPES)]


@pytest.mark.parametrize("shape", ROWS)
def test_each_rows_example_is_found_by_that_row(shape: Shape) -> None:
    assert shape.pattern.search(shape.example)
    for text in (shape.example, f"it is '{shape.example}', keep it", f"x={shape.example}\n"):
        found = find_secret(text, Known())
        assert found is not None
        assert found.kind == shape.kind


@pytest.mark.parametrize("shape", ROWS)
def test_what_is_cut_off_before_the_match_is_certain_is_no_match(shape: Shape) -> None:
    match = shape.pattern.search(shape.example)
    assert match is not None
    assert not shape.pattern.search(shape.example[: match.end() - 1])


@pytest.mark.parametrize("shape", ROWS)
def test_no_pattern_repeats_without_bound_or_repeats_a_long_repeat(shape: Shape) -> None:
    repeats = list(_repeats(re._parser.parse(shape.pattern.pattern), 1))  # type: ignore[attr-defined]
    assert all(bound <= TEXT_LIMIT for bound in repeats)
    assert not [bound for bound in repeats if bound > 200 and "}+" not in shape.pattern.pattern]


def _repeats(parsed: Any, outer: int) -> Iterator[int]:  # noqa: ANN401 - the parser's own trees
    """Give the bound of each repeat, multiplied by those of the repeats around it."""
    for operation, argument in parsed:
        name = str(operation)
        if "REPEAT" in name:
            low, high, inner = argument
            del low
            yield outer * int(high)
            yield from _repeats(inner, outer * int(high))
        elif name == "SUBPATTERN":
            yield from _repeats(argument[-1], outer)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch, outer)
