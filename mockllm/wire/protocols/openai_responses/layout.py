"""The assignment of a turn's parts to output items and their contents.

The layout is made once, before anything is sent, because the first event of an item has its index
and id. Stream and body use the same layout, so they agree. Only pure functions and data may live
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.events import Frame
from mockllm.core.seeded import derive
from mockllm.core.timeline import sequential
from mockllm.core.turn import Opaque, Part, Reasoning, ServerTool, ToolCall, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_responses import API
from mockllm.wire.protocols.openai_responses.objects import content, incomplete_reason, own_id
from mockllm.wire.protocols.openai_responses.server_tools import SERVER_TOOLS, encodable, item_type
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import json_object

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_PREFIXES |= {type: tool.prefix for type, tool in SERVER_TOOLS.items()}


@dataclass(frozen=True, slots=True)
class OutputItem:
    """One output item: its type, its parts by their indexes, and its finished JSON form."""

    id: str
    output_index: int
    kind: str
    parts: tuple[int, ...]
    value: Json


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a part: its item, its number there, and its index among the contents (or
    the summaries) of the item."""

    item: OutputItem
    number: int
    index: int

    @property
    def last(self) -> bool:
        """Whether it is the last part of its item."""
        return self.number == len(self.item.parts) - 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The position of each part of a turn, and the finished `output` of the response."""

    positions: Mapping[int, Position]
    output: list[Any]


@dataclass(slots=True)
class _Group:
    kind: str
    output_index: int
    parts: list[int] = field(default_factory=list)


def lay_out(turn: Turn, reply: Reply) -> Layout:
    """Assigns each part to a content of an output item. Consecutive parts share an item as the
    service groups them: text and refusals in a message, summaries (or texts) of reasoning up to a
    signature. Opaque frames keep their `output_index`."""
    groups: list[_Group | Json] = []
    spans = _spans(turn)
    group: _Group | None = None
    next_index = 0
    for i, part in enumerate(turn.parts):
        if isinstance(part, Opaque):
            if part.api == API:
                group = None
                next_index = max(next_index, _named_index(part.frame) + 1)
                groups += _hosted_item(part.frame)
            continue
        if group is None or not _joins(turn, spans, group, i):
            group = _Group(_kind(part), next_index)
            groups.append(group)
            next_index += 1
        group.parts.append(i)
    unfinished = max(spans, key=lambda i: spans[i][1]) if spans else -1
    if incomplete_reason(turn) is None:
        unfinished = -1
    positions: dict[int, Position] = {}
    output: list[Any] = []
    own = own_ids(turn)
    for entry in groups:
        if isinstance(entry, _Group):
            status = "incomplete" if unfinished in entry.parts else "completed"
            item = _item(turn, reply, entry, status, own)
            positions |= _positions(turn, item)
            output.append(item.value)
        else:
            output.append(entry)
    return Layout(positions, output)


def _positions(turn: Turn, item: OutputItem) -> dict[int, Position]:
    summaries = sum(_is_summary(turn.parts[i]) for i in item.parts)
    positions = {}
    for number, i in enumerate(item.parts):
        index = number if _is_summary(turn.parts[i]) else number - summaries
        positions[i] = Position(item, number, index)
    return positions


def _is_summary(part: Part) -> bool:
    return isinstance(part, Reasoning) and part.summary


def _spans(turn: Turn) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for beat, i in enumerate(turn.order or sequential(turn)):
        if not isinstance(turn.parts[i], Opaque):
            spans[i] = (spans.get(i, (beat, 0))[0], beat)
    return spans


def _kind(part: Part) -> str:
    match part:
        case ToolCall(custom=custom):
            return "custom_tool_call" if custom else "function_call"
        case ServerTool():
            return item_type(part).type
        case Reasoning():
            return "reasoning"
    return "message"


def bare(part: Part) -> bool:
    """Whether a part is reasoning without text: its item has at most encrypted content."""
    return isinstance(part, Reasoning) and not part.summary and part.fragments == ("",)


def _joins(turn: Turn, spans: dict[int, tuple[int, int]], group: _Group, i: int) -> bool:
    part, before = turn.parts[i], turn.parts[group.parts[-1]]
    # The service opens the contents of one item one after the other; items may overlap.
    if _kind(part) != group.kind or spans[i][0] < spans[group.parts[-1]][1]:
        return False
    if isinstance(part, Reasoning) and isinstance(before, Reasoning):
        signed = bool(before.signature)
        # An item has its summaries before its contents.
        return part.summary <= before.summary and not (signed or bare(part) or bare(before))
    return not isinstance(part, (ToolCall, ServerTool))


def _named_index(frame: Frame) -> int:
    index = (json_object(frame.data) or {}).get("output_index")
    return index if isinstance(index, int) and not isinstance(index, bool) else -1


def _hosted_item(frame: Frame) -> list[Json]:
    value = json_object(frame.data) or {}
    item = value.get("item")
    done = value.get("type") == "response.output_item.done" and "output_index" in value
    return [item] if done and isinstance(item, dict) else []


# Items


def own_ids(turn: Turn) -> Mapping[str, int]:
    """The ids that the turn gives to calls of hosted tools, with the index of the part. Several
    items cannot have one id, and derived ids belong to one answer only."""
    ids: dict[str, int] = {}
    for i, part in enumerate(turn.parts):
        if isinstance(part, ServerTool) and part.id and not own_id(part.id):
            ids.setdefault(part.id, i)
    return ids


def _item(
    turn: Turn, reply: Reply, group: _Group, status: str, own: Mapping[str, int]
) -> OutputItem:
    number = f"{reply.token}{group.output_index:04x}"
    id = f"{_PREFIXES[group.kind]}_{number}"
    parts = [turn.parts[i] for i in group.parts]
    # openai-python 3 refuses an item whose id changes between its events, so it is made once.
    value: Json = {"id": id, "type": group.kind}
    match parts[-1]:
        case ToolCall(custom=True) as call:
            fields = {"call_id": call.id, "input": call.arguments}
            value |= {"status": status, **fields, **_names(call, reply)}
        case ToolCall() as call:
            value |= {
                "status": status,
                "arguments": "".join(call.fragments) if call.fragments else "{}",
                "call_id": call.id,
                **_names(call, reply),
            }
        case ServerTool() as call:
            known = call.id if own.get(call.id) == group.parts[0] else ""
            value |= _server_tool_fields(reply, call, known, number, status)
            id = value["id"]
        case Reasoning() as last:
            value |= _reasoning_fields(reply, group, parts, last, status)
        case _:
            value["status"] = status
            value["content"] = [content(part) for part in parts]
            value["role"] = "assistant"
    return OutputItem(id, group.output_index, group.kind, tuple(group.parts), value)


def _names(call: ToolCall, reply: Reply) -> Json:
    namespace = dict(reply.options.namespaces).get(call.name)
    name = dict(reply.options.own_names).get(call.name, call.name)
    return {"name": name} | ({} if namespace is None else {"namespace": namespace})


def _server_tool_fields(reply: Reply, call: ServerTool, id: str, number: str, status: str) -> Json:
    call = encodable(call)
    tool = item_type(call)
    fields = tool.write(call)
    if "container_id" in fields:
        fields["container_id"] = "cntr_" + derive(reply.seed, "container", length=48, hex=True)
    if tool.has_status:
        fields = {"status": "failed" if fields.get("error") else status, **fields}
    if not tool.calls:
        return {"id": id or f"{tool.prefix}_{number}", "type": tool.type, **fields}
    hosted = fields.get("execution") == "server"
    call_id = id or (None if hosted else f"call_{number}")
    return {**fields, "call_id": call_id}


def _reasoning_fields(
    reply: Reply, group: _Group, parts: list[Part], last: Reasoning, status: str
) -> Json:
    # The scenario's signature is always sent. A derived one is sent only if the request includes
    # `reasoning.encrypted_content`: such clients send it back instead of using stored responses.
    signature = last.signature
    if not signature and reply.options.encrypted:
        signature = "gAAAAA" + derive(reply.seed, "encrypted", group.output_index, length=82)
    encrypted = {"encrypted_content": signature} if signature else {}
    if bare(last):
        return {**encrypted, "summary": []}
    summary = [content(part) for part in parts if _is_summary(part)]
    if last.summary:
        return {**encrypted, "summary": summary}
    contents = [content(part) for part in parts[len(summary) :]]
    return {"status": status, **encrypted, "summary": summary, "content": contents}


_EMPTY = {"content": [], "summary": [], "arguments": "", "input": ""}
_IDENTITY = ("id", "type", "status")


def opening(item: OutputItem) -> Json:
    """The item in `response.output_item.added`: in progress and empty."""
    tool = SERVER_TOOLS.get(item.kind)
    empty = {**(_EMPTY if tool is None else tool.opening), "status": "in_progress"}
    names = [name for name in item.value if not (tool and tool.bare) or name in _IDENTITY]
    return {name: empty.get(name, item.value[name]) for name in names}
