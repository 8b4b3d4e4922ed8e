import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from governor_pair import GovernorPair
from sql_cache import share_compiled_statements

settings.register_profile("untimed", deadline=None)  # a busy machine is no fault
settings.load_profile("untimed")
share_compiled_statements()


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Callable[..., GovernorPair]]:
    made: list[GovernorPair] = []

    def make(**settings: object) -> GovernorPair:
        folder = tmp_path / f"pair{len(made)}"
        folder.mkdir()
        made.append(GovernorPair(folder, **settings))
        return made[-1]

    yield make
    for pair in made:
        pair.close()


@pytest.fixture
def pair(make_pair: Callable[..., GovernorPair]) -> GovernorPair:
    return make_pair()
