"""Serves a model file on a Unix socket: llama.cpp in this process, one message at a time, in bounds.

It speaks the Messages API. Every answer has the form of the reader's schema, because the server's own
grammar permits no other.
"""

import importlib
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

from governor.errors import ConfigError, ModelError
from governor.listening import clear_socket
from reader.contract import model_request

READY: Final = "The model is ready."
"""The line that says that the next request will be answered without delay."""

CONTEXT: Final = 16_384
"""Tokens of orders, examples, message and answer together; a usual message of 10,000 characters takes half."""

HEADROOM: Final = 2 << 30
"""Address space beyond twice the size of the file, in bytes."""

_RUNTIME: Final = "xllamacpp"
_MAGIC: Final = b"GGUF"
_WARM_WITHIN_S: Final = 600.0
_LOOK_EVERY_S: Final = 0.5
_LONGEST_PATH: Final = 100


def has_runtime() -> bool:
    """Tell whether what runs models is installed (the extra `local`)."""
    return importlib.util.find_spec(_RUNTIME) is not None


def check_servable(file: Path) -> None:
    """Raise ConfigError with the next step if a model file cannot be served here."""
    if not has_runtime():
        raise ConfigError(
            "A model of your own needs the extra `local`. Install it: pip install 'bridge-governor[local]'"
        )
    try:
        with file.open("rb") as found:
            magic = found.read(len(_MAGIC))
    except OSError as error:
        raise ConfigError(
            f"The model file {file} cannot be read: {error.strerror}. Get one: governor model fetch"
        ) from None
    if magic != _MAGIC:
        raise ConfigError(f"{file} is no model file: GGUF is needed. Get one: governor model fetch")


def serve(file: Path, place: Path, say: Callable[[str], None], parent: int | None = None) -> None:
    """Serve until killed, or until the process `parent`, if given, is no longer this one's.

    `place` is where the socket is made: 0600, in a folder that is this user's alone. `say` gets READY
    once the server has loaded the model and read the orders and examples that every message shares.
    """
    check_servable(file)
    _claim(place)
    server = _start(file, place)
    try:
        _warm(place)
        say(READY)
        while parent is None or os.getppid() == parent:
            time.sleep(_LOOK_EVERY_S)
    finally:
        place.unlink(missing_ok=True)
        del server


def _claim(place: Path) -> None:
    if len(os.fsencode(place)) > _LONGEST_PATH:
        raise ConfigError(
            f"{place} is too long for a socket: {_LONGEST_PATH} bytes at most. Set another path."
        )
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    rights = place.parent.stat()
    if rights.st_uid != os.getuid() or rights.st_mode & 0o077:
        raise ConfigError(f"{place.parent} is open to others. Close it: chmod 700 {place.parent}")
    clear_socket(place, "another model is served there. End that one, or set another path.")


def limit_process(file: Path) -> None:
    """Bound what a message that confuses the server can make this process take; let it leave no image of one.

    Raises ConfigError if the file cannot be served anyway.
    """
    check_servable(file)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # macOS does not hold to it
        most = 2 * file.stat().st_size + HEADROOM
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _start(file: Path, place: Path) -> object:
    """Return the running server; it ends when it is collected."""
    # A token is hundreds of short steps, at each of which the threads wait for each other. Spinning, any
    # other process on the machine makes that ten times slower; it is read when the runtime is loaded.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    llama = importlib.import_module(_RUNTIME)
    before = os.umask(0o177)  # of the socket, which the server makes
    try:
        return llama.Server(_settings(llama, file, place))
    except (RuntimeError, MemoryError) as error:
        raise ModelError(
            f"{file} cannot be served: {error} Try the pinned one: governor model fetch"
        ) from None
    finally:
        os.umask(before)


def _settings(llama: Any, file: Path, place: Path) -> Any:  # noqa: ANN401 - the runtime has no types
    found = llama.CommonParams()
    found.model.path, found.hostnames = str(file), [str(place)]
    found.n_ctx, found.n_parallel, found.n_threads_http = CONTEXT, 1, 2
    found.cpuparams.n_threads = found.cpuparams_batch.n_threads = os.cpu_count() or 1
    found.load_mode = llama.llama_load_mode.LLAMA_LOAD_MODE_NONE  # the weights once, not also the mapped file
    found.sampling.temp = 0.0
    schema = model_request("")["output_config"]["format"]["schema"]
    grammar = llama.json_schema_to_grammar(json.dumps(schema))
    found.sampling.grammar = llama.CommonGrammar(llama.common_grammar_type.COMMON_GRAMMAR_TYPE_USER, grammar)
    found.cache_ram_mib = 0  # no message is kept for the next one; the shared beginning stays in the slot
    found.cache_idle_slots = False
    found.ui = found.endpoint_slots = found.fit_params = False
    found.verbosity = 1  # errors: a log of requests would hold messages
    return found


def _warm(place: Path) -> None:
    """Have the shared beginning of all requests read once, so that no message waits for that."""
    example = model_request("")["messages"][0]["content"]
    request = {"model": "local", **model_request(example), "max_tokens": 1}
    try:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(place)), timeout=_WARM_WITHIN_S) as client:
            client.post("http://model/v1/messages", json=request).raise_for_status()
    except httpx.HTTPError as error:
        raise ModelError(f"The model gave no answer ({type(error).__name__}). Try another file.") from None
