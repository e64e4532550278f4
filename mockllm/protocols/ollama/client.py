"""The requests that a client of `/api/chat` sends; each has the whole history. The Python SDK keeps
no ids of calls, so the history of a conversation has none; the name of its tool says to which call
a result belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mockllm.core.request import Message
from mockllm.protocols.ollama.writing import parameters, write, write_messages
from mockllm.protocols.records import ClientRequests, Json
from mockllm.protocols.writing import continuation, next_message


def _without_ids(messages: Sequence[Message]) -> list[Json]:
    bare = [
        replace(message, call_id="", calls=tuple(replace(call, id="") for call in message.calls))
        for message in messages
    ]
    return write_messages(bare)


CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=continuation(_without_ids),
    next_message=next_message(write_messages),
    path="/api/chat",
    service="http://127.0.0.1:11434",
    group="ollama",
    stream_field="stream",
    arguments_are_values=True,
    may_lack_call_ids=lambda _: True,
)
