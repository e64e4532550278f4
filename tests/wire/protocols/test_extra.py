"""`extra`: the fields that a service adds to its API are found, and added again."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from mockllm.core.events import Frame, StreamError, Timed
from mockllm.core.timeline import fold
from mockllm.core.turn import Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.scenario.reading.tables import TABLES
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol, dumps
from mockllm.wire.protocols.extra import (
    added_fields,
    added_to_error,
    answer_in,
    extra_places,
    in_envelope,
    with_extra,
    with_extra_in_body,
)
from tests.cases import for_all
from tests.strategies import turns
from tests.test_laws import usual_request
from tests.wire.protocols import streams
from tools.comparison import value_of

CHAT = PROTOCOLS["chat"]
TURN = Turn(
    (Reasoning(("hm", " so", "")), Text(("Hel", "lo")), ToolCall("f", "call_1", ("{}",))),
    "tool_calls",
    TokenUsage(3, 4),
)
FIELDS = {"provider": "P", "x_groq": {"id": "r"}}

protocols = st.sampled_from(list(PROTOCOLS.values()))


def reply_of(protocol: WireProtocol) -> Reply:
    return Reply("a", "a".rjust(40, "0"), "m", protocol.options(usual_request(protocol)))


def encoded(protocol: WireProtocol, turn: Turn) -> list[Frame]:
    """The frames of a turn."""
    reply = replace(reply_of(protocol), usage=turn.usage or TokenUsage(0, 0))
    return streams.encoded(protocol, turn, reply)


def body_of(protocol: WireProtocol, turn: Turn) -> dict[str, Any]:
    """The body of a turn, in the envelope of its API."""
    reply = replace(reply_of(protocol), usage=turn.usage or TokenUsage(0, 0))
    return in_envelope(protocol, protocol.encode_body(turn, reply))


def values(frames: list[Frame]) -> list[dict[str, Any]]:
    found = [value_of(frame) for frame in frames]
    return [value for value in found if isinstance(value, dict)]


def sent(protocol: WireProtocol, frames: list[Frame], extra: Any) -> list[Frame]:
    return [frame for _, frame in with_extra(protocol, [(0, one) for one in frames], extra)]


def found(
    turn: Turn, change: Any, protocol: WireProtocol = CHAT, *, streamed: bool = True
) -> dict[str, Any]:
    """The extra of a recording that differs from the encoded turn in a change of its events."""
    whole = turn.whole()
    ours = values(encoded(protocol, whole)) if streamed else [body_of(protocol, whole)]
    theirs = values(encoded(protocol, turn)) if streamed else deepcopy(ours)
    for number, value in enumerate(theirs):
        change(value, number)
    return added_fields(protocol, turn, ours, theirs, streamed=streamed)


def test_the_places_are_those_of_the_language() -> None:
    """What a protocol names can be written, and what can be written belongs to a protocol."""
    rules = [protocol.normalize for protocol in PROTOCOLS.values()]
    named = {place for normalize in rules for place in normalize.places}
    named |= {"reasoning" for normalize in rules if normalize.reasoning is not None}
    assert named == set(TABLES["extra"].readers)


def test_the_page_has_the_places_of_each_api() -> None:
    """In the words of its service."""
    page = (Path(__file__).parents[3] / "docs/answer-fields.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (`event`.*) \|$", page, re.MULTILINE)
    listed = {api: tuple(re.findall(r"\w+", places)) for api, places in rows}
    assert listed == {api: extra_places(PROTOCOLS[api]) for api in PROTOCOLS}


@for_all("streamed", [True, False])
def test_fields_of_each_place_are_found(streamed: bool) -> None:
    """In every event, choice, message, call and usage, of a stream and of a body."""

    def change(value: Any, number: int) -> None:
        value["provider"] = "P"
        for choice in value.get("choices", ()):
            choice["native_finish_reason"] = "eos"
            message = choice.get("delta" if streamed else "message", {})
            message["channel"] = "final"
            for call in message.get("tool_calls", ()):
                call["extra_content"] = {"a": [1]}
        if value.get("usage"):
            value["usage"] |= {"cost": 0.5, "details": {"x": 0, "y": 2}}

    expected = {
        "event": {"provider": "P"},
        "choice": {"native_finish_reason": "eos"},
        "message": {"channel": "final"},
        "call": {"extra_content": {"a": [1]}},
        "usage": {"cost": 0.5, "details": {"y": 2}},
    }
    got = found(TURN, change, streamed=streamed)
    assert got == {key: value for key, value in expected.items() if key in got}
    assert got.keys() >= {"event", "choice", "message", "call"}


@for_all("api", ["responses", "anthropic"])
def test_fields_of_typed_events_are_in_all_of_them(api: str) -> None:
    """A field of one type of events is no field of every event."""
    protocol = PROTOCOLS[api]

    def everywhere(value: Any, number: int) -> None:
        value["trace"] = "t"

    def somewhere(value: Any, number: int) -> None:
        value |= {"trace": "t"} if number == 1 else {}

    assert found(TURN, everywhere, protocol) == {"event": {"trace": "t"}}
    assert found(TURN, somewhere, protocol) == {}


CONTENT: dict[str, Any] = {
    "changing": lambda value, number: value.update(step=number),
    "made up": lambda value, number: value.update(system_fingerprint="f", obfuscation="x"),
    "null and zero": lambda value, number: value.update(a=None, b=0, c="", d=[]),
    "a text of the turn": lambda value, number: value.update(said="Hello"),
    "the text once more": lambda value, number: value.update(said={"deep": ["hm so"]}),
    "a list in one event": lambda value, number: value.update(images=["u"] if number == 1 else []),
    "what a client reads": lambda value, number: value.update(error={"message": "no"}),
    "too long": lambda value, number: value.update(sources=["https://example.com"] * 2_000),
    "too deep": lambda value, number: value.update(a=json.loads("[" * 60 + "1" + "]" * 60)),
    "no character": lambda value, number: value.update(a="\ud83d"),
    "no number": lambda value, number: value.update(a=float("inf")),
}


@for_all("name", CONTENT)
def test_content_is_no_extra_field(name: str) -> None:
    """What changes, repeats the answer or would change it is on the tape alone."""
    assert found(TURN, CONTENT[name]) == {}


def test_a_field_that_changes_the_answer_leaves_the_others() -> None:
    """Only the harmful one is left out."""
    change = lambda value, number: value.update(provider="P", error={"message": "no"})  # noqa: E731
    assert found(TURN, change) == {"event": {"provider": "P"}}


def test_fields_of_an_error_in_a_stream_make_no_other_event_an_error() -> None:
    """The event of an error has more than others; its fields go into none of them."""
    turn = Turn((Text(("Hel", "lo")),), error=StreamError("no", "t", "c"))

    def change(value: dict[str, Any], number: int) -> None:
        value.update(provider="P")
        if "error" in value:
            value["error"].update(status_code=400)

    assert found(turn, change) == {"event": {"provider": "P"}}


def test_what_is_found_is_added_again() -> None:
    """Each event of the encoded turn has the fields then, and nothing else is different."""
    frames = encoded(CHAT, TURN)
    extra = found(TURN, lambda value, number: value.update(FIELDS))
    after = sent(CHAT, frames, extra)
    assert extra == {"event": FIELDS}
    for before, frame in zip(frames, after, strict=True):
        if before.data == "[DONE]":
            assert frame == before
        else:
            assert value_of(frame) == value_of(before) | FIELDS


def test_a_body_has_the_fields_of_its_places() -> None:
    """Those of every event stand in a body of the API whose chunks are like bodies; a body is
    never changed in place."""
    extra = {
        "event": {"provider": "P"},
        "message": {"channel": "c"},
        "usage": {"cost": 1},
        "call": {"x": 1},
    }
    for api, path in (("chat", "provider"), ("gemini", "provider"), ("anthropic", "channel")):
        protocol = PROTOCOLS[api]
        body = answer_in(protocol, body_of(protocol, TURN))
        before = deepcopy(body)
        assert path in with_extra_in_body(protocol, body, extra)
        assert body == before
    responses = PROTOCOLS["responses"]
    extra["response"] = extra.pop("message")
    body = with_extra_in_body(responses, answer_in(responses, body_of(responses, TURN)), extra)
    assert (body["channel"], body["usage"]["cost"]) == ("c", 1)
    assert [item.get("x") for item in body["output"]] == [None, None, 1]
    assert "provider" not in body


def test_frames_that_are_no_objects_stay() -> None:
    """Comments, end markers and broken JSON of a scenario have no fields."""
    frames = [Frame(comment="hi"), Frame("[DONE]"), Frame('{"a":'), Frame("[1]")]
    assert sent(CHAT, frames, {"event": FIELDS}) == frames


def test_fields_of_an_error() -> None:
    """They are of `event`, unless a client would read another error with them."""
    ours = {"error": {"message": "no", "type": "t", "code": None}}
    inner = {"message": "no", "type": "t", "metadata": {"a": 1}}
    theirs = {"error": inner, "user_id": "u", "detail": "no"}
    assert added_to_error(CHAT, ours, theirs, "no") == {
        "event": {"error": {"metadata": {"a": 1}}, "user_id": "u"}
    }
    assert added_to_error(CHAT, ours, ours, "no") == {}


@given(protocols, turns())
def test_extra_fields_change_no_content(protocol: WireProtocol, turn: Turn) -> None:
    """`fold(decode(encode(expand(turn)))) == project(turn)` also with fields of a service."""
    frames = encoded(protocol, turn)
    assume(all(frame.data is None or isinstance(value_of(frame), dict | str) for frame in frames))
    fields = {"x_service": {"id": "r", "note": ["a"]}}
    extra = dict.fromkeys(protocol.normalize.places, fields)
    wires = [protocol.decoder(), protocol.decoder()]
    read = [
        fold(
            Timed(0, event)
            for event in [*(e for one in sequence for e in wire.decode(one)), *wire.close()]
        )
        for wire, sequence in zip(wires, (frames, sent(protocol, frames, extra)), strict=True)
    ]
    one, other = (
        (turn.text, turn.reasoning, turn.refusal, turn.whole().tool_calls, turn.finish, turn.usage)
        for turn in read
    )
    assert one == other
    assert dumps(extra) == dumps(dict.fromkeys(protocol.normalize.places, fields))
