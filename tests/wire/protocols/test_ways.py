"""Ways of reading an answer, and what requests say beside their neutral form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from mockllm.core.events import Frame
from mockllm.core.request import CallEcho, Message, OfferedTool, Parameters, Request
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Refusal, Text, TokenUsage, ToolCall, Turn
from mockllm.play.replay.client_requests import client_target
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.extra import in_envelope
from mockllm.wire.protocols.records import Way
from tests.apis import OVER_HTTP
from tests.cases import for_all

APIS = sorted({*OVER_HTTP} - {"agui"})
Json = dict[str, Any]

USAGE = TokenUsage(40, 20, reasoning=5, cached=10)
CALLS = (
    ToolCall("a", "call_1", ('{"x":', "1}"), signature="c2ln"),
    ToolCall("b", "call_2", ('{"y": 2}',)),
)
TURN = Turn(
    (Reasoning(("I ", "see."), signature="c2ln"), Text(("So ", "it ", "is.")), *CALLS),
    "tool_calls",
    USAGE,
)
REFUSED = Turn(
    (
        Refusal(
            ("No", "."),
        ),
    ),
    "refusal",
    USAGE,
)


def frames(api: str, turn: Turn) -> list[Frame]:
    """The frames of a streamed turn."""
    protocol = PROTOCOLS[api]
    encoder = protocol.encoder(turn, reply(api))
    return [frame for item in expand(turn) for frame in encoder.encode(item.event)]


def reply(api: str) -> Reply:
    protocol = PROTOCOLS[api]
    body = {**protocol.client.write(Request(api, "m", {}, stream=True), Parameters())}
    request = protocol.parse({**body, **protocol.client.usage}, client_target(protocol, "m"), False)
    return Reply("seed", "0" * 40, "m", protocol.options(request), USAGE)


def events(api: str, turn: Turn) -> list[tuple[str, Json]]:
    return [
        (frame.event or "", json.loads(frame.data))
        for frame in frames(api, turn)
        if frame.data and frame.data.startswith("{")
    ]


def disagreeing(ways: Iterable[Way]) -> set[str]:
    """The parts that some ways read differently."""
    found: dict[tuple[str, str], set[str]] = {}
    for way in ways:
        found.setdefault((way.part, way.of), set()).add(json.dumps(way.value))
    return {part for (part, _), values in found.items() if len(values) > 1}


@for_all("api", APIS)
def test_all_ways_read_the_same_of_what_is_encoded(api: str) -> None:
    """Of streams and of bodies; and there are several ways."""
    protocol = PROTOCOLS[api]
    for turn in (TURN, REFUSED, Turn((Text(("Hi",)),), "length", USAGE)):
        ways = list(protocol.events.ways(events(api, turn)))
        assert disagreeing(ways) == set()
        assert len({way.name for way in ways}) > 1
        body = in_envelope(protocol, protocol.encode_body(turn, reply(api)))
        assert disagreeing(protocol.events.ways([("", body)])) == set()


def _each(change: Callable[[Json], object]) -> Callable[[list[tuple[str, Json]]], object]:
    def change_all(given: list[tuple[str, Json]]) -> None:
        for _, event in given:
            change(event)

    return change_all


def _calls(event: Json) -> list[Json]:
    choices: list[Json] = event.get("choices") or []
    return [call for choice in choices for call in choice["delta"].get("tool_calls") or ()]


def _name_all(event: Json) -> None:
    for call in _calls(event):
        call["function"]["name"] = "a"
        call["id"] = "call_1"


def _of(kind: str) -> Callable[[Callable[[Json], object]], Callable[..., object]]:
    """Changes the events of a type."""

    def decorate(change: Callable[[Json], object]) -> Callable[..., object]:
        return _each(lambda event: change(event) if event.get("type") == kind else None)

    return decorate


def _without(kind: str) -> Callable[[list[tuple[str, Json]]], object]:
    def drop(given: list[tuple[str, Json]]) -> None:
        given[:] = [pair for pair in given if pair[1].get("type") != kind]

    return drop


def _field(*path: str, value: Any) -> Callable[[Json], object]:
    def change(event: Json) -> None:
        inner: Any = event
        for name in path[:-1]:
            inner = inner.get(name) or {}
        if isinstance(inner, dict) and path[-1] in inner:
            inner[path[-1]] = value

    return change


def _stop(given: list[tuple[str, Json]]) -> None:
    name, last = next(p for p in given if p[1]["choices"] and p[1]["choices"][0]["finish_reason"])
    again = json.loads(json.dumps(last))
    again["choices"][0]["finish_reason"] = "stop"
    given.append((name, again))


def _end_twice(given: list[tuple[str, Json]], kind: str) -> None:
    name, end = next(pair for pair in given if pair[1].get("type") == kind)
    again = json.loads(json.dumps(end))
    again["delta"]["finish_reason"] = "COMPLETE"
    again["delta"].pop("usage")
    given.append((name, again))


MISTAKES: list[tuple[str, str, Callable[..., object], set[str]]] = [
    ("chat", "the name and the id in each delta", _each(_name_all), {"calls", "ids"}),
    (
        "chat",
        "the role in each delta",
        _each(lambda e: [c["delta"].update(role="assistant") for c in e["choices"]]),
        {"role"},
    ),
    ("chat", "a second finish", _stop, {"finish"}),
    ("chat", "a wrong total", _each(_field("usage", "total_tokens", value=1)), {"total tokens"}),
    (
        "responses",
        "no output at the end",
        _of("response.completed")(_field("response", "output", value=[])),
        {"calls", "ids", "reasoning", "signatures", "text"},
    ),
    (
        "responses",
        "items without arguments",
        _of("response.output_item.done")(_field("item", "arguments", value="")),
        {"calls"},
    ),
    (
        "responses",
        "other ids in finished items",
        _of("response.output_item.done")(_field("item", "call_id", value="fc_1")),
        {"ids"},
    ),
    (
        "responses",
        "a shorter text at the end of its deltas",
        _of("response.output_text.done")(_field("text", value="So")),
        {"text"},
    ),
    ("responses", "no done events", _without("response.output_text.done"), {"text"}),
    (
        "responses",
        "fragments of another item",
        _of("response.function_call_arguments.delta")(_field("item_id", value="fc_x")),
        {"calls"},
    ),
    (
        "responses",
        "an incomplete response that is completed",
        _of("response.completed")(_field("response", "status", value="incomplete")),
        {"finish"},
    ),
    (
        "anthropic",
        "events without names",
        lambda given: given.__setitem__(slice(None), [("", event) for _, event in given]),
        {"calls", "ids", "reasoning", "text"},
    ),
    (
        "anthropic",
        "a text in the start of its block",
        _of("content_block_start")(_field("content_block", "text", value="So ")),
        {"text"},
    ),
    (
        "anthropic",
        "another input at the end",
        _of("message_delta")(_field("usage", "input_tokens", value=7)),
        {"usage"},
    ),
    (
        "interactions",
        "no starts",
        lambda given: given.__setitem__(
            slice(None), [pair for pair in given if pair[1].get("index") != 1 or "delta" in pair[1]]
        ),
        {"text"},
    ),
    (
        "interactions",
        "a text in the start of its step",
        _each(
            lambda e: (
                e.get("step", {}).get("type") == "model_output"
                and e["step"].update(content=[{"type": "text", "text": "So "}])
            )
        ),
        {"text"},
    ),
    ("cohere", "two ends", lambda given: _end_twice(given, "message-end"), {"finish"}),
    (
        "gemini",
        "no usage at the end",
        lambda given: given[-1][1].pop("usageMetadata"),
        {"usage"},
    ),
]


@for_all("api,name,change,parts", MISTAKES)
def test_a_way_that_reads_something_else_is_seen(
    api: str, name: str, change: Callable[..., object], parts: set[str]
) -> None:
    """Each change of a stream is one that some documented clients notice, and others do not."""
    given = events(api, TURN)
    change(given)
    assert disagreeing(PROTOCOLS[api].events.ways(given)) == parts


VALUES = {
    "developer": True,
    "user name": "ada",
    "end user": "user-1",
    "metadata": {"ticket": "T-1"},
    "strict tools": True,
    "signatures": [["I see.", "c2ln"]],
    "redacted": [["ZGF0YQ=="]],
}


@for_all("api", [api for api in APIS if PROTOCOLS[api].client.features])
def test_what_a_feature_puts_into_a_request_it_finds(api: str) -> None:
    """And it finds nothing in the request without; the neutral form stays the same."""
    protocol = PROTOCOLS[api]
    history = (
        Message("system", "Be brief."),
        Message("user", "Hi"),
        Message("assistant", "So", (CallEcho("call_1", "a", "{}"),)),
        Message("tool", "1", call_id="call_1", name="a"),
        Message("user", "Go on"),
    )
    request = Request(api, "m", {}, messages=history, tools=(OfferedTool("a", "A tool."),))
    body = protocol.client.write(request, Parameters())
    plain = protocol.parse(body, client_target(protocol, "m"), False)
    for name, feature in protocol.client.features.items():
        changed = feature.put(json.loads(json.dumps(body)), VALUES[name])
        assert changed != body
        assert feature.find(body) is None
        wanted = None if name == "developer" else VALUES[name]
        if api == "gemini":
            wanted = [["", "c2ln"]]
        assert feature.find(changed) == wanted
        read = protocol.parse(changed, client_target(protocol, "m"), True)
        assert (_said(read), read.system) == (_said(plain), plain.system)


def _said(request: Request) -> list[Message]:
    """The messages; reasoning that goes back alone is one that says nothing."""
    empty = Message("assistant")
    return [message for message in request.messages if message != empty]


def test_names_of_features_are_known() -> None:
    """Each has a value here, and is one that several APIs, or a case, name."""
    named = {name for api in APIS for name in PROTOCOLS[api].client.features}
    assert named == set(VALUES)
