import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from model_server import ModelServer

from governor.clock import SystemClock
from governor.errors import ReadingError
from governor.inbound.model_broker import Broker, ModelBroker, ModelCall, ModelSettings
from reader.contract import ASK_LIMIT, MAX_TOKENS, model_request
from reader.prompt import question

ASK = question("The tests pass.", "0123456789abcdef")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def broker(server: ModelServer) -> AsyncIterator[ModelBroker]:
    broker = ModelBroker(ModelSettings("test-model", server.url, "sk-test-key"), SystemClock())
    yield broker
    await broker.close()


async def drop(broker: Broker) -> tuple[ReadingError, ModelCall]:
    calls: list[ModelCall] = []
    with pytest.raises(ReadingError) as error:
        await broker.ask(ASK, calls.append)
    (call,) = calls
    return error.value, call


async def test_the_call_is_orders_examples_schema_and_one_question(
    server: ModelServer, broker: ModelBroker
) -> None:
    calls: list[ModelCall] = []
    text = await broker.ask(ASK, calls.append)
    assert '"summary": "The sender wrote a report."' in text
    (call,) = calls
    assert (call.model, call.input_tokens, call.output_tokens, call.stop_reason) == (
        "test-model",
        700,
        90,
        "end_turn",
    )
    assert call.seconds > 0
    (body,) = server.bodies
    assert body.keys() == {"model", *model_request("").keys()}
    assert "tools" not in body
    assert body["messages"][-1]["content"] == ASK
    assert body["max_tokens"] == MAX_TOKENS
    assert server.paths == ["/v1/messages"]
    assert "sk-test-key" in repr(server.headers[0])  # in which header is the SDK's affair


async def test_the_environment_gives_neither_key_nor_address(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-somebody-else")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    broker = ModelBroker(ModelSettings("local", server.url), SystemClock())
    await broker.ask(ASK, lambda _call: None)
    await broker.close()
    assert "somebody-else" not in repr(server.headers)


async def test_a_local_server_gets_what_the_settings_add(server: ModelServer) -> None:
    settings = ModelSettings("local", server.url, extra_body={"temperature": 0})
    broker = ModelBroker(settings, SystemClock())
    await broker.ask(ASK, lambda _call: None)
    await broker.close()
    assert server.bodies[0]["temperature"] == 0


async def test_a_server_on_a_unix_socket_is_asked_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    path = str(tmp_path / "m.sock")
    with ModelServer(path=path) as server:
        broker = ModelBroker(ModelSettings("local", socket=path), SystemClock())
        assert '"summary"' in await broker.ask(ASK, lambda _call: None)
        server.behaviour = "redirect"
        error, _call = await drop(broker)
        assert error.detail == "HTTP 307"
        await broker.close()
    assert [header["host"] for header in server.headers] == ["reader", "reader"]
    assert server.paths == ["/v1/messages", "/v1/messages"]


async def test_an_answer_that_takes_too_long_is_given_up(server: ModelServer) -> None:
    server.behaviour = "slow"
    broker = ModelBroker(ModelSettings("local", server.url, seconds=0.2), SystemClock())
    error, _call = await drop(broker)
    assert (error.drop, error.detail) == ("model_unavailable", "APITimeoutError")
    await broker.close()


async def test_one_client_stays_warm_and_closes(broker: ModelBroker) -> None:
    await broker.warm()
    client = broker._client
    await asyncio.gather(broker.warm(), broker.ask(ASK, lambda _call: None))
    assert broker._client is client is not None
    await broker.close()
    await broker.close()
    assert client.is_closed()


@pytest.mark.parametrize(
    ("behaviour", "code", "detail"),
    [
        ("error_500", "model_unavailable", "HTTP 500"),
        ("error_529", "model_unavailable", "HTTP 529"),
        ("error_401", "model_unavailable", "HTTP 401"),
        ("error_413", "too_long", "HTTP 413"),
        ("too_long", "too_long", "HTTP 400"),
        ("redirect", "model_unavailable", "HTTP 307"),
        ("broken_json", "model_unavailable", "JSONDecodeError"),
    ],
)
async def test_a_failing_server_is_asked_once_and_its_words_are_not_kept(
    server: ModelServer, broker: ModelBroker, behaviour: str, code: str, detail: str
) -> None:
    server.behaviour = behaviour
    error, call = await drop(broker)
    assert (error.drop, error.detail) == (code, detail)
    assert call.stop_reason == "failed"
    assert len(server.bodies) == 1
    assert "SECRET PEER TEXT" not in str(error)
    assert error.__cause__ is None


async def test_no_server_is_model_unavailable() -> None:
    broker = ModelBroker(ModelSettings("local", "http://127.0.0.1:1"), SystemClock())
    error, call = await drop(broker)
    assert (error.drop, error.detail, call.stop_reason) == (
        "model_unavailable",
        "APIConnectionError",
        "failed",
    )
    await broker.close()


@pytest.mark.parametrize(
    ("behaviour", "code", "stop_reason"),
    [
        ("refusal", "model_stopped", "refusal"),
        ("max_tokens", "model_stopped", "max_tokens"),
        ("tools", "model_stopped", "tool_use"),
        ("not_json", "model_stopped", "unknown"),
        ("list", "model_stopped", "unknown"),
        ("sneaky_tools", "contract", "end_turn"),
        ("odd_fields", "contract", "end_turn"),
        ("endless", "too_long", "end_turn"),
    ],
)
async def test_what_is_not_a_finished_text_is_dropped_and_still_counted(
    server: ModelServer, broker: ModelBroker, behaviour: str, code: str, stop_reason: str
) -> None:
    server.behaviour = behaviour
    error, call = await drop(broker)
    assert (error.drop, call.stop_reason) == (code, stop_reason)
    assert call.output_tokens >= 0


async def test_thoughts_are_left_out(server: ModelServer, broker: ModelBroker) -> None:
    server.behaviour = "thinking"
    text = await broker.ask(ASK, lambda _call: None)
    assert text.startswith("{")


async def test_a_question_beyond_the_bound_never_leaves(server: ModelServer, broker: ModelBroker) -> None:
    with pytest.raises(ReadingError) as error:
        await broker.ask("x" * (ASK_LIMIT + 1), lambda _call: None)
    assert error.value.drop == "protocol"
    assert server.bodies == []


async def test_a_cancelled_call_is_counted(server: ModelServer, broker: ModelBroker) -> None:
    server.behaviour = "slow"
    calls: list[ModelCall] = []
    asking = asyncio.create_task(broker.ask(ASK, calls.append))
    async with asyncio.timeout(20):
        while not server.bodies:  # noqa: ASYNC110 - filled by another thread
            await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [call.stop_reason for call in calls] == ["failed"]


def test_the_key_is_in_no_representation() -> None:
    assert "sk-test" not in repr(ModelSettings("m", key="sk-test"))
