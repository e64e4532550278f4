"""ag-ui-protocol: the official Python types of AG-UI, which has no client in Python.

mockllm's SSE decoder splits the stream, the package's types validate every event, and the events
are accumulated here by the ids that they name.
"""

from __future__ import annotations

from typing import Any

import httpx
from ag_ui.core import (
    Event,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    Tool,
    UserMessage,
)
from job import Job
from pydantic import TypeAdapter

from mockllm.wire.framing.sse import SSEDecoder

__all__ = ["agent"]

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)


def agent(job: Job) -> dict[str, Any]:
    """One run of an agent."""
    given = RunAgentInput(
        thread_id="thread-1",
        run_id="run-1",
        state={},
        messages=[UserMessage(id="user-1", content=job.prompt)],
        tools=[Tool(**function) for function in job.functions],
        context=[],
        forwarded_props={},
    )
    run, decoder = _Run(), SSEDecoder()
    with httpx.stream(
        "POST",
        job.base_url,
        content=given.model_dump_json(by_alias=True, exclude_none=True),
        headers={"content-type": "application/json", "accept": "text/event-stream"},
        timeout=job.deadline,
    ) as response:
        response.raise_for_status()
        for chunk in response.iter_raw():
            for frame in decoder.decode(chunk):
                if frame.data:  # a frame without data is no event
                    run.read(_EVENT.validate_json(frame.data))
    return run.outcome()


class _Run:
    """The events of one run, added up by the ids that they name.

    Whatever no type can see (an id that no event opened) is an exception in this file, so the case
    says nothing about the package.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._thoughts: dict[str, str] = {}
        self._calls: dict[str, dict[str, str]] = {}
        self._end: RunFinishedEvent | RunErrorEvent | None = None

    def read(self, event: Any) -> None:
        match event.type.value:
            case "TEXT_MESSAGE_START":
                self._texts[event.message_id] = ""
            case "TEXT_MESSAGE_CONTENT":
                self._texts[event.message_id] += event.delta
            case "REASONING_MESSAGE_START":
                self._thoughts[event.message_id] = ""
            case "REASONING_MESSAGE_CONTENT":
                self._thoughts[event.message_id] += event.delta
            case "TOOL_CALL_START":
                self._call(event)
            case "TOOL_CALL_ARGS":
                self._calls[event.tool_call_id]["arguments"] += event.delta
            case "TEXT_MESSAGE_CHUNK" | "REASONING_MESSAGE_CHUNK" | "TOOL_CALL_CHUNK":
                self._chunk(event)
            case "RUN_FINISHED" | "RUN_ERROR":
                self._end = event

    def _call(self, event: Any) -> None:
        id = event.tool_call_id
        self._calls[id] = {"id": id, "name": event.tool_call_name, "arguments": ""}

    def _chunk(self, event: Any) -> None:
        """The first chunk with an id begins a message or call; later ones continue it."""
        delta = event.delta or ""
        if event.type.value == "TOOL_CALL_CHUNK":
            if event.tool_call_id not in self._calls:
                self._call(event)
            self._calls[event.tool_call_id]["arguments"] += delta
            return
        texts = self._texts if event.type.value == "TEXT_MESSAGE_CHUNK" else self._thoughts
        texts[event.message_id] = texts.get(event.message_id, "") + delta

    def outcome(self) -> dict[str, Any]:
        end = self._end
        return {
            "text": "".join(self._texts.values()),
            "reasoning": "".join(self._thoughts.values()),
            "tool_calls": list(self._calls.values()),
            "finish": None if end is None else end.type.value,
            "usage": _usage(end.usage) if isinstance(end, RunFinishedEvent) else None,
            "errors": [end.message] if isinstance(end, RunErrorEvent) else [],
        }


def _usage(entries: Any) -> dict[str, Any] | None:
    """The sum over the models that a run used."""
    if not entries:
        return None

    def total(name: str) -> int | None:
        numbers = [n for each in entries if (n := getattr(each, name)) is not None]
        return sum(numbers) if numbers else None

    return {
        "input": total("input_tokens"),
        "output": total("output_tokens"),
        "reasoning": total("reasoning_tokens"),
        "cached": total("cached_input_tokens"),
    }
