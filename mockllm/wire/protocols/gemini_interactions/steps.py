"""The steps of an interaction: how each opens, and what the deltas of a stream add to it.

https://ai.google.dev/api/interactions-api#Resource:Step
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from mockllm.core.events import Cite
from mockllm.core.seeded import derive
from mockllm.core.turn import Reasoning, ServerTool, ToolCall
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.gemini_common import signature_of
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import (
    array,
    base64_bytes,
    count,
    json_object,
    mapping,
    objects,
    sendable_value,
    string,
)

TEXT, THOUGHT, CALL = "model_output", "thought", "function_call"

# Thoughts, calls and media


def thought_signature(part: Reasoning) -> str:
    """The signature of a thought, which the service always sends, as base64; derived from its text
    where the turn has none."""
    if part.signature:
        return signature_of(part.signature)
    return "CiQB" + derive(part.text, "signature", length=60)


def opened_call(call: ToolCall) -> Json:
    """The start of a call of a function. The service signs the thought before it, and leaves its
    own signature empty."""
    signature = signature_of(call.signature) if call.signature else ""
    named = {"id": call.id, "signature": signature, "type": CALL, "name": call.name}
    return {**named, "arguments": {}}


def media(media_type: str, data: bytes) -> Json:
    """The content with an image, or with a piece of sound."""
    kind = media_type.partition("/")[0]
    return {"data": base64.b64encode(data).decode(), "mime_type": media_type, "type": kind}


def read_media(content: Fields) -> tuple[str, bytes] | None:
    """The media type and the bytes of a content; None for one that has more, or something else."""
    kind, media_type = content.get("type"), string(content.get("mime_type"))
    data = base64_bytes(content.get("data"))
    if content.keys() != {"data", "mime_type", "type"} or kind not in ("image", "audio"):
        return None
    return (media_type, data) if data and media_type.startswith(f"{kind}/") else None


# Citations


def annotation(cite: Cite, text: str) -> Json:
    """A citation of a web page; its indexes count bytes of UTF-8. One that cites no text of the
    answer has an empty span at the end."""
    at = text.find(cite.cited_text) if cite.cited_text else -1
    start = _size(text if at < 0 else text[:at])
    end = start if at < 0 else start + _size(cite.cited_text)
    titled = {"title": cite.title} if cite.title else {}
    span = {"start_index": start, "end_index": end}
    return {**span, "url": cite.url, **titled, "type": "url_citation"}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def read_annotations(value: object, part: int, text: str) -> list[Cite] | None:
    """The citations of a text; None where some are of another kind, or are none."""
    given = array(value)
    if not given or any(mapping(one).get("type") != "url_citation" for one in given):
        return None
    data = text.encode("utf-8", "surrogatepass")
    return [_read_cite(one, part, data) for one in given]


def _read_cite(value: Fields, part: int, data: bytes) -> Cite:
    start, end = (max(0, count(value.get(name))) for name in ("start_index", "end_index"))
    cited = data[start:end].decode("utf-8", "replace")
    return Cite(part, string(value.get("url")), string(value.get("title")), cited)


# Tools of the service

_KINDS = {
    "web_search": "google_search",
    "code_interpreter": "code_execution",
    "web_fetch": "url_context",
    "mcp": "mcp_server_tool",
} | {name: name for name in ("file_search", "google_maps", "retrieval", "processing")}
"""By neutral kind, the beginning of the types of the steps with the call and the result."""
_NEUTRAL = {wire: kind for kind, wire in _KINDS.items()}
_RESULT_FIELDS = {"google_search": "search_suggestions", "url_context": "url"}
"""A field of each item of a result, by the beginning of the type of its step."""


def is_server_step(type: str) -> bool:
    """Whether a step is the call or the result of a tool that the service hosts."""
    return _base(type) in _NEUTRAL


def is_result(type: str) -> bool:
    """Whether it is a result."""
    return type.endswith("_result")


def _base(type: str) -> str:
    return type.removesuffix("_result") if is_result(type) else type.removesuffix("_call")


def neutral_kind(type: str) -> str:
    """The neutral kind of the tool of a step."""
    return _NEUTRAL[_base(type)]


def call_step(tool: ServerTool) -> tuple[Json, Json] | None:
    """The start of the step with a call, and the fields that its only delta has; None for a result
    alone, for tools of other services, and for an input that is no object."""
    base, arguments = _KINDS.get(tool.kind), json_object(tool.input or "{}")
    if base is None or tool.name == f"{base}_result" or arguments is None:
        return None
    opened = {"id": _tool_id(tool), "signature": "", "type": f"{base}_call"}
    named = {"name": tool.name or tool.kind, "server_name": tool.kind} if tool.kind == "mcp" else {}
    given = {"arguments": arguments} if tool.input or base != "file_search" else {}
    return {**opened, **named}, given


def result_step(tool: ServerTool) -> tuple[Json, Json] | None:
    """The same for the step with its result; None without one, and for one in the form of another
    service."""
    base = _KINDS.get(tool.kind)
    is_alone = tool.name == f"{base}_result"
    if base is None or tool.output is None or (call_step(tool) is None and not is_alone):
        return None
    value = sendable_value(tool.output)
    fields = value if _is_whole(value) else {"result": value}
    if not _has_form(base, fields):
        return None
    opened = {"call_id": _tool_id(tool), "signature": "", "type": f"{base}_result"}
    return opened, fields


def _is_whole(output: object) -> bool:
    """Whether a neutral output is all fields of a result, and not its `result` alone."""
    return isinstance(output, dict) and ("result" in output or not output)


def _has_form(base: str, fields: Json) -> bool:
    if fields.keys() - {"result", "is_error", "name", "server_name"}:
        return False
    result, name = fields.get("result"), _RESULT_FIELDS.get(base)
    if name is not None:
        return isinstance(result, list) and all(name in mapping(item) for item in result)
    return base != "code_execution" or isinstance(result, str)


def _tool_id(tool: ServerTool) -> str:
    return tool.id or derive(tool.kind, "server tool", tool.input, length=8, hex=True)


_OPENED = frozenset({"id", "call_id", "signature", "type"})


def read_input(step: Fields) -> str:
    """The neutral input of a call; "" for one without arguments."""
    return dumps(step["arguments"]) if "arguments" in step else ""


def read_output(step: Fields) -> str:
    """The neutral output of a result: its `result`, or an object where it has more, or none."""
    fields = {name: value for name, value in step.items() if name not in _OPENED}
    only = fields.keys() == {"result"} and not _is_whole(fields["result"])
    return dumps(fields["result"] if only else fields)


# What the deltas of a stream add up to


def _add_text(contents: list[Json], content: Fields) -> None:
    """Adds a content; a text is joined to one before it."""
    if content.get("type") == "text" and contents and contents[-1].get("type") == "text":
        contents[-1]["text"] += string(content.get("text"))
    else:
        contents.append(dict(content))


def _add_annotations(step: Json, delta: Fields) -> None:
    texts = [content for content in objects(step.get("content")) if content.get("type") == "text"]
    for content in texts[-1:]:
        content["annotations"] = [*array(content.get("annotations")), *array(delta["annotations"])]


def _add_arguments(step: Json, delta: Fields) -> None:
    before = step.get("arguments")
    step["arguments"] = string(before) + string(delta.get("arguments"))


def _add_signature(step: Json, delta: Fields) -> None:
    if delta.get("signature"):
        step["signature"] = delta["signature"]


def _add_media(step: Json, delta: Fields) -> None:
    contents, piece = step.setdefault("content", []), read_media(delta)
    last = read_media(contents[-1]) if contents else None
    if piece and last and piece[0] == last[0] and delta["type"] == "audio":
        contents[-1] = media(piece[0], last[1] + piece[1])
    else:
        contents.append(dict(delta))


_ADDERS: Mapping[str, Callable[[Json, Fields], None]] = {
    "text": lambda step, delta: _add_text(step.setdefault("content", []), delta),
    "thought_summary": lambda step, delta: _add_text(
        step.setdefault("summary", []), mapping(delta.get("content"))
    ),
    "text_annotation_delta": _add_annotations,
    "arguments_delta": _add_arguments,
    "thought_signature": _add_signature,
    **dict.fromkeys(("image", "audio", "video", "document"), _add_media),
}


JOINED = ("content", "summary")
"""The fields of a step that its deltas add up to, item by item."""


def deltas_of(step: Fields) -> list[Json]:
    """The deltas that add up to the contents and the summaries of a step."""
    deltas: list[Json] = [
        {"content": content, "type": "thought_summary"} for content in objects(step.get("summary"))
    ]
    for content in objects(step.get("content")):
        cited = array(content.get("annotations"))
        deltas.append({name: value for name, value in content.items() if name != "annotations"})
        if cited:
            deltas.append({"annotations": cited, "type": "text_annotation_delta"})
    return deltas


class Accumulator:
    """The steps of a body: what the events of its stream add up to."""

    def __init__(self) -> None:
        self._steps: dict[Any, Json] = {}

    def add(self, event: Fields) -> None:
        """Adds an event of the stream."""
        index, delta = event.get("index"), mapping(event.get("delta"))
        if event.get("event_type") == "step.start":
            self._steps[index] = dict(mapping(event.get("step")))
        elif event.get("event_type") == "step.delta" and index in self._steps:
            add = _ADDERS.get(string(delta.get("type")))
            if add is None:
                self._steps[index] |= delta
            else:
                add(self._steps[index], delta)

    def steps(self) -> list[Json]:
        """The steps, with arguments as JSON values: their text where they are no object."""
        for step in self._steps.values():
            if isinstance(step.get("arguments"), str):
                value = sendable_value(step["arguments"])
                step["arguments"] = value if isinstance(value, dict) else step["arguments"]
            if step.get("signature") == "":
                del step["signature"]
            if step.get("type") in (TEXT, THOUGHT):  # the service writes the type last
                step["type"] = step.pop("type")
        return list(self._steps.values())
