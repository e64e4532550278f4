"""The requests that a client of Completions sends. A conversation is a text in the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.turn import ToolCall
from mockllm.protocols.openai_completions.prompts import continued
from mockllm.protocols.openai_completions.writing import parameters, write
from mockllm.protocols.records import ClientRequests, Json


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    """An answer has no calls. What another API would send as their results is said by the user."""
    return _next_message(body, answer, "", "\n".join(results))


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    return {**body, "prompt": continued(body["prompt"], text, user)}


CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=_continuation,
    next_message=_next_message,
    path="/v1/completions",
    service="https://api.openai.com",
    group="openai",
    tool_fields=(),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    usage={"stream_options": {"include_usage": True}},
)
