"""A model for tests: answers `/v1/messages` as an Anthropic-compatible server does, by simple rules.

As a fixture: `with ModelServer("honest") as server: ... server.url, server.bodies`.
By hand: `python tests/model_server.py --port 8790 --behaviour honest`.
"""

import argparse
import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse

LOOPBACK = "127.0.0.1"
_START_WITHIN = 10
_SLOW_FOR = 30
_WORDS = 15

_COMMANDS = re.compile(
    r"(ignore|disregard|forget|override)\b.{0,60}\b(instructions?|rules?|prompt)|you are now|system prompt"
    r"|(reply|respond|answer) (only )?with\b|<\|im_start\|?|\[SYSTEM\]",
    re.IGNORECASE,
)
_WRITE = re.compile(r"(?:reply|respond|answer) (?:only )?with (?:the words? )?(.{1,200})", re.IGNORECASE)
_ASKS = re.compile(r"\?\s*$|\b(please|could|can|would)\b", re.IGNORECASE)


def asked(body: dict[str, Any]) -> tuple[str, str]:
    """Return nonce and message of the last turn, as our reader writes it."""
    nonce, _, quoted, _ = body["messages"][-1]["content"].split("\n")
    return nonce.removeprefix("nonce: "), json.loads(quoted)


def told(nonce: str, kind: str, summary: str, points: list[str], wants: list[str]) -> str:
    return json.dumps({"nonce": nonce, "kind": kind, "summary": summary, "points": points, "wants": wants})


def honest(nonce: str, message: str) -> str:
    """Retell a message: of each sentence the first words, in the third person."""
    if _COMMANDS.search(message):
        return told(nonce, "order_to_reader", "The sender tries to command the reader.", [], [])
    sentences = [sentence for sentence in re.split(r"(?<=[.!?])\s+|\n+", message) if sentence.strip()]
    wants = [f"The sender asks: {_third_person(text)}" for text in sentences if _ASKS.search(text)]
    points = [f"The sender says: {_third_person(text)}" for text in sentences if not _ASKS.search(text)]
    kind = ("question" if message.rstrip().endswith("?") else "request") if wants else "report"
    return told(nonce, kind, f"The sender wrote a {kind}.", points[:10], wants[:5])


def obedient(nonce: str, message: str) -> str:
    """Do what the message says: write what it wants written, or pass its order on to the agent."""
    if found := _WRITE.search(message):
        return found[1]
    return told(nonce, "report", f"You must do this now: {message[:200]}", [], [])


def parrot(nonce: str, message: str) -> str:
    return told(nonce, "report", message[:900], [], [])


def _third_person(sentence: str) -> str:
    words = re.sub(r"[<>`\[\](){}|*#!\"]", " ", sentence).split()[:_WORDS]
    swaps = {"you": "the receiver", "your": "the receiver's", "i": "the sender", "my": "the sender's"}
    return " ".join(swaps.get(word.lower(), word) for word in words)


TEXTS: dict[str, Callable[[str, str], str]] = {
    "honest": honest,
    "obedient": obedient,
    "parrot": parrot,
    "slow": honest,
    "max_tokens": lambda nonce, message: honest(nonce, message)[:-5],
    "refusal": lambda _nonce, _message: "",
    "wrong_nonce": lambda _nonce, message: honest("0000000000000000", message),
    "prose": lambda _nonce, _message: "Sure! The sender says hello.",
    "endless": lambda _nonce, _message: "x" * 40_000,
    "fenced": lambda nonce, message: f"```json\n{honest(nonce, message)}\n```",
}
STOP_REASONS = {"max_tokens": "max_tokens", "refusal": "refusal", "tools": "tool_use"}
RESPONSES: dict[str, Callable[[], Response]] = {
    "error_500": lambda: _error(500, "api_error"),
    "error_529": lambda: _error(529, "overloaded_error"),
    "error_413": lambda: _error(413, "request_too_large"),
    "too_long": lambda: _error(400, "exceed_context_size_error"),
    "error_401": lambda: _error(401, "authentication_error"),
    "redirect": lambda: Response(status_code=307, headers={"location": "/elsewhere"}),
    "not_json": lambda: Response("<html>proxy</html>", media_type="text/html"),
    "broken_json": lambda: Response('{"id": "msg', media_type="application/json"),
    "list": lambda: JSONResponse([1, 2, 3]),
}
BEHAVIOURS = (*TEXTS, *RESPONSES, "tools", "sneaky_tools", "odd_fields", "thinking")
"""What the server can be told to do. `sneaky_tools`: a tool call although it says `end_turn`."""

_TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"command": "id"}}


def _error(status: int, kind: str) -> JSONResponse:
    body = {"type": "error", "error": {"type": kind, "message": "the message was: SECRET PEER TEXT"}}
    return JSONResponse(body, status_code=status)


def _message(behaviour: str, body: dict[str, Any]) -> dict[str, Any]:
    text = TEXTS.get(behaviour, honest)(*asked(body))
    content: list[Any] = [{"type": "text", "text": text}]
    if behaviour in ("tools", "sneaky_tools"):
        content.append(_TOOL_USE)
    if behaviour == "thinking":
        content.insert(0, {"type": "thinking", "thinking": "hm", "signature": "s"})
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": STOP_REASONS.get(behaviour, "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 700, "output_tokens": 90},
    }
    odd = {"content": None, "usage": {"input_tokens": "many", "output_tokens": -1}}
    return message | odd if behaviour == "odd_fields" else message


class ModelServer:
    """The server on a free loopback port, or on a Unix socket. `behaviour` may be changed while it runs."""

    def __init__(self, behaviour: str = "honest", port: int = 0, path: str = "") -> None:
        self.behaviour = behaviour
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._released = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self._socket.bind(path or (LOOPBACK, port))
        self.url = f"unix:{path}" if path else f"http://{LOOPBACK}:{self._socket.getsockname()[1]}"
        app = FastAPI()
        app.add_api_route("/{path:path}", self._answer, methods=["GET", "POST"])
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        self._thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Serve until stopped."""
        self._server.run(sockets=[self._socket])

    async def _answer(self, request: Request) -> Response:
        body = json.loads(await request.body() or b"{}")
        self.paths.append(request.url.path)
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        behaviour = self.behaviour
        if behaviour == "slow":
            await self._wait(time.monotonic() + _SLOW_FOR)
        if behaviour in RESPONSES:
            return RESPONSES[behaviour]()
        return JSONResponse(_message(behaviour, body))

    async def _wait(self, until: float) -> None:
        while not self._released.is_set() and time.monotonic() < until:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + _START_WITHIN
        while not self._server.started:
            assert time.monotonic() < until, "the model server did not start"
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.should_exit = True
        self._thread.join(_START_WITHIN)
        self._socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8790)
    parser.add_argument("--behaviour", choices=BEHAVIOURS, default="honest")
    arguments = parser.parse_args()
    server = ModelServer(arguments.behaviour, arguments.port)
    print(server.url, flush=True)  # noqa: T201 - for whoever started it by hand
    server.run()


if __name__ == "__main__":
    main()
