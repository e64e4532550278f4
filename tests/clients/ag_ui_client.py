"""A small client of AG-UI, built with the official Python types.

It enforces the rules of the protocol strictly, and fails where an agent breaks them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
from ag_ui.core import (
    AssistantMessage,
    Event,
    FunctionCall,
    Message,
    ReasoningMessage,
    RunAgentInput,
    ToolCall,
)
from pydantic import TypeAdapter

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen, read_arguments
from tests.wire.protocols.strict import problems

EVENT: TypeAdapter[Any] = TypeAdapter(Event)
MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


class RunError(Exception):
    """A run that failed or was refused; `text` is the text before the error."""

    def __init__(self, message: str, status: int = 200, text: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.text = text


def run_input(request: Json) -> RunAgentInput:
    """The input of a run for a request; messages without an id get one."""
    messages = request["messages"]
    with_ids = [
        {"id": f"message-{index}", **each} for index, each in enumerate(map(_plain, messages))
    ]
    return RunAgentInput(
        thread_id="thread-1",
        run_id=f"run-{len(messages)}",
        state={},
        messages=MESSAGES.validate_python(with_ids),
        tools=request.get("tools", []),
        context=[],
        forwarded_props={"model": request["model"]},
    )


def _plain(message: Any) -> Json:
    value: Json = message if isinstance(message, dict) else _json(message)
    return value


def _json(model: Any) -> Any:
    return json.loads(model.model_dump_json(by_alias=True, exclude_none=True))


def send(http: httpx.Client, url: str, request: Json, *, retries: int = 2) -> Answer:
    """Runs the agent at a URL and accumulates the events of the run.

    Raises:
        RunError: the run ended in an error, or was refused; status 429 after all retries.
    """
    given = run_input(request)
    body = _json(given)
    assert problems(RunAgentInput, body) == []
    answer = http.post(url, json=body, headers={"accept": "text/event-stream"})
    if answer.status_code != 200:
        if answer.status_code == 429 and retries:
            return send(http, url, request, retries=retries - 1)
        raise RunError(answer.text, answer.status_code)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return Run(given).read(events(answer.text))


def events(text: str) -> Iterator[Any]:
    """The events of a stream, each validated against the official types."""
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if not lines:
            continue
        (line,) = lines
        assert line.startswith("data: ")
        value = json.loads(line.removeprefix("data: "))
        assert problems(Event, value) == []
        yield EVENT.validate_python(value)


@dataclass
class Run:
    """The state of one run: its messages, and the messages and calls that are open."""

    given: RunAgentInput
    messages: list[Any] = field(default_factory=list)
    _open: dict[str, Any] = field(default_factory=dict)

    def read(self, events: Iterator[Any]) -> Answer:
        """Reads all events of a run."""
        started, *others, last = events
        assert started.type.value == "RUN_STARTED"
        assert (started.thread_id, started.run_id) == (self.given.thread_id, self.given.run_id)
        for event in others:
            getattr(self, event.type.value.lower())(event)
        text = self._joined("assistant")
        if last.type.value == "RUN_ERROR":
            raise RunError(last.message, text=text)
        assert last.type.value == "RUN_FINISHED"
        assert (last.thread_id, last.run_id) == (self.given.thread_id, self.given.run_id)
        assert not self._open
        (usage,) = last.usage
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens
        seen = Seen(
            text=text,
            reasoning=self._joined("reasoning"),
            calls=tuple(
                (call.id, call.function.name, read_arguments(call.function.arguments or "{}"))
                for message in self.messages
                for call in getattr(message, "tool_calls", None) or ()
            ),
            finish=last.type.value,
            usage=(
                usage.input_tokens,
                usage.output_tokens,
                usage.reasoning_tokens,
                usage.cached_input_tokens,
            ),
        )
        return Answer(seen, list(self.messages), last.run_id)

    def _joined(self, role: str) -> str:
        return "".join(each.content or "" for each in self.messages if each.role == role)

    def _begin(self, id: str, message: Any) -> None:
        assert id not in self._open
        self._open[id] = message
        self.messages.append(message)

    # One method for each type of event; an event of any other type is an error.

    def text_message_start(self, event: Any) -> None:
        assert event.role == "assistant"
        assert all(message.id != event.message_id for message in self.messages)
        self._begin(event.message_id, AssistantMessage(id=event.message_id, content=""))

    def text_message_content(self, event: Any) -> None:
        assert event.delta
        self._open[event.message_id].content += event.delta

    def text_message_end(self, event: Any) -> None:
        del self._open[event.message_id]

    def reasoning_start(self, event: Any) -> None:
        assert event.message_id not in self._open

    def reasoning_end(self, event: Any) -> None:
        assert event.message_id not in self._open

    def reasoning_message_start(self, event: Any) -> None:
        self._begin(event.message_id, ReasoningMessage(id=event.message_id, content=""))

    reasoning_message_content = text_message_content
    reasoning_message_end = text_message_end

    def reasoning_encrypted_value(self, event: Any) -> None:
        entities = {message.id: message for message in self.messages}
        entities[event.entity_id].encrypted_value = event.encrypted_value

    def tool_call_start(self, event: Any) -> None:
        function = FunctionCall(name=event.tool_call_name, arguments="")
        call = ToolCall(id=event.tool_call_id, function=function)
        assert event.tool_call_id not in self._open
        self._open[event.tool_call_id] = call
        parent = next((m for m in self.messages if m.id == event.parent_message_id), None)
        if parent is None:
            parent = AssistantMessage(id=event.parent_message_id)
            self.messages.append(parent)
        parent.tool_calls = [*(parent.tool_calls or ()), call]

    def tool_call_args(self, event: Any) -> None:
        self._open[event.tool_call_id].function.arguments += event.delta

    def tool_call_end(self, event: Any) -> None:
        del self._open[event.tool_call_id]
