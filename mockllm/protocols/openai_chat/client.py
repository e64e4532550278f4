"""The requests that a client of Chat Completions sends."""

from __future__ import annotations

from mockllm.protocols.openai_chat.writing import parameters, write, write_messages
from mockllm.protocols.records import ClientRequests
from mockllm.protocols.writing import continuation, next_message

CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=continuation(write_messages),
    next_message=next_message(write_messages),
    path="/v1/chat/completions",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice", "functions", "function_call"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    usage={"stream_options": {"include_usage": True}},
    # `functions`, deprecated in favour of `tools` in 2023, has no call ids.
    may_lack_call_ids=lambda body: "functions" in body,
)
