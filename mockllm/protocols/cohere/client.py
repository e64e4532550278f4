"""The requests that a client of Cohere sends."""

from __future__ import annotations

from mockllm.protocols.cohere.writing import parameters, write, write_messages
from mockllm.protocols.records import ClientRequests
from mockllm.protocols.writing import continuation, next_message

CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=continuation(write_messages),
    next_message=next_message(write_messages),
    path="/v2/chat",
    service="https://api.cohere.com",
    group="cohere",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
)
