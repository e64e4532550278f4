"""Chunks of Chat Completions, built by hand."""

from __future__ import annotations

from typing import Any

from mockllm.checking.outcome import Call

A1 = Call("get_weather", {"city": "Paris"}, "call_A1")
B2 = Call("get_time", {"tz": "CET"}, "call_B2")
Z0 = Call("list_issues", {}, "call_Z0")


def chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def called(*entries: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A chunk with entries of `tool_calls`."""
    return chunk({"tool_calls": list(entries)}, finish)


def entry(
    arguments: Any = "", index: int | None = 0, id: Any = None, name: Any = None
) -> dict[str, Any]:
    """An entry of `tool_calls`, without the fields that are None."""
    function = {"arguments": arguments, **({} if name is None else {"name": name})}
    value = {"index": index, "id": id, "function": function}
    return {key: field for key, field in value.items() if field is not None}


def a1(arguments: Any = "", index: int | None = 0, **more: Any) -> dict[str, Any]:
    return entry(arguments, index, "call_A1", **{"name": "get_weather", **more})


def b2(arguments: Any = "", index: int | None = 1) -> dict[str, Any]:
    return entry(arguments, index, "call_B2", "get_time")


STOP, TOOLS = chunk({}, "stop"), chunk({}, "tool_calls")
PARIS, CET = '{"city":"Paris"}', '{"tz":"CET"}'
CITY, TZ = ('{"city":', '"Paris"}'), ('{"tz":', '"CET"}')
