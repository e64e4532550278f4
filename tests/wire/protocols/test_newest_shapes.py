"""What is sent over Anthropic and Gemini has the fields of the newest recorded answers, and what
was recorded over them is kept as neutral turns.

For the first, each recorded answer is decoded and encoded again, without the extra fields that a
recording keeps, and the paths of all values are compared.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mockllm.core.events import Frame
from mockllm.core.turn import TokenUsage, Turn
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers import vcr
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Unread, whole
from mockllm.record.recording.drafting.turns import draft_turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply, WireProtocol
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.route_matching import Detected, detect
from mockllm.wire.protocols.values import json_object, mapping, string
from tests.corpus import CORPUS, needs_corpus
from tests.wire.protocols import streams

pytestmark = [needs_corpus, pytest.mark.slow]

Json = dict[str, Any]

NEWEST_CLAUDE = ("claude-opus-4-8", "claude-sonnet-5")
NEWEST_GEMINI = 1_778_803_200
"""2026-05-15. An id of an answer of Gemini begins with the time in seconds, in four bytes."""

HOSTS = {"anthropic": "api.anthropic.com", "gemini": "generativelanguage.googleapis.com"}
OPAQUE = frozenset({"input", "args"})
"""Fields whose values belong to the tools of a client."""
ON_REQUEST = ("usage.iterations",)
"""Fields that only answers to some beta features have."""


def captured() -> Iterator[Captured]:
    """All recorded exchanges."""
    for path in sorted([*CORPUS.glob("suite/**/*.yaml"), *CORPUS.glob("cassettes/*.yaml")]):
        yield from (entry for entry in vcr.read(ForeignFile(path)) if not isinstance(entry, Unread))
    for meta in sorted(CORPUS.glob("streams/*/*/meta.json")):
        value = json.loads(meta.read_text(encoding="utf-8"))
        query = "?alt=sse" if ":stream" in value["path"] else ""
        yield Captured(
            "POST",
            f"https://{value['host']}{value['path']}{query}",
            (),
            meta.with_name("request.json").read_bytes(),
            value["status"],
            (("content-type", value["content_type"]),),
            whole(meta.with_name("response.sse").read_bytes()),
            source=meta.parent.name,
        )


def answers(api: str) -> Iterator[tuple[str, Detected, Json, list[Json]]]:
    """The newest recorded answers: source, API, body of the request, events or one body."""
    for exchange in captured():
        found = detect(exchange.method, exchange.url, exchange.request_body)
        if found.protocol is None or found.protocol.name != api or exchange.status != 200:
            continue
        if urlsplit(exchange.url).hostname != HOSTS[api]:
            continue
        body = exchange.plain().body
        one = json_object(body)
        values = [json_object(frame.data) for frame in sse.decode(body)] if one is None else [one]
        events = [value for value in values if value is not None]
        if is_newest(api, events[0]):
            yield exchange.source, found, json_object(exchange.request_body) or {}, events


def is_newest(api: str, first: Json) -> bool:
    if api == "anthropic":
        return string(mapping(first.get("message", first)).get("model")) in NEWEST_CLAUDE
    id = first["responseId"]
    at = base64.urlsafe_b64decode(id + "=" * (-len(id) % 4))[:4]
    return int.from_bytes(at, "little") > NEWEST_GEMINI


def encoded(protocol: WireProtocol, turn: Turn, reply: Reply, streamed: bool) -> list[Json]:
    """The events of a turn, or its body."""
    if not streamed:
        return [protocol.encode_body(turn, reply)]
    return [json.loads(frame.data or "") for frame in streams.encoded(protocol, turn, reply)]


def paths(value: object, path: str = "") -> Iterator[str]:
    """The paths of all values but null ones and empty lists; items of lists by their type."""
    match value:
        case dict():
            for name, inner in value.items():
                below = f"{path}.{name}" if path else name
                if below not in ON_REQUEST:
                    yield from [below] if name in OPAQUE else paths(inner, below)
        case list():
            for item in value:
                kind = string(mapping(item).get("type"))
                yield from paths(item, f"{path}[{kind}]")
        case None:
            return
        case _:
            yield path


def by_type(values: list[Json]) -> dict[str, set[str]]:
    """The paths of all events of a type, or of a body."""
    found: dict[str, set[str]] = {}
    for value in values:
        type = value.get("type") if "delta" in value or "content_block" in value else ""
        inner = mapping(value.get("delta") or value.get("content_block")).get("type", "")
        found.setdefault(f"{type or value.get('type')} {inner}", set()).update(paths(value))
    return found


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_the_fields_are_those_of_the_newest_answers(api: str) -> None:
    """Events and bodies have the fields of the newest recordings of the service, and no others but
    null ones."""
    differing, kinds = [], set()
    for source, found, body, values in answers(api):
        protocol = found.protocol
        assert protocol is not None
        request = protocol.parse(body, found.target, False)
        streamed = request.stream
        if streamed:
            frames = [Frame(json.dumps(value)) for value in values]
            turn, _ = decode_turn(protocol, frames)
        else:
            turn = protocol.decode_body(values[0])
        usage = turn.usage or TokenUsage(0, 0)
        reply = Reply("seed", "0" * 40, request.model, protocol.options(request), usage)
        ours, theirs = by_type(encoded(protocol, turn, reply, streamed)), by_type(values)
        kinds.add((streamed, bool(turn.tool_calls)))
        differing += [
            f"{source} {kind}: {sorted(ours.get(kind, set()) ^ theirs.get(kind, set()))}"
            for kind in {**ours, **theirs}
            if ours.get(kind) != theirs.get(kind)
        ]
    assert differing == []
    assert {(True, False), (False, False)} <= kinds


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_recorded_answers_are_neutral(api: str) -> None:
    """At least 95 of 100 recorded answers are read whole."""
    problems = []
    for exchange in captured():
        found = detect(exchange.method, exchange.url, exchange.request_body)
        if found.protocol is None or found.protocol.name != api:
            continue
        body = json_object(exchange.request_body) or {}
        drafted = draft_turn(exchange, found, found.protocol.parse(body, found.target, False))
        problems.append(drafted.decoded.problem if drafted.decoded is not None else "")
    assert problems.count("") >= 0.95 * len(problems) > 0, problems
