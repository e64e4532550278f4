"""AG-UI: encoding and decoding a run, and the rules of its official clients."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import ag_ui.core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.errors import RequestError, WireError
from mockllm.core.events import Cite, StreamError
from mockllm.core.jsontext import compact
from mockllm.core.seeded import derive
from mockllm.core.timeline import normal
from mockllm.core.turn import (
    Media,
    Opaque,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.wire.framing import sse
from mockllm.wire.protocols.ag_ui.objects import Options
from mockllm.wire.protocols.ag_ui.protocol import PROTOCOL
from mockllm.wire.protocols.base import Reply
from tests import strategies
from tests.wire.protocols import streams, strict

REPLY = Reply("seed", "0" * 40, "mock-model", Options("th_1", "run_1"))
PREFIX = "msg_" + derive("seed", "messages", "run_1", length=24)
USAGE = TokenUsage(11, 7, 2, 3)
read = partial(streams.read, PROTOCOL)


def played(turn: Turn, reply: Reply = REPLY) -> list[streams.TimedFrame]:
    """The frames of a turn, each with its time."""
    return streams.played(PROTOCOL, turn, reply)


def values(turn: Turn, reply: Reply = REPLY) -> list[dict[str, Any]]:
    """The events of a turn, as JSON values."""
    return [json.loads(frame.data or "") for _, frame in played(turn, reply)]


def data(turn: Turn) -> list[str]:
    """The JSON text of the events between the start and the end of the run, with short ids."""
    frames = [(frame.data or "").replace(PREFIX, "m") for _, frame in played(turn)]
    return frames[1:-1]


def frame(type: str, **fields: Any) -> sse.Frame:
    return sse.Frame(json.dumps({"type": type, **fields}, separators=(",", ":")))


INTERRUPTED = frame(
    "RUN_FINISHED",
    threadId="t",
    runId="r",
    outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approval"}]},
    usage=[{"inputTokens": 3}, {"outputTokens": 4}],
)
own_frames = st.sampled_from(
    [
        frame("STEP_STARTED", stepName="plan"),
        frame("STATE_SNAPSHOT", snapshot={"n": 0}),
        frame("STATE_DELTA", delta=[{"op": "replace", "path": "/n", "value": 1}]),
        frame("MESSAGES_SNAPSHOT", messages=[]),
        frame("ACTIVITY_SNAPSHOT", messageId="a1", activityType="plan", content={}),
        frame("TOOL_CALL_RESULT", messageId="tm1", toolCallId="c1", content="21C"),
        frame("CUSTOM", name="x", value=None),
        frame("RAW", event={}),
        frame("TEXT_MESSAGE_START", messageId="u1", role="user"),
        frame("TEXT_MESSAGE_CONTENT", messageId="u1", delta="Hi"),
        frame("TEXT_MESSAGE_CHUNK", messageId="mine", delta="said in a frame"),
        frame("TOOL_CALL_CHUNK", toolCallId="mine", toolCallName="made_in_a_frame", delta="{}"),
        frame("RUN_STARTED", threadId="t", runId="r2"),
        frame("RUN_ERROR", message="in a frame"),
        INTERRUPTED,
        sse.Frame(comment="waiting"),
        sse.Frame("[DONE]"),
        sse.Frame("not JSON", id="7"),
        sse.Frame("[1]", retry=5),
        sse.Frame("{}", event="nothing"),
    ]
)
native_parts = st.sampled_from(
    [
        {"type": "STEP_FINISHED", "stepName": "plan"},
        {"type": "CUSTOM", "name": "x", "value": None},
        {"type": "STATE_SNAPSHOT", "snapshot": None, "metadata": {}},
        {"type": "ACTIVITY_SNAPSHOT", "activityType": "PLAN", "content": {}, "messageId": "a1"},
        {"type": "ACTIVITY_DELTA", "activityType": "PLAN", "patch": [], "messageId": "a1"},
        {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "content": "21C", "messageId": "r1"},
        {"type": "SUBAGENT_STARTED", "subagentRunId": "s1", "name": "searcher"},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s1"},
    ]
).map(lambda value: Opaque("agui", sse.Frame(compact(value)), native=True))
frames = st.builds(Opaque, st.sampled_from(["agui", "agui", "chat"]), own_frames) | native_parts
signed_calls = st.builds(
    lambda call, signature: replace(call, signature=signature),
    strategies.tool_calls(),
    st.none() | strategies.names,
)
parts = strategies.every_part | signed_calls


def as_function(call: ToolCall) -> ToolCall:
    """A call of a custom tool, as AG-UI sends it."""
    texts = [json.dumps(text, ensure_ascii=False)[1:-1] for text in call.fragments]
    if texts:
        texts[0], texts[-1] = '{"input":"' + texts[0], texts[-1] + '"}'
        if len(call.fragments) == 1:
            texts = ['{"input":' + json.dumps(call.arguments, ensure_ascii=False) + "}"]
    return ToolCall(call.name, call.id, tuple(texts), call.signature)


def distinct(turn: Turn) -> bool:
    """Whether no two calls of a turn share an id, as scenario files require."""
    ids = [call.id for call in turn.tool_calls]
    return len(ids) == len(set(ids))


turns = strategies.turns(parts).filter(distinct)


# Round trips


@settings(deadline=None)
@given(strategies.turns(parts | frames, interleaved=False).filter(distinct))
def test_opaque_frames_keep_their_position(turn: Turn) -> None:
    """AG-UI frames without a neutral form come back at their position; those of other APIs are left
    out."""
    assert read(played(turn)) == PROTOCOL.project(turn)


@settings(deadline=None)
@given(strategies.turns(strategies.tool_calls(well_formed=False)).filter(distinct))
def test_malformed_arguments_survive(turn: Turn) -> None:
    """Arguments survive verbatim, even where they are no JSON or incomplete."""
    assert read(played(turn)) == PROTOCOL.project(turn)


@settings(deadline=None)
@given(turns)
def test_losses_are_those_listed(turn: Turn) -> None:
    """Apart from order and the listed losses, a projected turn is the turn."""
    projected = PROTOCOL.project(turn)
    opened = list(dict.fromkeys(turn.order or range(len(turn.parts))))
    kept = []
    for part in (turn.parts[i] for i in opened):
        match part:
            case Refusal() | Text():
                kept.append(Text(part.fragments))
            case Reasoning():
                kept.append(replace(part, summary=False))
            case ToolCall(custom=True):
                kept.append(as_function(part))
            case ServerTool() | Media():
                pass
            case _:
                kept.append(part)
    assert list(projected.parts) == kept
    ended = turn.finish is not None or turn.error is not None
    assert projected.usage == (turn.usage if ended else None)
    assert projected.finish == (turn.finish and ("tool_calls" if turn.tool_calls else "stop"))
    assert (projected.error and projected.error.message) == (turn.error and turn.error.message)
    assert sum(projected.gaps) == sum(turn.gaps) or not ended


@settings(deadline=None)
@given(turns)
def test_the_body_decodes_to_the_turn(turn: Turn) -> None:
    """The list of events that mockllm sends as a body has the same turn, in whole parts."""
    body = PROTOCOL.encode_body(turn, REPLY)
    assert PROTOCOL.decode_body(body) == normal(PROTOCOL.project(turn).whole())


@settings(deadline=None)
@given(strategies.turns(parts | frames, interleaved=False).filter(distinct))
def test_body_leaves_out_frames_without_an_event(turn: Turn) -> None:
    """A body has all frames of AG-UI, except comments and what is no JSON event."""
    whole = PROTOCOL.project(turn).whole()
    kept = [p for p in whole.parts if not isinstance(p, Opaque) or '"type"' in str(p.frame.data)]
    projected = PROTOCOL.decode_body(PROTOCOL.encode_body(turn, REPLY))
    assert list(projected.parts) == kept


def test_body_of_something_else_is_an_error() -> None:
    """A value that is no list of events is refused with a hint."""
    with pytest.raises(WireError, match=r"needs `events`.*'choices'"):
        PROTOCOL.decode_body({"choices": []})


# The rules of clients


def broken_rules(events: Iterable[dict[str, Any]]) -> list[str]:
    """Which of the official client's rules for the order of events a stream breaks."""
    problems, opened, state = [], set(), "new"
    for event in events:
        type = event["type"]
        if state != "running" and type not in ("RUN_STARTED", "RUN_ERROR"):
            problems.append(f"{type} outside of a run")
        if state == "running" and type == "RUN_STARTED":
            problems.append("a run starts in a run")
        if state == "failed" and type != "RUN_STARTED":
            problems.append(f"{type} after RUN_ERROR")
        state = {"RUN_STARTED": "running", "RUN_FINISHED": "finished", "RUN_ERROR": "failed"}.get(
            type, state
        )
        kind, _, step = type.rpartition("_")
        entity = (kind, event.get("messageId") or event.get("toolCallId"))
        if step == "START":
            if entity in opened:
                problems.append(f"{entity} opens twice")
            opened.add(entity)
        elif step in ("CONTENT", "ARGS", "END"):
            if entity not in opened:
                problems.append(f"{type} for {entity}, which is not open")
            if step == "END":
                opened.discard(entity)
        if type == "RUN_FINISHED" and opened:
            problems.append(f"{sorted(opened)} still open at the end")
    return problems


@settings(deadline=None)
@given(turns)
def test_streams_keep_the_clients_rules(turn: Turn) -> None:
    """Runs start and end once, and nothing is used before it opens or left open."""
    assert broken_rules(values(turn)) == []


@settings(deadline=None)
@given(turns)
def test_events_are_of_the_official_types(turn: Turn) -> None:
    """Every event has the fields of the official package's types, and no others."""
    for value in values(turn):
        assert strict.problems(ag_ui.core.Event, value) == []


@settings(deadline=None)
@given(turns)
def test_lines_end_in_lf(turn: Turn) -> None:
    """Clients look for two line feeds, so no carriage return is ever sent."""
    assert PROTOCOL.line_end == "lf"
    assert all(b"\r" not in sse.encode(frame) for _, frame in played(turn))


# The frames themselves


def test_run_repeats_the_ids_of_its_request() -> None:
    """A run starts and ends with the thread and run of the request."""
    started, finished = played(Turn((), "stop"))
    assert started[1] == sse.Frame('{"type":"RUN_STARTED","threadId":"th_1","runId":"run_1"}')
    assert finished[1] == sse.Frame('{"type":"RUN_FINISHED","threadId":"th_1","runId":"run_1"}')
    child = replace(REPLY, options=Options("th_1", "run_2", "run_1"))
    assert values(Turn(), child)[0]["parentRunId"] == "run_1"


def test_text() -> None:
    """A text is a message with an event for each fragment."""
    assert data(Turn((Text(("Hel", "lo\u2028")),), "stop")) == [
        '{"type":"TEXT_MESSAGE_START","messageId":"m_1","role":"assistant"}',
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m_1","delta":"Hel"}',
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m_1","delta":"lo\u2028"}',
        '{"type":"TEXT_MESSAGE_END","messageId":"m_1"}',
    ]


def test_texts_are_messages_of_their_own() -> None:
    """Adjacent texts do not run together, and a refusal is a text too."""
    events = values(Turn((Text(("a",)), Refusal(("b",))), "stop"))
    ids = [value["messageId"] for value in events if value["type"] == "TEXT_MESSAGE_CONTENT"]
    assert ids == [f"{PREFIX}_1", f"{PREFIX}_2"]


def test_text_and_tool() -> None:
    """A call belongs to the message of the text before it."""
    call = ToolCall("get_weather", "c1", ('{"city":', '"Oslo"}'))
    assert data(Turn((Text(("Checking.",)), call), "tool_calls"))[3:] == [
        '{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"get_weather",'
        '"parentMessageId":"m_1"}',
        '{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\\"city\\":"}',
        '{"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"\\"Oslo\\"}"}',
        '{"type":"TOOL_CALL_END","toolCallId":"c1"}',
    ]


def test_zero_argument_call_has_no_arguments() -> None:
    """A call without arguments opens and closes, nothing more."""
    assert data(Turn((ToolCall("now", "c1"),), "tool_calls")) == [
        '{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"now","parentMessageId":"m_1"}',
        '{"type":"TOOL_CALL_END","toolCallId":"c1"}',
    ]


def test_calls_interleave_in_one_message() -> None:
    """Fragments of several calls alternate, with the id of their call; the calls share a
    message."""
    calls = ToolCall("f", "c1", ("{", "}")), ToolCall("g", "c2", ("{", " }"))
    events = values(Turn(calls, "tool_calls", order=(0, 1, 0, 1, 1, 0)))[1:-1]
    assert [(value["type"][10:], value["toolCallId"]) for value in events] == [
        ("START", "c1"),
        ("START", "c2"),
        ("ARGS", "c1"),
        ("ARGS", "c2"),
        ("ARGS", "c2"),
        ("END", "c2"),
        ("ARGS", "c1"),
        ("END", "c1"),
    ]
    assert events[0]["parentMessageId"] == events[1]["parentMessageId"] == f"{PREFIX}_1"


def test_reasoning_with_its_proof() -> None:
    """Reasoning is a message inside a span; its signature belongs to that message."""
    assert data(Turn((Reasoning(("Hm", "m."), "c2ln", summary=True),), "stop")) == [
        '{"type":"REASONING_START","messageId":"m_1"}',
        '{"type":"REASONING_MESSAGE_START","messageId":"m_1","role":"reasoning"}',
        '{"type":"REASONING_MESSAGE_CONTENT","messageId":"m_1","delta":"Hm"}',
        '{"type":"REASONING_MESSAGE_CONTENT","messageId":"m_1","delta":"m."}',
        '{"type":"REASONING_MESSAGE_END","messageId":"m_1"}',
        '{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m_1",'
        '"encryptedValue":"c2ln"}',
        '{"type":"REASONING_END","messageId":"m_1"}',
    ]


def test_signature_of_a_call() -> None:
    """A call's signature has the id of the call."""
    (*_, last) = data(Turn((ToolCall("now", "c1", signature="c2ln"),), "tool_calls"))
    assert last == (
        '{"type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"c1",'
        '"encryptedValue":"c2ln"}'
    )


def test_usage() -> None:
    """The end of the run has the tokens, for one model."""
    assert values(Turn((), "stop", USAGE))[-1]["usage"] == [
        {
            "model": "mock-model",
            "inputTokens": 11,
            "outputTokens": 7,
            "totalTokens": 18,
            "reasoningTokens": 2,
            "cachedInputTokens": 3,
        }
    ]


def test_error_in_the_stream() -> None:
    """An error replaces the end of the run; without a code it has its type as code."""
    turn = Turn((Text(("Par",)),), error=StreamError("boom", "server_error"))
    (*_, last) = values(turn)
    assert last == {"type": "RUN_ERROR", "message": "boom", "code": "server_error"}
    assert values(Turn(error=StreamError("boom")))[-1] == {"type": "RUN_ERROR", "message": "boom"}


def test_frame_that_ends_the_run_replaces_its_end() -> None:
    """An interrupt can be an opaque frame: the run does not end a second time."""
    turn = Turn((Text(("Sure?",)), Opaque("agui", INTERRUPTED)), "stop", USAGE)
    *_, last = played(turn)
    assert last[1] is INTERRUPTED
    assert read(played(turn)) == replace(turn, usage=TokenUsage(3, 4))


def test_message_ids_differ_from_run_to_run() -> None:
    """The same turn has other ids in another run, because clients append to messages with known
    ids."""
    turn = Turn((Text(("Hi",)),), "stop")
    other = replace(REPLY, options=Options("th_1", "run_2"))
    assert values(turn)[1]["messageId"] != values(turn, other)[1]["messageId"]
    assert values(turn) == values(turn)


def test_parts_without_an_event_are_not_sent() -> None:
    """Citations and log probabilities are dropped."""
    plain = Turn((Text(("Hi",)),), "stop")
    rich = Turn((Text(("Hi",), (Cite(0, "https://example.com/"),), logprobs=True),), "stop")
    assert played(rich) == played(plain)


# Errors and headers


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestError("m", code="no_scenario", status=404), "no_scenario"),
        (RequestError("m", type="tokens", status=429), "tokens"),
        (RequestError("m", status=429), "rate_limited"),
        (RequestError("m", status=404), "not_found"),
        (RequestError("m", status=400), "bad_request"),
        (RequestError("m", status=500), "server_error"),
    ],
)
def test_error_bodies(error: RequestError, code: str) -> None:
    """An error names its message and a code, by default that of its status."""
    assert PROTOCOL.error_body(error) == {"error": {"message": "m", "code": code}}


def test_headers() -> None:
    """Streams are event streams that must not be cached; waits are whole seconds, rounded up."""
    assert PROTOCOL.headers(REPLY, True)["content-type"].startswith("text/event-stream")
    assert PROTOCOL.headers(REPLY, False) == {"content-type": "application/json"}
    error = RequestError("slow down", status=429, retry_after=1.2)
    assert PROTOCOL.error_headers("seed", error)["retry-after"] == "2"
    assert "retry-after" not in PROTOCOL.error_headers("seed", RequestError("m", status=429))
