"""Values of JSON that may be anything, read without an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mockllm.core.request import OfferedTool

__all__ = ["function_tool", "json_object", "mapping", "string", "tool_schema"]


def json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object that the text is; None if it is anything else."""
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def string(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def function_tool(tool: OfferedTool) -> dict[str, Any]:
    """A tool as most APIs write it; one without a schema takes an empty object."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool_schema(tool),
    }


def tool_schema(tool: OfferedTool) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments; that of an empty object where it has none."""
    return tool.parameters or {"type": "object", "properties": {}}
