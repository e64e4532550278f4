"""Calls of custom tools, whose input is free text, as calls of functions.

Most APIs have functions only. Their arguments are JSON, which clients parse: the text becomes
`{"input": ...}`.
"""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.base import dumps


def with_functions(turn: Turn) -> Turn:
    """The turn with functions in place of custom tools, with as many fragments as before."""
    parts = (
        function(part) if isinstance(part, ToolCall) and part.custom else part
        for part in turn.parts
    )
    return replace(turn, parts=tuple(parts))


def function(call: ToolCall) -> ToolCall:
    """The call of a function for a call of a custom tool."""
    fragments = [dumps(fragment)[1:-1] for fragment in call.fragments]
    if fragments:
        fragments[0] = '{"input":"' + fragments[0]
        fragments[-1] += '"}'
    return replace(call, fragments=tuple(fragments), custom=False)
