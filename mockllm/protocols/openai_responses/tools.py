"""The tools, the tool choice and the output schema of a Responses request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core.request import OfferedTool
from mockllm.errors import RequestError
from mockllm.protocols.openai_common import check_tool, grammar_of
from mockllm.protocols.openai_refusals import bad_value, invalid_type, missing
from mockllm.protocols.values import mapping, string

_MODES = ("none", "auto", "required")
_ADDING = ("additional_tools", "tool_search_output")
_FORMATS = ("json_object", "json_schema", "text")


def offered_tools(value: object, strict: bool) -> tuple[OfferedTool, ...]:
    """The tools that the client runs itself, without those that the service hosts."""
    if not isinstance(value, list) or not value:
        return ()
    if strict:
        for i, offer in enumerate(value):
            _check_offer(offer, f"tools[{i}]")
    return tuple(_offers(value))


def _offers(value: list[Any]) -> Iterator[OfferedTool]:
    for offer in value:
        tool = mapping(offer)
        kind, name, inner = tool.get("type"), tool.get("name"), tool.get("tools")
        if kind in ("function", "custom") and isinstance(name, str):
            parameters = mapping(tool.get("parameters"))
            description, grammar = string(tool.get("description")), grammar_of(tool.get("format"))
            yield OfferedTool(name, description, parameters, kind == "custom", grammar)
        elif kind == "namespace" and isinstance(inner, list):
            yield from _offers([tool for tool in inner if mapping(tool).get("type") != kind])


def added_tools(value: object) -> tuple[OfferedTool, ...]:
    """The tools that items of an `input` add: `additional_tools`, and the results of searches."""
    items = value if isinstance(value, list) else []
    lists = (item.get("tools") for item in map(mapping, items) if item.get("type") in _ADDING)
    return tuple(tool for tools in lists if isinstance(tools, list) for tool in _offers(tools))


def _check_offer(tool: object, where: str) -> None:
    if not isinstance(tool, Mapping):
        raise invalid_type(where, "an object", tool)
    kind = tool.get("type")
    if kind is None:
        raise missing(f"{where}.type")
    if not isinstance(kind, str):
        raise invalid_type(f"{where}.type", "a string", kind)
    if kind in ("function", "custom"):
        parameters = tool.get("parameters") if kind == "function" else None
        check_tool(tool.get("name"), parameters, where)


def tool_choice(value: object, tools: object, strict: bool) -> str:
    """`auto`, `none`, `required`, or the name of the tool that must be called.

    For `allowed_tools` with mode `required`, it is the first of the allowed tools.

    Args:
        tools: the `tools` of the request, hosted ones included.
    """
    if value is None:
        return "auto"
    offered = [mapping(tool) for tool in tools] if isinstance(tools, list) else []
    if isinstance(value, str):
        return _mode(value, offered, strict)
    choice = mapping(value)
    kind = choice.get("type")
    if kind in ("function", "custom"):
        return _named(choice, offered, "tool_choice", strict)
    if kind == "allowed_tools":
        return _allowed(choice, offered, strict)
    if strict:
        if not isinstance(kind, str):
            raise missing("tool_choice.type")
        if all(tool.get("type") != kind for tool in offered):
            raise _not_found(kind, "tool_choice")
    return "auto"


def _mode(value: str, offered: list[Mapping[str, Any]], strict: bool) -> str:
    if value not in _MODES:
        if strict:
            raise bad_value("tool_choice", value, _MODES)
        return "auto"
    if strict and value == "required" and not offered:
        raise RequestError(
            "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
        )
    return value


def _named(
    choice: Mapping[str, Any], offered: list[Mapping[str, Any]], where: str, strict: bool
) -> str:
    name = choice.get("name")
    if isinstance(name, str):
        if strict and all(tool.get("name") != name for tool in offered):
            raise _not_found(name, where)
        return name or "auto"
    if strict and name is None:
        raise missing(f"{where}.name")
    if strict:
        raise invalid_type(f"{where}.name", "a string", name)
    return "auto"


def _allowed(choice: Mapping[str, Any], offered: list[Mapping[str, Any]], strict: bool) -> str:
    mode, tools = choice.get("mode"), choice.get("tools")
    if strict and mode not in ("auto", "required"):
        raise bad_value("tool_choice.mode", str(mode), ("auto", "required"))
    if strict and not isinstance(tools, list):
        raise invalid_type("tool_choice.tools", "an array of objects", tools)
    names = []
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        if mapping(tool).get("type") in ("function", "custom"):
            names.append(_named(mapping(tool), offered, f"tool_choice.tools[{i}]", strict))
    if mode == "required":
        return names[0] if names else "required"
    return "auto"


def _not_found(name: str, where: str) -> RequestError:
    return RequestError(f"Tool choice '{name}' not found in 'tools' parameter.", param=where)


def output_schema(value: object, strict: bool) -> Mapping[str, Any] | None:
    """The JSON Schema in `text.format`; {} for any object, None for plain text."""
    format = mapping(value).get("format")
    if format is None:
        return None
    if not isinstance(format, Mapping):
        if strict:
            raise invalid_type("text.format", "an object", format)
        return None
    kind = format.get("type")
    if kind == "json_object":
        return {}
    if kind == "json_schema":
        return _json_schema(format, strict)
    if strict and kind != "text":
        if kind is None:
            raise missing("text.format.type")
        raise bad_value("text.format.type", str(kind), _FORMATS)
    return None


def _json_schema(format: Mapping[str, Any], strict: bool) -> Mapping[str, Any]:
    name, schema = format.get("name"), format.get("schema")
    if strict:
        if name is None or schema is None:
            raise missing("text.format.name" if name is None else "text.format.schema")
        if not isinstance(name, str):
            raise invalid_type("text.format.name", "a string", name)
        if not isinstance(schema, Mapping):
            raise invalid_type("text.format.schema", "an object", schema)
    return mapping(schema)
