"""OpenAI Responses: what mockllm sends has the fields of the newest recordings of the service.

Each recorded answer is read, and encoded again for the same request. The fields of each type of
event, and of the body, are compared as sets of JSON paths.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

from mockllm.core.http import NO_TARGET
from mockllm.core.turn import Turn
from mockllm.record.importers import vcr
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Unread
from mockllm.wire.framing.sse import SSEDecoder
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_responses.encoder import encode_body
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests.cases import for_all
from tests.corpus import CORPUS, needs_corpus, recorded_streams
from tests.wire.protocols import streams

TOKEN = "0123456789abcdef0123456789abcdef01234567"
NEWEST = 1_770_000_000
"""Recordings since February 2026 are compared; older ones lack fields."""

Paths = dict[str, set[str]]

pytestmark = needs_corpus

_ANY = (".tools", ".metadata", ".text.format", ".instructions", ".conversation", ".prompt")
"""Objects that repeat the request, or that clients define."""

_OF_THE_MODEL = (".phase", ".namespace", ".tool_usage", ".mode", ".context", ".content")
"""Fields that only some models have."""


def paths(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all fields of a value; lists are one level."""
    if any(path.endswith(name) for name in _ANY):
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.{key}"
            yield from paths(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, f"{path}[]")


def kind(event: dict[str, Any]) -> str:
    """The type of an event, with that of its item or content."""
    inner = (event[name] for name in ("item", "part", "annotation") if name in event)
    return ".".join([event["type"], *(one["type"] for one in inner)])


@cache
def recordings() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The requests to api.openai.com, and the events of their answers."""
    found = []
    for folder in (path.parent for path in recorded_streams("responses")):
        if "api.openai.com" in (folder / "meta.json").read_text():
            request = json.loads((folder / "request.json").read_text())
            frames = SSEDecoder().decode((folder / "response.sse").read_bytes())
            found.append((request, [json.loads(frame.data) for frame in frames if frame.data]))
    return found


def created(events: list[dict[str, Any]]) -> int:
    at: int = events[0]["response"]["created_at"]
    return at


def encoded(request: dict[str, Any], turn: Turn) -> list[dict[str, Any]]:
    """The events that mockllm sends for a turn."""
    options = PROTOCOL.options(PROTOCOL.parse(request, NO_TARGET, False))
    frames = streams.encoded(PROTOCOL, turn, Reply("seed", TOKEN, "m", options))
    return [json.loads(frame.data or "") for frame in frames]


def by_kind(events: list[dict[str, Any]]) -> Paths:
    found: Paths = defaultdict(set)
    for event in events:
        found[kind(event)] |= set(paths(event))
    return found


@cache
def known() -> Paths:
    """The paths of all recordings, by kind of event; all kinds share the fields of the response."""
    found: Paths = defaultdict(set)
    for _, events in recordings():
        for name, some in by_kind(events).items():
            found[name] |= some
            found[""] |= {path for path in some if path.startswith(".response")}
    return found


def reencoded(request: dict[str, Any], events: list[dict[str, Any]]) -> Paths:
    frames = SSEDecoder().decode(
        b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    )
    return by_kind(encoded(request, decode_turn(PROTOCOL, frames)[0]))


NEW = [number for number, (_, events) in enumerate(recordings()) if created(events) > NEWEST]


@for_all("number", NEW)
def test_no_field_of_an_event_is_missing(number: int) -> None:
    """Each type of event has all fields that the newest recordings have."""
    request, events = recordings()[number]
    ours = reencoded(request, events)
    missing = {
        f"{name}{path}"
        for name, some in by_kind(events).items()
        for path in some - ours[name]
        if not path.endswith(_OF_THE_MODEL)
    }
    assert missing == set()


@for_all("number", NEW)
def test_no_field_of_an_event_is_made_up(number: int) -> None:
    """Each field of ours is in a recording of the same type of event."""
    request, events = recordings()[number]
    surplus = {
        f"{name}{path}"
        for name, some in reencoded(request, events).items()
        for path in some - known()[name] - known()[""]
    }
    assert surplus == set()


@cache
def bodies() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The requests to api.openai.com of the newest cassettes, and their answers as one body."""
    found = []
    for path in sorted((CORPUS / "suite").rglob("*.yaml")):
        if b"api.openai.com/v1/responses\n" not in path.read_bytes():
            continue
        for entry in vcr.read(ForeignFile(path)):
            if isinstance(entry, Unread) or not entry.path.endswith("/responses"):
                continue
            text = entry.plain().body
            answer = json.loads(text) if text[:1] == b"{" else {}
            if entry.host == "api.openai.com" and answer.get("created_at", 0) > NEWEST:
                found.append((json.loads(entry.request_body), answer))
    return found


def test_bodies_have_the_fields_of_the_newest() -> None:
    """A body that is not streamed has all fields of the newest recordings, and no others."""
    assert len(bodies()) > 5
    ours: set[str] = set()
    theirs: set[str] = set()
    for request, answer in bodies():
        options = PROTOCOL.options(PROTOCOL.parse(request, NO_TARGET, False))
        body = encode_body(PROTOCOL.decode_body(answer), Reply("seed", TOKEN, "m", options))
        ours |= set(paths(body))
        theirs |= set(paths(answer))
        missing = set(paths(answer)) - set(paths(body))
        assert {path for path in missing if not path.endswith(_OF_THE_MODEL)} == set()
    assert ours - theirs == set()
