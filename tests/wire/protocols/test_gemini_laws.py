"""Gemini: the laws of the round trip, over any turn."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame, TextDelta
from mockllm.core.timeline import expand
from mockllm.core.turn import Opaque, ServerTool, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini.fields import Options
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from tests import strategies
from tests.wire.protocols import streams

USAGE = TokenUsage(11, 7)
played = partial(streams.played, PROTOCOL)
read = partial(streams.read, PROTOCOL)
LEFTOVERS = [
    {"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png"}}]}}]},
    {"candidates": [{"index": 0, "tokenCount": 3}]},
    {"candidates": [{"index": 0, "citationMetadata": {"unknown": [{"title": "T"}]}}]},
    {"modelStatus": {"modelStage": "STABLE"}},
]
opaques = st.builds(
    Opaque,
    st.sampled_from(["gemini", "gemini", "chat"]),
    st.sampled_from([Frame(json.dumps(value)) for value in LEFTOVERS])
    | st.sampled_from([Frame(comment="wait"), Frame("[DONE]"), Frame("no JSON"), Frame("[1]")]),
)
NATIVE_PARTS = [
    {"type": "groundingMetadata", "webSearchQueries": ["a"]},
    {"type": "groundingMetadata", "searchEntryPoint": {"renderedContent": "<b>"}},
    {"type": "groundingMetadata"},
    {"type": "urlContextMetadata", "urlMetadata": [{"retrievedUrl": "https://a.example/"}]},
    {"type": "citationMetadata", "citationSources": [{"endIndex": 3, "uri": "x"}]},
    {"type": "continuationToken", "token": "YQ=="},
    {"type": "continuationToken", "token": "not base64"},
    {"type": "continuationToken", "unknown": "YQ=="},
]
natives = st.builds(
    Opaque,
    st.sampled_from(["gemini", "gemini", "chat"]),
    st.sampled_from([Frame(json.dumps(value)) for value in NATIVE_PARTS]),
    st.just(True),
)
signed_texts = st.builds(
    Text, strategies.fragments, strategies.citations, st.booleans(), strategies.names
)
inputs = st.sampled_from(
    ["", '{"code":"1+1"}', '{"language": "PYTHON", "code": "x"}', '{"queries":["a"]}', "no JSON"]
)
outputs = st.none() | st.sampled_from(
    ['{"outcome": "OUTCOME_OK","output":"2"}', '{"outcome":"OUTCOME_FAILED"}', '{"a":1}', "[]"]
)
server_tools = st.builds(
    ServerTool,
    st.sampled_from(["code_interpreter", "web_search", "media_processing", "mcp"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["", "MEDIA_PROCESSING", "codeExecutionResult", "toolResponse"]),
    inputs.flatmap(strategies.cut),
    outputs,
)
custom_calls = st.builds(
    ToolCall, strategies.names, st.just("c1"), strategies.fragments, st.none(), st.just(True)
)
any_part = st.one_of(strategies.parts, signed_texts, server_tools, custom_calls, natives)
any_turns = strategies.turns(st.one_of(any_part, strategies.tool_calls(well_formed=False), opaques))


def reply(**options: Any) -> Reply:
    return Reply("seed", "0" * 40, "gemini-2.5-flash", Options(**options), USAGE)


def chunks(turn: Turn, **options: Any) -> list[dict[str, Any]]:
    """The JSON of the chunks of a turn."""
    return [json.loads(frame.data or "") for _, frame in played(turn, reply(**options))]


def without_ids(turn: Turn) -> Turn:
    parts = (replace(p, id="") if isinstance(p, ToolCall) else p for p in turn.parts)
    return replace(turn, parts=tuple(parts))


def strict(value: dict[str, Any]) -> types.GenerateContentResponse:
    """A chunk or a body, read with the official types, which forbid unknown fields.

    The client removes the service tier before, as its types do not have it.
    """
    value = json.loads(json.dumps(value))
    value.get("usageMetadata", {}).pop("serviceTier", None)
    return types.GenerateContentResponse.model_validate(value)


def test_a_frame_without_a_part_does_not_hasten_a_signature() -> None:
    """A frame that the decoder drops, between a text and its signature, changes no time."""
    done = Opaque("gemini", Frame("[DONE]"))
    signed = Text(("Hi", ""), signature="MA==")
    tool = ServerTool("code_interpreter", "", "", ('{"code":"1+1"}',), None)
    turn = Turn((signed, done, tool), "stop", gaps=(0, 0, 0, 1, 0, 0))
    once = PROTOCOL.project(turn)
    assert PROTOCOL.project(once) == once


@given(any_turns, st.integers(1, 3))
def test_ids_are_the_only_gain(turn: Turn, candidates: int) -> None:
    """With ids the turn is the same, with the ids of its calls."""
    got = read(played(turn, reply(ids=True, candidates=candidates, vertex=True)))
    assert without_ids(got) == PROTOCOL.project(turn)
    sent = {(call.name, call.id) for call in turn.tool_calls}
    assert {(call.name, call.id) for call in got.tool_calls} <= sent


@given(strategies.turns(strategies.parts | server_tools))
def test_fragments_law(turn: Turn) -> None:
    """Calls in fragments have the same arguments as whole calls, in no more fragments than the turn
    has, apart from the end."""

    def known(calls: tuple[ToolCall, ...]) -> list[tuple[str, str, str]]:
        return sorted((c.name, c.id, json.dumps(c.parse_arguments())) for c in calls)

    got = read(played(turn, reply(partial=True, ids=True)))
    assert known(got.tool_calls) == known(turn.tool_calls)
    most = sum(len(call.fragments) + 1 for call in turn.tool_calls)
    assert sum(len(call.fragments) for call in got.tool_calls) <= most
    assert replace(got, parts=()).whole() == replace(PROTOCOL.project(turn), parts=()).whole()


@given(strategies.turns(any_part | strategies.tool_calls(well_formed=False), endings=False))
def test_body_law(turn: Turn) -> None:
    """The body decodes to the same turn as the stream, up to the cutting; its log probabilities are
    one list, that of all texts."""
    body = PROTOCOL.encode_body(turn, reply(array=True, partial=True))
    got = PROTOCOL.decode_body(json.loads(json.dumps(body)))
    expected = PROTOCOL.project(turn)
    with_logprobs = any(event.logprobs for event in deltas(turn) if event.text)
    parts = (
        replace(part, logprobs=with_logprobs) if isinstance(part, Text) else part
        for part in expected.parts
    )
    assert got.whole() == replace(expected, parts=tuple(parts)).whole()


def deltas(turn: Turn) -> list[TextDelta]:
    return [item.event for item in expand(turn) if isinstance(item.event, TextDelta)]


@given(strategies.turns(any_part), st.booleans())
def test_a_body_has_the_log_probabilities_of_its_stream(turn: Turn, vertex: bool) -> None:
    """Each list of the body has the items of the chunks, in order, and both have one length."""
    sent: dict[str, list[Any]] = {"chosenCandidates": [], "topCandidates": []}
    for chunk in chunks(turn, vertex=vertex):
        for name, items in chunk.get("candidates", [{}])[0].get("logprobsResult", {}).items():
            sent[name] += items
    value = PROTOCOL.encode_body(turn, reply(vertex=vertex))
    result = value.get("candidates", [{}])[0].get("logprobsResult", {})
    if turn.error is None:
        assert {name: result.get(name, []) for name in sent} == sent
    assert len(sent["topCandidates"]) in (0, len(sent["chosenCandidates"]))


@given(strategies.turns(any_part))
def test_array_law(turn: Turn) -> None:
    """The array has the chunks of the event stream, and is JSON once the answer has ended."""
    text = "".join(sse.encode(frame).decode() for _, frame in played(turn, reply(array=True)))
    if turn.finish is None and turn.error is None:
        text = text + "]" if text else "[]"
    assert json.loads(text) == chunks(turn)


options = st.builds(
    Options,
    ids=st.booleans(),
    partial=st.booleans(),
    candidates=st.integers(1, 3),
    vertex=st.booleans(),
)


def has_known_types(turn: Turn) -> bool:
    """Whether the official types have the type of each tool: results alone may have newer ones."""
    tools = (part for part in turn.parts if isinstance(part, ServerTool))
    return all(tool.name != "toolResponse" or tool.kind != "mcp" for tool in tools)


@given(
    strategies.turns(any_part | strategies.tool_calls(well_formed=False)).filter(has_known_types),
    options,
)
def test_chunks_and_bodies_are_strictly_typed(turn: Turn, options: Options) -> None:
    """Every chunk and body is valid for the official types, which forbid unknown fields."""
    settings = Reply("seed", "0" * 40, "gemini-2.5-flash", options, USAGE)
    values = [json.loads(frame.data or "") for _, frame in played(turn, settings)]
    for value in [*values, PROTOCOL.encode_body(turn, settings)]:
        if "error" not in value:
            strict(value)


@given(strategies.turns(strategies.parts, endings=False))
def test_the_official_types_accumulate_the_body(turn: Turn) -> None:
    """Text, thoughts and calls of the chunks, read with the official types, equal the body's."""
    streamed = [strict(value) for value in chunks(turn)]
    body = strict(PROTOCOL.encode_body(turn, reply()))
    for thought in (True, False):
        assert _text(streamed, thought) == _text([body], thought)
    calls = [call for chunk in streamed for call in chunk.function_calls or []]
    assert calls == (body.function_calls or [])
    assert streamed[-1].usage_metadata == body.usage_metadata
    assert body.candidates
    assert streamed[-1].candidates
    assert streamed[-1].candidates[0].finish_reason == body.candidates[0].finish_reason


def _text(responses: list[types.GenerateContentResponse], thought: bool) -> str:
    return "".join(
        part.text or ""
        for response in responses
        for candidate in (response.candidates or [])[:1]
        for part in (candidate.content.parts if candidate.content else None) or []
        if bool(part.thought) == thought
    )


@pytest.mark.parametrize("partial", [False, True])
def test_many_calls_at_once(partial: bool) -> None:
    """A hundred calls whose fragments alternate all come back."""
    calls = tuple(ToolCall("f", f"c{i}", ('{"n":', f'"{i}"}}')) for i in range(100))
    order = tuple(i for _ in range(3) for i in range(100))
    got = read(played(Turn(calls, "tool_calls", USAGE, order), reply(partial=partial)))
    assert [call.parse_arguments() for call in got.tool_calls] == [
        {"n": str(i)} for i in range(100)
    ]
