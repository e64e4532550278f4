"""What the fields of an API hold stands once, in its package."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from mockllm.core.turn import Reasoning, Text, ToolCall, Turn
from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.records import FieldNames
from mockllm.wire.protocols.route_matching import target_of
from mockllm.wire.protocols.values import json_object
from tests.wire.protocols.streams import encoded

PACKAGE = Path(__file__).parents[3] / "mockllm"

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
    body = first_body(protocol, "a-model", "Hello")
    path, _, query = protocol.client.path_of("a-model").partition("?")
    target = target_of(protocol, path, query)
    request = protocol.parse(body, target, False)
    reply = Reply("seed", "0" * 40, "a-model", protocol.options(request))
    events = encoded(protocol, TURN, reply)
    return [value for frame in events if (value := json_object(frame.data)) is not None]


def changed_fields(one, other, name=""):
    """The names of the fields in which two JSON values of one shape differ."""
    if isinstance(one, dict):
        return {field for key in one for field in changed_fields(one[key], other[key], key)}
    if isinstance(one, list):
        pairs = zip(one, other, strict=True)
        return {field for here, there in pairs for field in changed_fields(here, there, name)}
    return {name} if one != other else set()


# Words of the neutral language, of the files of another program, and of people who write a scenario
# in the words of an API.
NEUTRAL = frozenset({"call_id", "response_id", "service_tier", "tool_name"})
OTHER_FORMATS = (
    "aimock.py",
    "aimock_replies.py",
    "har.py",
    "advice.py",
    "replies.py",
    "mcp_drafts.py",
)


def specific_names() -> set[str]:
    """The fields of any API that no other file would have: of several words."""
    names = {
        name
        for protocol in PROTOCOLS.values()
        for field in fields(FieldNames)
        for name in getattr(protocol.fields, field.name)
    }
    return {name for name in names if "_" in name or name != name.lower()} - NEUTRAL


@pytest.mark.slow
def test_names_stand_in_the_packages() -> None:
    """No file outside the packages, and the quirks, which change them, has a field of an API."""
    names, copies = specific_names(), []
    for path in PACKAGE.rglob("*.py"):
        if {"protocols", "quirks"} & set(path.relative_to(PACKAGE).parts):
            continue
        if path.name not in OTHER_FORMATS:
            nodes = ast.walk(ast.parse(path.read_text()))
            values = (node.value for node in nodes if isinstance(node, ast.Constant))
            copies += [(path.name, value) for value in values if value in names]
    assert not copies


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_text_is_in_fragments(protocol):
    """Whatever is changed as text of the model is in a field of fragments, and no label is."""
    held = protocol.fields
    assert not held.fragments & (held.labels | held.opaque | held.item_ids)
    names = set()
    for value in frames(protocol):
        names |= changed_fields(value, protocol.events.map_text(value, lambda text: text + "!"))
    assert names
    assert names <= held.fragments
