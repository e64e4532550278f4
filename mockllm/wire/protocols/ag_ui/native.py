"""The events of AG-UI that are no text, reasoning or call: the keys that each must and may have.

https://docs.ag-ui.com/concepts/events

The encoder adds `threadId`, `runId` and `usage` of RUN_FINISHED, and a `messageId` that is left
out. Other events, and those with other keys, are frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mockllm.wire.protocols.native import (
    Mistake,
    Shape,
    anything,
    boolean,
    by_key,
    either,
    integer,
    items,
    keys,
    mapping,
    one_of,
    text,
)

_Shapes = dict[str, Shape]

_OF_ALL: _Shapes = {"timestamp": integer, "rawEvent": anything, "metadata": mapping}
_OF_AGENTS: _Shapes = {**_OF_ALL, "subagentRunId": text}
_OF_MESSAGES: _Shapes = {"name": text, "encryptedValue": text, "metadata": mapping}
_OF_MESSAGES["subagentRunId"] = text


def _pointer(value: Any) -> Iterator[Mistake]:
    # RFC 6901: "" is the whole document.
    yield from text(value)
    if isinstance(value, str) and value and not value.startswith("/"):
        yield (), f"must be a JSON Pointer, which begins with '/', got {value!r}"


_TO = {"path": _pointer, "value": anything}
_FROM = {"from": _pointer, "path": _pointer}
_PATCH = items(
    by_key(
        "op",
        {
            "add": keys(_TO),
            "remove": keys({"path": _pointer}),
            "replace": keys(_TO),
            "move": keys(_FROM),
            "copy": keys(_FROM),
            "test": keys(_TO),
        },
    )
)
"""A JSON Patch (RFC 6902)."""

_SOURCES = {
    "data": keys({"value": text, "mimeType": text}),
    "url": keys({"value": text}, {"mimeType": text}),
    "file": keys({"value": text}, {"provider": text, "mimeType": text}),
}
_OF_PARTS: _Shapes = {"id": text, "metadata": anything}
_MEDIA = keys({"source": by_key("type", _SOURCES)}, _OF_PARTS)
_PARTS = {
    "text": keys({"text": text}, _OF_PARTS),
    **dict.fromkeys(("image", "audio", "video", "document"), _MEDIA),
}
_CONTENT = either(list, items(by_key("type", _PARTS)), text)
_CALL = keys(
    {"id": text, "function": keys({"name": text, "arguments": text})},
    {"type": one_of("function"), "encryptedValue": text, "metadata": mapping},
)


def _message(required: _Shapes, others: _Shapes | None = None) -> Shape:
    return keys({"id": text, **required}, {**_OF_MESSAGES, **(others or {})})


_MESSAGE = by_key(
    "role",
    {
        "user": _message({"content": _CONTENT}),
        "assistant": _message({}, {"content": text, "toolCalls": items(_CALL)}),
        "tool": _message({"content": _CONTENT, "toolCallId": text}, {"error": text}),
        "system": _message({"content": text}),
        "developer": _message({"content": text}),
        "reasoning": _message({"content": text}),
        "activity": _message({"activityType": text, "content": mapping}),
    },
)
_INTERRUPT = keys(
    {"id": text, "reason": text},
    {
        "message": text,
        "toolCallId": text,
        "responseSchema": mapping,
        "expiresAt": text,
        "metadata": mapping,
        "subagentRunId": text,
    },
)
_OUTCOMES = {
    "interrupt": keys({"interrupts": items(_INTERRUPT, least=1)}),
    "cancelled": keys({}),
}
_SUBAGENT_OUTCOMES = {
    "success": keys({}),
    "suspended": keys({}, {"interruptIds": items(text)}),
}


def _result(value: Any) -> Iterator[Mistake]:
    if value is None:
        yield (), "must not be null; leave it out where there is none"


_END = keys({}, {"result": _result, "outcome": by_key("type", _OUTCOMES), **_OF_ALL})


def _run_finished(value: Any) -> Iterator[Mistake]:
    yield from _END(value)
    if not {"outcome", "result"} & value.keys():
        yield (), "needs the key 'outcome' or 'result'; the usual end of a run is sent by itself"


def _event(required: _Shapes, others: _Shapes | None = None) -> Callable[[Any], Iterator[Mistake]]:
    return keys(required, {**(others or {}), **_OF_AGENTS})


NATIVE: _Shapes = {
    "STATE_SNAPSHOT": _event({"snapshot": anything}),
    "STATE_DELTA": _event({"delta": _PATCH}),
    "STEP_STARTED": _event({"stepName": text}),
    "STEP_FINISHED": _event({"stepName": text}),
    "ACTIVITY_SNAPSHOT": _event(
        {"activityType": text, "content": mapping}, {"messageId": text, "replace": boolean}
    ),
    "ACTIVITY_DELTA": _event({"activityType": text, "patch": _PATCH}, {"messageId": text}),
    "CUSTOM": _event({"name": text, "value": anything}),
    "RAW": _event({"event": anything}, {"source": text}),
    "MESSAGES_SNAPSHOT": keys({"messages": items(_MESSAGE)}, _OF_ALL),
    "TOOL_CALL_RESULT": _event(
        {"toolCallId": text, "content": _CONTENT}, {"messageId": text, "role": one_of("tool")}
    ),
    "SUBAGENT_STARTED": keys(
        {"subagentRunId": text, "name": text},
        {
            "description": text,
            "parentSubagentRunId": text,
            "parentToolCallId": text,
            "parentMessageId": text,
            **_OF_ALL,
        },
    ),
    "SUBAGENT_FINISHED": keys(
        {"subagentRunId": text},
        {"result": anything, "outcome": by_key("type", _SUBAGENT_OUTCOMES), **_OF_ALL},
    ),
    "SUBAGENT_ERROR": keys({"subagentRunId": text, "message": text}, {"code": text, **_OF_ALL}),
    "RUN_FINISHED": _run_finished,
}
"""The shapes of events by their types."""
