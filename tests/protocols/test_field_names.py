"""What the fields of an API hold stands once, in its package."""

from __future__ import annotations

import pytest

from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Text, ToolCall, Turn
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import Reply
from mockllm.protocols.routes import target_of
from mockllm.protocols.values import json_object

TURN = Turn(
    (
        Reasoning(("think", "ing")),
        Text(("ans", "wer")),
        ToolCall("call_1", "look_up", ('{"query":', '"x"}')),
    ),
    finish="tool_calls",
)


def frames(protocol):
    """The JSON objects of the stream of a turn."""
    body = protocol.client.first_request("a-model", "Hello")
    path, _, query = protocol.client.path_of("a-model").partition("?")
    target = target_of(protocol, path, query)
    request = protocol.parse(body, target, False)
    reply = Reply("seed", "0" * 40, "a-model", protocol.options(request))
    encoder = protocol.encoder(TURN, reply)
    events = [frame for item in expand(TURN) for frame in encoder.encode(item.event)]
    return [value for frame in events if (value := json_object(frame.data)) is not None]


def changed_fields(one, other, name=""):
    """The names of the fields in which two JSON values of one shape differ."""
    if isinstance(one, dict):
        return {field for key in one for field in changed_fields(one[key], other[key], key)}
    if isinstance(one, list):
        pairs = zip(one, other, strict=True)
        return {field for here, there in pairs for field in changed_fields(here, there, name)}
    return {name} if one != other else set()


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_text_is_in_fragments(protocol):
    """Whatever is changed as text of the model is in a field of fragments, and no label is."""
    fields = protocol.fields
    assert not fields.fragments & (fields.labels | fields.opaque | fields.item_ids)
    names = set()
    for value in frames(protocol):
        names |= changed_fields(value, protocol.events.map_text(value, lambda text: text + "!"))
    assert names
    assert names <= fields.fragments
