"""The reference clients read answers with tools of the service and calls with free text."""

import json

import pytest

from examples.accumulators import REFERENCES
from mockllm.core.turn import ServerTool, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.wire.protocols.test_extra import encoded

SEARCH = ServerTool(
    "web_search", "srv_1", "web_search", ('{"query":"a"}',), '[{"url":"https://a"}]'
)
SHELL = ToolCall("sh", "call_1", ("ls ", "-l"), custom=True)
CALL = ToolCall("look", "call_2", ('{"a":1}',))
TURN = Turn(
    (Text(("Hel", "lo"), signature="s"), SEARCH, SHELL, CALL, Text((" you",))),
    "tool_calls",
    TokenUsage(1, 2),
)


@pytest.mark.parametrize("api", PROTOCOLS)
def test_other_parts_are_read_as_usual(api):
    """Text, calls of functions and the finish are as without the other tools, and nothing is an
    error. Calls with free text are read where the API sends them as functions."""
    protocol, reference = PROTOCOLS[api], REFERENCES[api]()
    for frame in encoded(protocol, TURN):
        if frame.data is not None and frame.data != "[DONE]":
            reference.feed(json.loads(frame.data), frame.event)
    reference.close()
    outcome = reference.outcome()
    assert (outcome.text, outcome.errors) == ("Hello you", ())
    found = {call.name: call.arguments for call in outcome.tool_calls}
    assert found.pop("look", None) == ({"a": 1} if api in CALLING else None)
    assert found in ({}, {"sh": {"input": "ls -l"}})
    assert reference.pending() == 0
