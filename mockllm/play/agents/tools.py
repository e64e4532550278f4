"""Actions of a scenario with a shell or a file, as calls of a tool that a request offers:
`tools.yaml`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from mockllm.core.jsontext import compact
from mockllm.core.record import record
from mockllm.play.tables import read_table
from mockllm.scenario.part_model import ACTION_NAME

_VALUE = re.compile(r"\{(command|path|content|old|new)\}")


@record
class ToolUse:
    """A call of a tool.

    Args:
        text: its arguments as JSON text, or its free text.
        custom: whether that is free text.
    """

    tool: str
    text: str
    custom: bool = False


def tool_use(action: str, values: Mapping[str, str], offered: Iterable[str]) -> ToolUse | None:
    """An action as a call of one of the tools that a request offers; None where none can do it.

    Args:
        action: `shell`, `write`, `read` or `edit`.
        values: what it is done with, by their names.
    """
    names = set(offered)
    for row in _table()[action]["calls"]:
        if row["tool"] not in names:
            continue
        if "input" in row:
            return ToolUse(row["tool"], _fill(row["input"], values, json.dumps), custom=True)
        filled = {key: _fill(text, values, str) for key, text in row["arguments"].items()}
        return ToolUse(row["tool"], compact(filled))
    command = _table()[action].get("by_shell")
    if command is None:
        return None
    return tool_use("shell", {"command": _fill(command, values, shlex.quote)}, names)


def usual_tool(action: str) -> str:
    """The name of a tool that does an action, for a request that nobody sends."""
    name: str = _table()[action]["calls"][0]["tool"]
    return name


def may_call(planned: str, name: str) -> bool:
    """Whether a call with this name may be a planned one: of that tool, or of one that does the
    action in angle brackets."""
    if planned == name:
        return True
    action = ACTION_NAME.fullmatch(planned)
    return action is not None and name in _tools_of(action[1])


@cache
def _tools_of(action: str) -> frozenset[str]:
    rows = [*_table()[action]["calls"], *_table()["shell"]["calls"]]
    return frozenset(row["tool"] for row in rows)


def _fill(text: str, values: Mapping[str, str], write: Callable[[str], str]) -> str:
    return _VALUE.sub(lambda found: write(values[found[1]]), text)


def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = read_table("tools.yaml", __package__)
    return table
