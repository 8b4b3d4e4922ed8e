"""Which routes an app has, whether they were put in one by one or by a router."""

from collections.abc import Iterator
from typing import Any


def routes_of(app: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - FastAPI, Starlette or a router
    """Yield (method, path) for each route."""
    for route in app.routes:
        router = getattr(route, "original_router", None)
        if router is not None:
            yield from routes_of(router)
        else:
            for method in sorted(route.methods or ()):
                yield method, route.path
