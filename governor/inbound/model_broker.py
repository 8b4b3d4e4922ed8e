"""The one model call: the governor's own orders, schema and key around the child's one user turn."""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol

from governor.clock import Clock
from governor.errors import ReadingError
from reader.contract import ANSWER_LIMIT, ASK_LIMIT, model_request

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic

HOSTED_URL: Final = "https://api.anthropic.com"

_NO_HOST: Final = "http://reader"
"""What the client calls a server that it reaches by a socket."""

_MOST_TOKENS: Final = 10_000_000
_STOP_REASONS = frozenset(
    {
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
    }
)
_SILENT_BLOCKS = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which model is asked, and where. `base_url` empty: the hosted one; `key` empty: a server without.

    `socket` is the Unix socket of a server on this machine, in place of `base_url`. `extra_body` is added
    to the request, for such servers (`{"temperature": 0}`). `seconds` is how long an answer may take.
    """

    model: str
    base_url: str = ""
    key: str = field(default="", repr=False)
    socket: str = ""
    seconds: float = 60.0
    extra_body: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What one call took. `stop_reason` is the model's, `failed` where none came, or `unknown`."""

    model: str
    input_tokens: int
    output_tokens: int
    seconds: float
    stop_reason: str


class Broker(Protocol):
    """Puts a user turn to a model."""

    async def ask(self, text: str, on_call: Callable[[ModelCall], None]) -> str:
        """Return the model's text; raises ReadingError. `on_call` hears of every call, also a failed one."""
        ...


class ModelBroker:
    """Asks any Anthropic-compatible server through one warm client, without tools and without retries."""

    def __init__(self, settings: ModelSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._client: AsyncAnthropic | None = None
        self._making = asyncio.Lock()

    async def warm(self) -> None:
        """Load the client, which takes a second or more; otherwise the first message waits for it."""
        await self._warm_client()

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def ask(self, text: str, on_call: Callable[[ModelCall], None]) -> str:
        """Return the model's text.

        Raises ReadingError: `protocol`, `model_unavailable`, `model_stopped`, `contract`, `too_long`.
        """
        if len(text) > ASK_LIMIT:
            raise ReadingError("protocol", "the question is too long")
        client = await self._warm_client()
        started = self._clock.monotonic()
        try:
            reply: Any = await self._create(client, text)
        except (ReadingError, asyncio.CancelledError):
            on_call(ModelCall(self._settings.model, 0, 0, self._clock.monotonic() - started, "failed"))
            raise
        stop_reason = str(getattr(reply, "stop_reason", None))
        stop_reason = stop_reason if stop_reason in _STOP_REASONS else "unknown"
        usage = getattr(reply, "usage", None)
        on_call(
            ModelCall(
                model=self._settings.model,
                input_tokens=_count(usage, "input_tokens"),
                output_tokens=_count(usage, "output_tokens"),
                seconds=self._clock.monotonic() - started,
                stop_reason=stop_reason,
            )
        )
        if stop_reason != "end_turn":
            raise ReadingError("model_stopped", stop_reason)
        return _text_of(getattr(reply, "content", None))

    async def _create(self, client: "AsyncAnthropic", text: str) -> object:
        import anthropic  # noqa: PLC0415 - loaded by now; on top it would cost every start a second
        import httpx2  # noqa: PLC0415

        request = model_request(text)
        try:
            return await client.messages.create(
                model=self._settings.model, extra_body=dict(self._settings.extra_body), **request
            )
        except anthropic.APIStatusError as error:
            # The body may repeat the message: the number is all that is safe to keep.
            drop = "too_long" if _is_too_long(error) else "model_unavailable"
            raise ReadingError(drop, f"HTTP {error.status_code}") from None
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise ReadingError("model_unavailable", type(error).__name__) from None

    async def _warm_client(self) -> "AsyncAnthropic":
        async with self._making:
            if self._client is None:
                anthropic = await asyncio.to_thread(importlib.import_module, "anthropic")
                self._client = self._new_client(anthropic)
            return self._client

    def _new_client(self, anthropic: Any) -> "AsyncAnthropic":  # noqa: ANN401 - a module loaded late
        settings = self._settings
        # A redirect would carry the key and the message elsewhere.
        http: dict[str, Any] = {"follow_redirects": False}
        if settings.socket:
            httpx2 = importlib.import_module("httpx2")
            http["transport"] = httpx2.AsyncHTTPTransport(uds=settings.socket)
        client: AsyncAnthropic = anthropic.AsyncAnthropic(
            # Explicit, so that neither key, address nor tracing of texts comes from the environment.
            api_key=settings.key or "none",
            base_url=_NO_HOST if settings.socket else settings.base_url or HOSTED_URL,
            max_retries=0,
            timeout=settings.seconds,
            open_telemetry=False,
            http_client=anthropic.DefaultAsyncHttpxClient(**http),
        )
        return client


def _is_too_long(error: "APIStatusError") -> bool:
    """Tell whether the message was at fault, not the server: it is longer than the model can read."""
    match error.body:
        case {"error": {"type": "exceed_context_size_error"}}:  # llama.cpp's word for it
            return True
    return error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _count(usage: object, name: str) -> int:
    """Return a number of tokens; local servers leave it out, and none is to be believed."""
    count = getattr(usage, name, None)
    return min(max(count, 0), _MOST_TOKENS) if isinstance(count, int) else 0


def _text_of(content: object) -> str:
    """Join the text of an answer that holds nothing but text (and thoughts, which are left out)."""
    texts = []
    for block in content if isinstance(content, list) else ():
        if getattr(block, "type", None) in _SILENT_BLOCKS:
            continue
        text = getattr(block, "text", None)
        if getattr(block, "type", None) != "text" or not isinstance(text, str):
            raise ReadingError("contract", "the answer holds more than text")
        texts.append(text)
    if not texts:
        raise ReadingError("contract", "the answer holds no text")
    answer = "".join(texts)
    if len(answer) > ANSWER_LIMIT:
        raise ReadingError("too_long", "the answer")
    return answer
