"""Small streams written by hand, one for each verdict of the corpus command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.corpus import Recording

USED = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
_REQUEST = {
    "model": "m",
    "messages": [{"role": "user", "content": "?"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk as the service sends it; if `delta` is None it has no choices."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-2024",
        "choices": [] if delta is None else [choice],
        **more,
    }


def stream(*events: Any, done: bool = True) -> bytes:
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in [*lines, *["[DONE]"] * done]).encode()


OPENING = chunk({"role": "assistant", "content": "", "refusal": None})
CALL = {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": ""}}
CHAT: dict[str, bytes] = {
    "text": stream(
        OPENING,
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({}, "stop"),
        chunk(None, usage=USED),
    ),
    "call": stream(
        chunk(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"index": 0, **CALL}],
                "refusal": None,
            }
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
        chunk({}, "tool_calls"),
        chunk(None, usage=USED),
    ),
    "provider": stream(OPENING, chunk({"content": "a"}, provider="P"), chunk({}, "stop")),
    "list": stream(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": [{"type": "text", "text": "a"}]}),
        chunk({"content": "b"}, "stop", usage=USED),
    ),
    "lists": stream(
        *(chunk({"content": [{"type": "text", "text": text}]}) for text in "ab"),
        chunk({}, "stop", usage=USED),
    ),
    "late": stream(OPENING, chunk({}, "stop"), chunk(None, usage=USED), chunk(None, extra=1)),
    "groq": stream(OPENING, chunk({}, "stop", x_groq={"usage": USED})),
    "error": stream(OPENING, chunk({"content": "a"}), {"error": {"message": "no"}}, done=False),
}
"""Streams by their special feature."""


def chat(name: str) -> Recording:
    """One of the streams above as a recording."""
    return recording("chat", name, CHAT[name])


def recording(api: str, name: str, data: bytes) -> Recording:
    return Recording(api, name, "api.example", f"/v1/{api}", _REQUEST, data)


def responses() -> Recording:
    """A stream of the Responses API with one text."""
    part = {"type": "output_text", "annotations": [], "text": "Hi"}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant"}
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    usage = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    event_fields = [
        {"type": "created", "response": response},
        {"type": "in_progress", "response": response},
        {
            "type": "output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "content_part.added", **where, "part": {**part, "text": ""}},
        {"type": "output_text.delta", **where, "delta": "Hi"},
        {"type": "output_text.done", **where, "text": "Hi"},
        {"type": "content_part.done", **where, "part": part},
        {"type": "output_item.done", "output_index": 0, "item": {**item, "content": [part]}},
        {
            "type": "completed",
            "response": {
                **response,
                "status": "completed",
                "output": [{**item, "content": [part]}],
                "usage": usage,
            },
        },
    ]
    events = [{**event, "type": "response." + str(event["type"])} for event in event_fields]
    return Recording(
        "responses",
        "text",
        "api.example",
        "/v1/responses",
        {"model": "m", "input": "?", "stream": True},
        stream(*events, done=False),
    )


def write(root: Path, one: Recording) -> None:
    """Writes a recording to the folder that the command reads."""
    folder = root / one.api / one.name
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(one.request))
    (folder / "meta.json").write_text(json.dumps({"host": one.host, "path": one.path}))
    (folder / "response.sse").write_bytes(one.stream)
