"""A request that a client is to send, and what adapters need to write it. Standard library only."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["API_KEY", "Job", "as_text", "joined", "parsed"]

API_KEY = "mock-key"


@dataclass(frozen=True)
class Job:
    """One case, as the protocol of runners has it.

    Args:
        base_url: for the client, as its documentation has it: of OpenAI's APIs it ends in `/v1`.
        tools: each with `name`, and maybe `description` and `parameters` (a JSON Schema).
        deadline: seconds after which the client must have given up.
    """

    api: str
    base_url: str
    prompt: str
    model: str = "mock-model"
    tools: list[dict[str, Any]] = field(default_factory=list)
    deadline: float = 30.0

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The tools with all three fields."""
        empty = {"type": "object", "properties": {}}
        return [
            {
                "name": tool["name"],
                "description": tool.get("description") or tool["name"],
                "parameters": tool.get("parameters") or empty,
            }
            for tool in self.tools
        ]

    @property
    def chat_tools(self) -> list[dict[str, Any]]:
        """The tools in the form of Chat Completions."""
        return [{"type": "function", "function": function} for function in self.functions]


def as_text(value: Any) -> str:
    """A value of a text field as a user would print it; None is empty text."""
    return "" if value is None else str(value)


def joined(values: Any) -> str:
    """The texts, joined; None counts as no text."""
    return "".join(map(as_text, values))


def parsed(arguments: Any) -> Any:
    """The arguments of a call as a value, where a client writes their JSON text anew.

    A text counts as what was sent, character by character. A client that parses the arguments and
    serializes them again does not promise that; its value alone can be compared.
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
