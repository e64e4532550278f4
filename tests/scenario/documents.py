"""Small documents around the lines that a test is about."""

from __future__ import annotations

from mockllm.wire.protocols import PROTOCOLS

APIS = ", ".join(PROTOCOLS)

Row = tuple[str, str, list[str]]
"""The mistake, the document, and its problems without the file's name."""

_TOOLS = (
    "tools:\n"
    "  - name: add\n"
    "    parameters: {type: object, properties: {n: {type: integer}}, required: [n]}"
)


def top(lines: str) -> str:
    """A scenario with these lines after the first."""
    return f"scenario: a\n{lines}\nturns:\n  - reply: {{text: hi}}\n"


def turn(one: str) -> str:
    """A scenario with this turn."""
    return f"scenario: a\nturns:\n  - {one}\n"


def two(second: str) -> str:
    """A scenario with this turn after one that makes the calls c1 and c2."""
    first = "reply: [{tool: f, id: c1}, {tool: g, id: c2}]"
    return f"scenario: a\nturns:\n  - {first}\n  - {second}\n"


def part(keys: str) -> str:
    """A scenario with this part."""
    return f"scenario: a\nturns:\n  - reply: {{{keys}}}\n"


def tools(keys: str) -> str:
    """A scenario with this part and a tool `add` that takes a whole number."""
    return f"scenario: a\n{_TOOLS}\nturns:\n  - reply: {{{keys}}}\n"
