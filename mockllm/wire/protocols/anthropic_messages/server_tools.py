"""Tools that the service runs itself: their names, and the blocks of their calls and results.

https://docs.claude.com/en/docs/agents-and-tools/tool-use/server-tools

A call is a `server_tool_use` block (`mcp_tool_use` for a tool of an MCP server), its result a block
whose type ends in `_tool_result`. A result that directly follows its call is one neutral part with
it. Any other result is a part of its own, whose name is the type of its block.
"""

from __future__ import annotations

import re

from mockllm.core.seeded import derive
from mockllm.core.turn import ServerTool, Turn
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import json_object, mapping, sendable_value, string

DIRECT = {"type": "direct"}
"""The `caller` of a call by the model; code that it runs can call tools, too."""

USES = frozenset({"server_tool_use", "mcp_tool_use"})
"""The types of blocks with a call that the service answers."""

_RESULT = re.compile(r"\w+_tool_result\Z")
_MCP = "mcp"

# By neutral kind: the names of the tools on the wire, the usual one first.
_NAMES = {
    "web_search": ("web_search",),
    "web_fetch": ("web_fetch",),
    "code_interpreter": ("code_execution",),
    "bash_code_execution": ("bash_code_execution",),
    "text_editor_code_execution": ("text_editor_code_execution",),
    "advisor": ("advisor",),
    "tool_search": ("tool_search_tool_bm25", "tool_search_tool_regex"),
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
_RESULT_KINDS = {"code_execution": "code_interpreter"}
_OWN_IDS = ("srvtoolu_", "mcptoolu_")
_CALLED = ("web_search", "web_fetch")
"""Tools that code can call, so that their results state a `caller`."""


def is_result(type: str) -> bool:
    """Whether a block of this type is the result of a tool of the service."""
    return _RESULT.match(type) is not None


# Neutral parts to blocks


def wire_name(part: ServerTool) -> str | None:
    """The `name` of a call, or the type of the block of a result alone; None if it is not sent.
    Tools that this API does not have are sent only if an id shows that they are its own. Clients
    refuse a call whose input is no JSON object."""
    if part.input and json_object(part.input) is None:
        return None
    if part.kind == _MCP:
        return part.name or _MCP
    if is_result(part.name) or part.id.startswith(_OWN_IDS):
        return part.name or _NAMES.get(part.kind, (part.kind,))[0]
    names = _NAMES.get(part.kind)
    if names is None:
        return None
    return part.name if part.name in names else names[0]


def server_id(part: ServerTool) -> str:
    """The id of a call, derived from the call where the part has none."""
    return part.id or "srvtoolu_01" + derive(part.kind, "server tool", part.input, length=22)


def opened_tool(part: ServerTool) -> Json | None:
    """The block in `content_block_start`: of a call without its input, or of a complete result.
    None for a part that is not sent."""
    name = wire_name(part)
    if name is None:
        return None
    if is_result(part.name):
        return result_block(part)
    return call_block(part, name)


def call_block(part: ServerTool, name: str) -> Json:
    """The block of a call, without its input."""
    if part.kind == _MCP:
        return {
            "type": "mcp_tool_use",
            "id": server_id(part),
            "name": name,
            "server_name": _MCP,
            "input": {},
        }
    return {"type": "server_tool_use", "id": server_id(part), "name": name, "input": {}}


def result_type(part: ServerTool) -> str:
    """The type of the block of a part's result."""
    if is_result(part.name):
        return part.name
    base = "tool_search" if part.kind == "tool_search" else wire_name(part)
    return "mcp_tool_result" if part.kind == _MCP else f"{base}_tool_result"


def result_block(part: ServerTool) -> Json | None:
    """The block of a part's result; None without one, and for one in the form of another API."""
    if part.output is None or wire_name(part) is None:
        return None
    type = result_type(part)
    content = sendable_value(part.output)
    failed = {}
    if type == "mcp_tool_result":
        failed = {"is_error": mapping(content).get("is_error") is True}
        content = mapping(content).get("content") if failed["is_error"] else content
    if not _is_content(content, type):
        return None
    caller = {"caller": DIRECT} if type.removesuffix("_tool_result") in _CALLED else {}
    return {"type": type, "tool_use_id": server_id(part), **failed, "content": content, **caller}


def _is_content(content: object, type: str) -> bool:
    if type == "mcp_tool_result":
        return isinstance(content, str) or _is_list(content, ("text",))
    base = type.removesuffix("_tool_result")
    if base == "web_search" and isinstance(content, list):
        return _is_list(content, ("web_search_result",))
    return base in string(mapping(content).get("type"))


def _is_list(content: object, types: tuple[str, ...]) -> bool:
    return isinstance(content, list) and all(mapping(item).get("type") in types for item in content)


def requests_of(turn: Turn) -> Json:
    """The `server_tool_use` of the usage; {} for a turn without tools of the service."""
    names = [
        wire_name(part)
        for part in turn.parts
        if isinstance(part, ServerTool) and not is_result(part.name)
    ]
    if not any(names):
        return {}
    counts = {f"{name}_requests": names.count(name) for name in _CALLED}
    return {"server_tool_use": counts}


# Blocks to neutral parts


def read_call(block: Fields) -> tuple[str, str]:
    """The neutral kind and name of a call."""
    name = string(block.get("name"))
    kind = _MCP if block.get("type") == "mcp_tool_use" else _KINDS.get(name, name)
    return kind, "" if kind == name else name


def read_result(block: Fields) -> tuple[str, str]:
    """The neutral kind of a result alone, and its content as JSON text."""
    type = string(block.get("type"))
    base = type.removesuffix("_tool_result")
    content = block.get("content")
    if block.get("is_error") is True:
        content = {"content": content, "is_error": True}
    return _RESULT_KINDS.get(base, base), dumps(content)
