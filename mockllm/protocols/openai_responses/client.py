"""The requests that a client of Responses sends: a continuation names the earlier answer by id.

With `store: false` the service keeps no items, so it refuses a reasoning item that has only its id.
It refuses encrypted content that it did not make:
https://platform.openai.com/docs/guides/reasoning#encrypted-reasoning-items
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mockllm.core.request import Request
from mockllm.core.text import display
from mockllm.core.turn import Reasoning, ToolCall, Turn
from mockllm.protocols.openai_responses.parts import CALLS
from mockllm.protocols.openai_responses.writing import CLIENT_RESULTS, parameters, write
from mockllm.protocols.records import ClientRequests, Fields, Json
from mockllm.protocols.values import array, objects


def _opaque_mistake(request: Request, turn: Turn) -> str | None:
    """Why the service refuses the reasoning items of the latest turn; None if it does not. Only
    encrypted content that the scenario gives is compared. To leave the item out is right."""
    streamed = [part.signature for part in turn.parts if isinstance(part, Reasoning)]
    if not streamed or not all(streamed) or request.body.get("store") is not False:
        return None
    calls = {call.id for call in turn.tool_calls}
    for item in _reasoning_before(request, calls):
        encrypted = item.get("encrypted_content")
        if encrypted is None:
            return (
                f"the reasoning item {display(item.get('id'))} is sent back without its encrypted "
                "content, and with `store: false` the service has no other copy; a client sends "
                "back `encrypted_content`"
            )
        if encrypted not in streamed:
            return (
                f"encrypted reasoning is sent back as {display(encrypted)}, but was streamed as "
                f"{display(streamed[0])}; a client sends back encrypted content unchanged"
            )
    return None


def _reasoning_before(request: Request, calls: set[str]) -> Iterator[Fields]:
    items = request.body.get("input")
    pending: list[Fields] = []
    for item in array(items):
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "reasoning":
            pending.append(item)
        elif kind in CALLS and item.get("call_id") in calls:
            yield from pending
            pending = []
        elif kind != "message" or item.get("role") != "assistant":
            pending = []


_HOSTED_ID = ("call_id", "approval_request_id")


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    outputs = [
        {"type": CLIENT_RESULTS[call.custom], "call_id": call.id, "output": text}
        for call, text in zip(calls, results, strict=True)
    ]
    return {**body, "previous_response_id": answer, "input": outputs}


def _hosted_results(body: Fields) -> frozenset[str]:
    return frozenset(
        item[name]
        for item in objects(body.get("input"))
        if item.get("type") not in CLIENT_RESULTS
        # Results of a local shell have the id of the call as their own.
        for name in (*_HOSTED_ID, *["id"] * (item.get("type") == "local_shell_call_output"))
        if isinstance(item.get(name), str)
    )


CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=_continuation,
    next_message=lambda body, answer, _text, user: {
        **body,
        "previous_response_id": answer,
        "input": user,
    },
    path="/v1/responses",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    hosted_results=_hosted_results,
    opaque_mistake=_opaque_mistake,
)
