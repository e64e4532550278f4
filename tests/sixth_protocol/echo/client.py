"""How a client of the Echo API writes its requests."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.protocols.records import ClientRequests, Json
from mockllm.protocols.values import tool_schema


def _first_request(model: str, user: str) -> Json:
    return {"speaker": model, "live": True, "dialogue": [{"who": "human", "line": user}]}


def _tools(tools: Sequence[OfferedTool]) -> Json:
    return {
        "gadgets": [
            {"title": tool.name, "about": tool.description, "settings": tool_schema(tool)}
            for tool in tools
        ]
    }


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    cues = [{"cue": call.id, "gadget": call.name, "settings": call.arguments} for call in calls]
    heard = [
        {"who": "gadget", "cue": call.id, "line": text}
        for call, text in zip(calls, results, strict=True)
    ]
    more = [{"who": "machine", "line": "", "cues": cues}, *heard]
    return {**body, "dialogue": [*body["dialogue"], *more]}


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    more = [{"who": "machine", "line": text}, {"who": "human", "line": user}]
    return {**body, "dialogue": [*body["dialogue"], *more]}


CLIENT = ClientRequests(
    first_request=_first_request,
    tools=_tools,
    continuation=_continuation,
    next_message=_next_message,
    path="/echo/v2/speak",
    service="https://echo.example",
    group="echo",
    headers={"x-echo-key": "mock-key"},
    stream_field="live",
    tool_fields=("gadgets", "pick"),
)
