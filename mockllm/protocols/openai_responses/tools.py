"""The tools, the tool choice and the output schema of a Responses request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockllm.core.request import OfferedTool
from mockllm.errors import RequestError
from mockllm.protocols.openai_common import (
    CHECKS,
    OBJECT,
    TEXT,
    bad_value,
    check_tool,
    invalid_type,
    missing,
    offered_tool,
)
from mockllm.protocols.records import Fields
from mockllm.protocols.values import mapping, string

_MODES = ("none", "auto", "required")
_ADDING = ("additional_tools", "tool_search_output")


def offered_tools(value: object, strict: bool) -> tuple[OfferedTool, ...]:
    """The tools that the client runs itself, without those that the service hosts."""
    if not isinstance(value, list) or not value:
        return ()
    if strict:
        for i, offer in enumerate(value):
            _check_offer(f"tools[{i}]", offer)
    return tuple(_offers(value))


def _offers(value: list[Any]) -> Iterator[OfferedTool]:
    for offer in value:
        tool = mapping(offer)
        kind, inner = tool.get("type"), tool.get("tools")
        if kind in ("function", "custom"):
            offered = offered_tool(tool, custom=kind == "custom")
            yield from () if offered is None else (offered,)
        elif kind == "namespace" and isinstance(inner, list):
            yield from _offers([tool for tool in inner if mapping(tool).get("type") != kind])


def added_tools(value: object) -> tuple[OfferedTool, ...]:
    """The tools that items of an `input` add: `additional_tools`, and the results of searches."""
    items = value if isinstance(value, list) else []
    lists = (item.get("tools") for item in map(mapping, items) if item.get("type") in _ADDING)
    return tuple(tool for tools in lists if isinstance(tools, list) for tool in _offers(tools))


def _check_offer(where: str, tool: Any) -> None:
    _OFFER(where, tool)
    if tool["type"] in ("function", "custom"):
        parameters = tool.get("parameters") if tool["type"] == "function" else None
        check_tool(tool.get("name"), parameters, where)


_OFFER = CHECKS.fields({"type": TEXT})


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


def _mode(value: str, offered: list[Fields], strict: bool) -> str:
    if value not in _MODES:
        if strict:
            raise bad_value("tool_choice", value, _MODES)
        return "auto"
    if strict and value == "required" and not offered:
        raise RequestError(
            "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice"
        )
    return value


def _named(choice: Fields, offered: list[Fields], where: str, strict: bool) -> str:
    if strict:
        _NAMED(where, choice)
    name = string(choice.get("name"))
    if strict and all(tool.get("name") != name for tool in offered):
        raise _not_found(name, where)
    return name or "auto"


def _allowed(choice: Fields, offered: list[Fields], strict: bool) -> str:
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


SCHEMA = CHECKS.fields({"name": TEXT, "schema": OBJECT})
"""A check of an output format with a schema."""

_NAMED = CHECKS.fields({"name": TEXT})
