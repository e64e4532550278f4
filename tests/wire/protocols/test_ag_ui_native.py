"""AG-UI: state, steps, activities, subagents and other events as parts of a reply."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import ag_ui.core
import pytest

from mockllm.core.events import Frame, StreamError
from mockllm.core.jsontext import compact
from mockllm.core.seeded import derive
from mockllm.core.turn import Opaque, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols.ag_ui.native import NATIVE
from mockllm.wire.protocols.ag_ui.objects import Options
from mockllm.wire.protocols.ag_ui.protocol import PROTOCOL
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.native import by_key
from tests.wire.protocols import streams, strict

Json = dict[str, Any]
REPLY = Reply("seed", "0" * 40, "mock-model", Options("th_1", "run_1"))
PREFIX = "msg_" + derive("seed", "messages", "run_1", length=24)
USAGE = TokenUsage(11, 7)
read = partial(streams.read, PROTOCOL)

PATCH = [
    {"op": "add", "path": "/a", "value": None},
    {"op": "replace", "path": "/a", "value": 1},
    {"op": "test", "path": "", "value": {"a": 1}},
    {"op": "copy", "from": "/a", "path": "/b"},
    {"op": "move", "from": "/a", "path": "/c"},
    {"op": "remove", "path": "/b"},
]
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
    "encryptedValue": "c2ln",
    "metadata": {},
}
PARTS = [
    {"type": "text", "id": "p1", "text": "21C", "metadata": 1},
    {"type": "image", "source": {"type": "url", "value": "u", "mimeType": "image/png"}},
    {"type": "audio", "source": {"type": "data", "value": "AAAA", "mimeType": "audio/wav"}},
    {"type": "video", "source": {"type": "file", "value": "f", "provider": "p"}},
    {"type": "document", "source": {"type": "url", "value": "u"}, "metadata": {}},
]
OF_MESSAGE = {"name": "n", "encryptedValue": "c2ln", "metadata": {}, "subagentRunId": "s1"}
MESSAGES = [
    {"id": "1", "role": "user", "content": [{"type": "text", "text": "Hi"}], **OF_MESSAGE},
    {"id": "2", "role": "assistant", "content": "Hi", "toolCalls": [CALL], **OF_MESSAGE},
    {"id": "3", "role": "tool", "content": PARTS, "toolCallId": "c1", "error": "e"},
    {"id": "4", "role": "system", "content": "Hi", **OF_MESSAGE},
    {"id": "5", "role": "developer", "content": "Hi", **OF_MESSAGE},
    {"id": "6", "role": "reasoning", "content": "Hm", "encryptedValue": "c2ln"},
    {"id": "7", "role": "activity", "activityType": "PLAN", "content": {"a": 1}},
]
INTERRUPT = {
    "id": "i1",
    "reason": "approval",
    "message": "May I?",
    "toolCallId": "c1",
    "responseSchema": {"type": "object"},
    "expiresAt": "2026-01-01T00:00:00Z",
    "metadata": {},
    "subagentRunId": "s1",
}
OF_ALL = {"timestamp": 1, "rawEvent": {"any": None}, "metadata": {"a": 1}}
OF_AGENTS = {**OF_ALL, "subagentRunId": "s1"}
EVENTS: list[Json] = [
    {"type": "STATE_SNAPSHOT", "snapshot": None, **OF_AGENTS},
    {"type": "STATE_DELTA", "delta": PATCH, **OF_AGENTS},
    {"type": "STEP_STARTED", "stepName": "plan", **OF_AGENTS},
    {"type": "STEP_FINISHED", "stepName": "plan", **OF_AGENTS},
    {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "a1",
        "activityType": "PLAN",
        "content": {"steps": []},
        "replace": False,
        **OF_AGENTS,
    },
    {
        "type": "ACTIVITY_DELTA",
        "messageId": "a1",
        "activityType": "PLAN",
        "patch": PATCH,
        **OF_AGENTS,
    },
    {"type": "CUSTOM", "name": "x", "value": None, **OF_AGENTS},
    {"type": "RAW", "event": {"any": 1}, "source": "model", **OF_AGENTS},
    {"type": "MESSAGES_SNAPSHOT", "messages": MESSAGES, **OF_ALL},
    {
        "type": "TOOL_CALL_RESULT",
        "messageId": "r1",
        "toolCallId": "c1",
        "content": [{"type": "text", "text": "21C"}],
        "role": "tool",
        **OF_AGENTS,
    },
    {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "s1",
        "name": "searcher",
        "description": "Searches.",
        "parentSubagentRunId": "s0",
        "parentToolCallId": "c1",
        "parentMessageId": "m1",
        **OF_ALL,
    },
    {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "s1",
        "result": None,
        "outcome": {"type": "suspended", "interruptIds": ["i1"]},
        **OF_ALL,
    },
    {"type": "SUBAGENT_ERROR", "subagentRunId": "s1", "message": "m", "code": "c", **OF_ALL},
    {
        "type": "RUN_FINISHED",
        "result": {"any": 1},
        "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]},
        **OF_ALL,
    },
]
"""Each native event, with all fields that it may have."""

MADE = {"RUN_FINISHED": {"threadId", "runId", "usage"}}
"""The fields that the encoder makes, whatever the part has."""

OTHERS = {"RUN_STARTED", "RUN_ERROR"}
"""Events of the SDK that are no parts: the encoder sends them by itself; and those of texts,
reasoning and calls."""


def native(value: Json) -> Opaque:
    return Opaque("agui", Frame(compact(value)), native=True)


def values(*parts: Any, usage: TokenUsage | None = None) -> list[Json]:
    """The events of a turn."""
    played = streams.played(PROTOCOL, Turn(parts, "stop", usage), REPLY)
    return [json.loads(frame.data or "") for _, frame in played]


@pytest.mark.parametrize("value", EVENTS, ids=lambda value: value["type"])
def test_the_table_knows_what_the_types_of_the_sdk_know(value: Json) -> None:
    """Each event may have every field of its type in ag-ui-protocol, and must have those that the
    type demands and the encoder does not make."""
    kind = next(kind for kind in kinds() if type_of(kind) == value["type"])
    fields = {field.alias or name: field for name, field in kind.model_fields.items()}
    made = MADE.get(value["type"], set())
    assert value.keys() == fields.keys() - made
    assert list(by_key("type", NATIVE)(value)) == []
    needed = {name for name, field in fields.items() if field.is_required()} - made - {"messageId"}
    for name in needed:
        without = {key: inner for key, inner in value.items() if key != name}
        assert [message for _, message in by_key("type", NATIVE)(without)] == [
            f"needs the key {name!r}"
        ]
    misspelt = {**value, "snapshoot": 1}
    assert [path for path, _ in by_key("type", NATIVE)(misspelt)] == [("snapshoot",)]


def kinds() -> list[Any]:
    """The types of all events."""
    named = (getattr(ag_ui.core, name) for name in dir(ag_ui.core) if name.endswith("Event"))
    return [kind for kind in named if hasattr(kind, "model_fields") and type_of(kind)]


def type_of(kind: Any) -> str:
    """The `type` of events of a type; "" of the base of them all."""
    default = kind.model_fields["type"].default
    return str(getattr(default, "value", ""))


def test_every_event_of_the_sdk_is_a_part_or_sent_by_itself() -> None:
    """A new event of the SDK is found here."""
    events = {type_of(kind) for kind in kinds()}
    of_content = ("TEXT_MESSAGE_", "REASONING_", "TOOL_CALL_")
    others = {type for type in events if type.startswith(of_content)} | OTHERS
    assert events - NATIVE.keys() == others - {"TOOL_CALL_RESULT"}
    assert {value["type"] for value in EVENTS} == NATIVE.keys() == events & NATIVE.keys()


@pytest.mark.parametrize("value", EVENTS, ids=lambda value: value["type"])
def test_a_native_part_is_sent_and_read(value: Json) -> None:
    """It comes as the SDK's types have it, at its place, and is the same part when it is read."""
    turn = Turn((Text(("before",)), native(value)), "stop", USAGE)
    played = streams.played(PROTOCOL, turn, REPLY)
    sent = [json.loads(frame.data or "") for _, frame in played]
    event = sent[4]
    assert event | value == event
    assert strict.problems(ag_ui.core.Event, event) == []
    assert read(played) == turn
    body = PROTOCOL.encode_body(turn, REPLY)
    assert PROTOCOL.decode_body(body) == turn


def test_ids_that_are_left_out_are_made() -> None:
    """The run is that of the request, with its usage; an activity keeps one message in its run."""
    snapshot = {"type": "ACTIVITY_SNAPSHOT", "activityType": "PLAN", "content": {}}
    delta = {"type": "ACTIVITY_DELTA", "activityType": "PLAN", "patch": []}
    result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "content": "21C"}
    end = {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}
    parts = ToolCall("f", "c1"), *map(native, (snapshot, delta, result, end))
    *_, sent, changed, answered, ended = values(*parts, usage=USAGE)
    assert sent == {**snapshot, "messageId": f"{PREFIX}_PLAN"}
    assert changed == {**delta, "messageId": f"{PREFIX}_PLAN"}
    assert answered == {**result, "messageId": f"{PREFIX}_2"}
    run = {"threadId": "th_1", "runId": "run_1", "type": "RUN_FINISHED"}
    assert {**ended, "usage": None} == {**run, "outcome": {"type": "cancelled"}, "usage": None}
    assert ended["usage"][0]["inputTokens"] == 11


def test_what_a_subagent_does_names_it() -> None:
    """All events of what begins while a subagent runs have its id; of nested ones, the inner."""

    def begun(id: str) -> Opaque:
        return native({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"})

    def ended(id: str) -> Opaque:
        return native({"type": "SUBAGENT_FINISHED", "subagentRunId": id})

    a, b, c, d = (Text((text,)) for text in "abcd")
    parts = a, begun("s1"), b, begun("s2"), ToolCall("f", "c1"), ended("s2"), c, ended("s1"), d
    owners = {}
    for value in values(*parts):
        for key in ("messageId", "toolCallId"):
            if key in value:
                owners.setdefault(value[key], set()).add(value.get("subagentRunId"))
    assert list(owners.values()) == [{None}, {"s1"}, {"s2"}, {"s1"}, {None}]


def test_an_unknown_field_stays_a_frame() -> None:
    """A field that the table does not know is kept as it came: nothing is lost of newer agents."""
    newer = {"type": "STEP_STARTED", "stepName": "plan", "newIn2": 1}
    turn = Turn((Opaque("agui", Frame(compact(newer))),), "stop", USAGE)
    assert read(streams.played(PROTOCOL, turn, REPLY)) == turn
    deep: Any = {}
    for _ in range(60):
        deep = [deep]
    turn = Turn((Opaque("agui", Frame(compact({"type": "CUSTOM", "name": "x", "value": deep}))),))
    assert not read(streams.played(PROTOCOL, turn, REPLY)).parts[0].native  # type: ignore[union-attr]


def test_the_end_of_a_run_is_sent_at_its_end() -> None:
    """Wherever the part stands, since clients accept nothing after it; an answer that is cut, or
    ends in an error, has none."""
    interrupted = native({"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}})
    parts = interrupted, Text(("after",))
    sent = [event["type"] for event in values(*parts)]
    assert sent == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    for turn in (Turn(parts), Turn(parts, error=StreamError("Broken."))):
        last = json.loads(streams.played(PROTOCOL, turn, REPLY)[-1][1].data or "")
        assert last["type"] in ("TEXT_MESSAGE_END", "RUN_ERROR")
        assert "outcome" not in last
