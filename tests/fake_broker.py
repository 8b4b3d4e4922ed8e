"""A model in the governor's own process: answers the reader's question as it is told to."""

from collections.abc import Callable

from model_server import asked, honest

from governor.errors import ReadingError
from governor.inbound.model_broker import ModelCall

Behaviour = Callable[[str, str], str]
"""Makes an answer of the nonce and the message; may raise ReadingError."""


def fails(code: str) -> Behaviour:
    def behave(_nonce: str, _message: str) -> str:
        raise ReadingError(code)

    return behave


class FakeBroker:
    """Remembers what it was asked. `behaviour` may be changed at any time."""

    def __init__(self, behaviour: Behaviour = honest) -> None:
        self.behaviour = behaviour
        self.questions: list[str] = []

    async def ask(self, text: str, on_call: Callable[[ModelCall], None]) -> str:
        self.questions.append(text)
        try:
            answer = self.behaviour(*asked({"messages": [{"content": text}]}))
        except ReadingError:
            on_call(ModelCall("fake", 0, 0, 0.5, "failed"))
            raise
        on_call(ModelCall("fake", 700, 90, 0.5, "end_turn"))
        return answer
