"""A client that speaks any API through its protocol's own writer and decoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.jsontext import json_bytes
from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request
from mockllm.core.turn import Turn
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.decoding import decode_turn
from tests.entries import played_entry

WITH_TOOLS = tuple(name for name, api in PROTOCOLS.items() if api.client.tool_fields)
"""The APIs whose models call tools."""


class Talk:
    """One conversation over an API, streamed. Every request goes to a player of its own, as if
    another process answered it; only the session stays.

    Args:
        scenarios: or their YAML.
    """

    def __init__(
        self,
        scenarios: str | tuple[Scenario, ...],
        api: str,
        *,
        model: str = "some-model",
        session: Session | None = None,
        **options: Any,
    ) -> None:
        self.scenarios = loads(scenarios) if isinstance(scenarios, str) else scenarios
        self.protocol = PROTOCOLS[api]
        self.model, self.options = model, options
        self.session = session or Session("s")
        self.messages: list[Message] = []
        self.tools: tuple[OfferedTool, ...] = ()
        self.fields: dict[str, Any] = {}

    def ask(self) -> Answered:
        """The answer to the conversation so far."""
        protocol, api = self.protocol, self.protocol.name
        messages = tuple(self.messages)
        called = {call.name: OfferedTool(call.name) for m in messages for call in m.calls}
        tools = self.tools or tuple(called.values())
        request = Request(api, self.model, {}, stream=True, messages=messages, tools=tools)
        body = {**protocol.client.write(request, Parameters()), **self.fields}
        sent = json_bytes(dumps(body))
        target = client_target(protocol, self.model)
        player = Player(self.scenarios, **self.options)
        answered = player.play(ApiCall(protocol, target, {}, sent, self.session))
        self.session.record(played_entry(answered.played, sent))
        return answered

    def turn(self) -> Turn:
        """The next turn of the model; it becomes part of the conversation."""
        answered = self.ask()
        answer = b"".join(answered.answer.data)
        assert answered.answer.status == 200, answer
        options = self.protocol.options(replace(self._request(), stream=True))
        frames = self.protocol.carrier(options).decode(answer)
        turn, _ = decode_turn(self.protocol, frames)
        calls = tuple(CallEcho(call.id, call.name, call.arguments) for call in turn.tool_calls)
        self.messages.append(Message("assistant", turn.text, calls))
        return turn

    def _request(self) -> Request:
        return Request(self.protocol.name, self.model, {}, messages=tuple(self.messages))

    def ask_with(self, text: str) -> Answered:
        """The answer to a conversation of one message."""
        self.messages = [Message("user", text)]
        return self.ask()

    def says(self, text: str) -> Turn:
        """What the model answers to a message of the user."""
        self.messages.append(Message("user", text))
        return self.turn()

    def returns(self, *results: str) -> Turn:
        """What the model answers to the results of its calls."""
        for call, result in zip(self.messages[-1].calls, results, strict=True):
            self.messages.append(Message("tool", result, call_id=call.id, name=call.name))
        return self.turn()

    @property
    def facts(self) -> dict[str, Any]:
        """What the journal has of the last request."""
        return self.session.journal[-1].facts()
