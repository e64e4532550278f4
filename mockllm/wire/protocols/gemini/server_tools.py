"""Tools that the service runs itself: parts of an answer to neutral parts and back.

https://ai.google.dev/api/caching#Part

Code comes in `executableCode`, its result in `codeExecutionResult`; other tools in `toolCall` and
`toolResponse`. A result that directly follows its call is one neutral part with it. Any other
result is a part of its own, whose name is the name of its field.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.turn import ServerTool
from mockllm.wire.protocols.gemini_common import compact
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import json_object, mapping, string

CALLS = ("executableCode", "toolCall")
RESULTS = ("codeExecutionResult", "toolResponse")

_CODE = "code_interpreter"
_TYPES = {
    "web_search": "GOOGLE_SEARCH_WEB",
    "image_search": "GOOGLE_SEARCH_IMAGE",
    "web_fetch": "URL_CONTEXT",
    "google_maps": "GOOGLE_MAPS",
    "file_search": "FILE_SEARCH",
}
"""By neutral kind: `ToolType`."""
_KINDS = {type: kind for kind, type in _TYPES.items()}


# Parts to neutral parts


def read_call(part: Fields) -> ServerTool | None:
    """The call in a part, without its result; None where it has none."""
    code, tool = part.get("executableCode"), part.get("toolCall")
    if isinstance(code, Mapping):
        own = {name: value for name, value in code.items() if name != "id"}
        return ServerTool(_CODE, string(code.get("id")), "", (compact(own),))
    if isinstance(tool, Mapping):
        kind, name = _kind(tool)
        fragments = (compact(tool["args"]),) if tool.get("args") else ()
        return ServerTool(kind, string(tool.get("id")), name, fragments)
    return None


def read_result(part: Fields) -> ServerTool | None:
    """The result in a part, without its call, named as its field; None where it has none."""
    code, tool = part.get("codeExecutionResult"), part.get("toolResponse")
    if isinstance(code, Mapping):
        own = {name: value for name, value in code.items() if name != "id"}
        return ServerTool(_CODE, string(code.get("id")), "codeExecutionResult", (), compact(own))
    if isinstance(tool, Mapping):
        output = compact(mapping(tool.get("response")))
        return ServerTool(_kind(tool)[0], string(tool.get("id")), "toolResponse", (), output)
    return None


def _kind(tool: Fields) -> tuple[str, str]:
    type = string(tool.get("toolType"))
    kind = _KINDS.get(type)
    return (kind, "") if kind else (type.lower(), type)


# Neutral parts to parts


def call_part(tool: ServerTool) -> Json | None:
    """The part with the call; None for tools of other services, and for a result alone."""
    type = _type(tool)
    value = json_object(tool.input or "{}")
    if tool.name in RESULTS or type is None or value is None:
        return None
    id = {"id": tool.id} if tool.id else {}
    if tool.kind != _CODE:
        return {"toolCall": {**id, "toolType": type, "args": value}}
    code = value.get("code")
    if not isinstance(code, str):
        return None
    language = string(value.get("language")) or "PYTHON"
    return {"executableCode": {**id, "language": language, "code": code}}


def result_part(tool: ServerTool) -> Json | None:
    """The part with the result; None without one, and for one in the form of another API."""
    type = _type(tool)
    value = None if tool.output is None else json_object(tool.output)
    if type is None or value is None:
        return None
    id = {"id": tool.id} if tool.id else {}
    if tool.kind != _CODE:
        return {"toolResponse": {**id, "toolType": type, "response": value}}
    outcome, output = value.get("outcome"), value.get("output")
    if not isinstance(outcome, str) or not isinstance(output, str | None):
        return None
    text = {} if output is None else {"output": output}
    return {"codeExecutionResult": {**id, "outcome": outcome, **text}}


def _type(tool: ServerTool) -> str | None:
    """The `ToolType` of a tool ("" for code); None where the service has no such tool."""
    if tool.kind == _CODE:
        return ""
    if tool.name == "toolResponse":  # a type that is newer than this list is kept
        return _TYPES.get(tool.kind, tool.kind.upper())
    own = tool.name.isupper() and tool.name.lower() == tool.kind
    return tool.name if own else _TYPES.get(tool.kind)
