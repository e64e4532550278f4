"""The requests that a client of Converse sends, with the model and the operation in the path."""

from __future__ import annotations

from mockllm.protocols.bedrock_converse.writing import parameters, write, write_messages
from mockllm.protocols.records import ClientRequests
from mockllm.protocols.writing import continuation, next_message

CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=continuation(write_messages),
    next_message=next_message(write_messages),
    path="/model/{model}/converse-stream",
    body_path="/model/{model}/converse",
    service="https://bedrock-runtime.us-east-1.amazonaws.com",
    group="bedrock",
    tool_fields=("toolConfig",),
    arguments_are_values=True,
)
