"""Valid requests of every API and every route, from which hostile ones are made."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.turn import ToolCall
from mockllm.play.replay.client_requests import first_body
from mockllm.scenario.model import ToolSpec
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol
from tests.fuzz.bodies import MODEL, RICH, SCHEMA

SCENARIOS = """
scenario: greets
match: {user: hello}
turns:
  - reply:
      - text: Hello there, friend.
  - reply:
      - text: Again.
---
scenario: calls
match: {user: weather}
tools:
  - name: get_weather
    description: The weather of a city.
    parameters: {type: object, properties: {city: {type: string}}}
turns:
  - reply:
      - reasoning: Where?
      - tool: get_weather
        arguments: {city: Paris}
  - reply:
      - text: Sunny.
---
scenario: files
route: GET /files/{id}
turns:
  - answer:
      json: {id: one}
"""
"""Scenarios without a turn that fails, so that no 5xx is theirs."""

HEADERS = {
    "content-type": "application/json",
    "authorization": "Bearer sk-fuzz",
    "x-api-key": "sk-fuzz",
    "x-goog-api-key": "sk-fuzz",
    "anthropic-version": "2023-06-01",
    "accept": "application/json, text/event-stream",
    "user-agent": "fuzz",
}


@dataclass(frozen=True, slots=True)
class Valid:
    """A request that the server answers with success, or refuses in the form of its API.

    Args:
        body: None for none.
    """

    method: str
    target: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=lambda: dict(HEADERS))


_PLAIN: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/v1/embeddings", {"model": "e", "input": ["a", "b"], "dimensions": 8}),
    ("POST", "/v1/embeddings", {"model": "e", "input": [[1, 2]], "encoding_format": "base64"}),
    ("POST", "/v1/moderations", {"model": "m", "input": [{"type": "text", "text": "a"}]}),
    ("POST", "/v1/responses/input_tokens", {"model": "m", "input": "a", "tools": []}),
    ("POST", "/v1/responses/compact", {"model": "m", "input": [{"role": "user", "content": "a"}]}),
    ("POST", "/v1beta/models/e:embedContent", {"content": {"parts": [{"text": "a"}]}}),
    (
        "POST",
        "/v1beta/models/e:batchEmbedContents",
        {"requests": [{"model": "models/e", "content": {"parts": [{"text": "a"}]}}]},
    ),
    ("POST", "/v1/models/text-embedding-1:predict", {"instances": [{"content": "a"}]}),
    ("POST", "/v1/models/imagen-4:predict", {"instances": [{"prompt": "a"}]}),
    ("POST", "/v1/images/generations", {"prompt": "a", "n": 2, "size": "64x64", "stream": True}),
    ("POST", "/v1/images/edits", {"prompt": "a", "images": [{"file_id": "file-1"}]}),
    (  # as events, since the answers of all requests here are read as text
        "POST",
        "/v1/audio/speech",
        {"model": "m", "input": "a", "voice": "v", "stream_format": "sse"},
    ),
    ("GET", "/files/one", None),
    ("POST", "/files/one", {"a": 1}),
    ("GET", "/", None),
    ("OPTIONS", "/v1/chat/completions", None),
    ("PUT", "/v1/unknown", {"model": "m", "messages": [{"role": "user", "content": "a"}]}),
    ("POST", "/unknown", {"contents": [{"parts": [{"text": "a"}]}]}),
    ("GET", "/v1/models/mock/auto", None),
)


def _bodies(protocol: WireProtocol) -> Iterator[dict[str, Any]]:
    client = protocol.client
    body = first_body(protocol, MODEL, "weather")
    offering = first_body(protocol, MODEL, "weather", [ToolSpec("get_weather", "d", SCHEMA)])
    yield offering
    yield client.next_message(body, f"{protocol.call_prefix}1", "Hi", "hello")
    call = ToolCall("get_weather", f"{protocol.call_prefix}1", ('{"city":"Paris"}',))
    yield client.continuation(offering, "resp_1", [call], ["sunny"])
    yield from RICH.get(protocol.name, lambda: iter(()))()


def requests(apis: Collection[str] = ()) -> list[Valid]:
    """One request at least for each route of each API, and for what calls no model.

    Args:
        apis: the names of some; none for all.
    """
    found = []
    for protocol in PROTOCOLS.values():
        if apis and protocol.name not in apis:
            continue
        headers = {**HEADERS, **protocol.client.headers}
        bodies = list(_bodies(protocol))
        for body in bodies:
            for stream in (True, False):
                target = protocol.client.path_of(MODEL, stream=stream)
                field = protocol.client.stream_field
                sent = {**body, field: stream} if field else body
                found.append(Valid("POST", target, sent, headers))
        for route in protocol.address.routes:
            target = re.sub(
                r"\{\w+(?::[^}]*?([^|}]+))?\}", lambda one: one[1] or "some", route.path
            )
            body = None if route.method != "POST" else bodies[0]
            found.append(Valid(route.method, target, body, headers))
    found += [Valid(*one) for one in _PLAIN]
    return found


def control_routes(session: str) -> list[Valid]:
    """One request at least for each control route, with every parameter."""
    root = "/_mockllm/"
    setup = {
        "session": "made",
        "scenarios": [{"scenario": "own", "match": "any", "turns": [{"reply": [{"text": "Hi."}]}]}],
        "quirks": ["chat-index-missing"],
        "match": "own",
        "served": True,
        "fault": ["cut:after=3events"],
        "fault_rate": 0.5,
        "fault_seed": "1",
        "fault_burst": "rate=90% every=exponential(1s) for=200ms",
    }
    found = [
        ("GET", f"journal?session={session}&after=0&limit=3", None),
        ("GET", "journal", None),
        (
            "GET",
            f"verify?session={session}&depth=5&leave_out=depth-bounded&require=extra-request",
            None,
        ),
        ("GET", f"verify?session={session}&once=true&allow_unplayed=true", None),
        ("GET", f"scenarios?session={session}", None),
        ("GET", f"sessions/{session}", None),
        ("GET", "sessions", None),
        ("GET", "health", None),
        ("GET", "ready", None),
        ("GET", "metrics", None),
        ("POST", "sessions", setup),
        ("POST", "sessions", {}),
        ("POST", "sessions/unknown/reset", None),
        ("DELETE", "sessions/unknown", None),
        ("OPTIONS", "journal", None),
    ]
    return [Valid(method, root + target, body) for method, target, body in found]
