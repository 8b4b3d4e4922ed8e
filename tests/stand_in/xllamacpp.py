"""Stands in for the runtime of models: takes the same settings, serves `tests/model_server.py`.

Beside its socket it leaves `.settings`: what it was told, and the id of its process, as JSON.
"""

import json
import os
from collections import defaultdict
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from model_server import ModelServer


class llama_load_mode(StrEnum):  # noqa: N801 - the runtime's own name
    LLAMA_LOAD_MODE_NONE = "none"


class common_grammar_type(StrEnum):  # noqa: N801 - the runtime's own name
    COMMON_GRAMMAR_TYPE_USER = "user"


def json_schema_to_grammar(schema: str) -> str:
    return f"grammar of {schema}"


def CommonGrammar(kind: common_grammar_type, grammar: str) -> list[str]:  # noqa: N802 - the runtime's own name
    return [kind, grammar]


class CommonParams(SimpleNamespace):
    def __init__(self) -> None:
        parts: dict[str, Any] = defaultdict(SimpleNamespace)
        super().__init__(
            **{name: parts[name] for name in ("model", "cpuparams", "cpuparams_batch", "sampling")}
        )


class Server:
    def __init__(self, params: CommonParams) -> None:
        path, content = params.hostnames[0], Path(params.model.path).read_bytes()
        if b"broken" in content:
            raise RuntimeError("Failed to init server.")
        Path(f"{path}.settings").write_text(json.dumps({"pid": os.getpid(), **vars(params)}, default=vars))
        self._server = ModelServer("error_500" if b"mute" in content else "honest", path=path)
        self._server.__enter__()
