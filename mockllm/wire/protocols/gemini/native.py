"""What an answer of Gemini says of itself besides its content: fields of a candidate.

https://ai.google.dev/api/generate-content#v1beta.Candidate

A native part has the name of its field as `type`, and the keys of its value. The parts follow the
content, wherever the service sends them: an answer that is not streamed has no other order. Of the
grounding, the sources and what they support are citations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.wire.protocols.gemini import API
from mockllm.wire.protocols.gemini_common import wire
from mockllm.wire.protocols.native import (
    Mistake,
    Shape,
    by_key,
    integer,
    items,
    keys,
    mapping,
    native_event,
)
from mockllm.wire.protocols.native import text as string
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import base64_bytes, json_object

_TOKEN = "continuationToken"  # noqa: S105  # the name of a field
_CITED = frozenset({"groundingChunks", "groundingSupports"})
_QUERIES = items(string)


def _base64(value: Any) -> Iterator[Mistake]:
    # `bytes` of protocol buffers.
    yield from string(value)
    if isinstance(value, str) and base64_bytes(value) is None:
        yield (), f"must be base64, got {value!r}"


_SOURCE = keys(
    {},
    {
        "startIndex": integer,
        "endIndex": integer,
        "uri": string,
        "title": string,
        "license": string,
        "publicationDate": mapping,
    },
)

NATIVE: dict[str, Shape] = {
    "groundingMetadata": keys(
        {},
        {
            "webSearchQueries": _QUERIES,
            "imageSearchQueries": _QUERIES,
            "retrievalQueries": _QUERIES,
            "searchEntryPoint": keys({}, {"renderedContent": string, "sdkBlob": _base64}),
            "retrievalMetadata": mapping,
            "googleMapsWidgetContextToken": string,
            "sourceFlaggingUris": items(mapping),
        },
    ),
    "urlContextMetadata": keys(
        {"urlMetadata": items(keys({}, {"retrievedUrl": string, "urlRetrievalStatus": string}))}
    ),
    # The Gemini API names the list in one way, and Vertex AI in the other.
    "citationMetadata": keys({}, {"citationSources": items(_SOURCE), "citations": items(_SOURCE)}),
    _TOKEN: keys({"token": _base64}),
}
"""The shapes of parts by the fields of the candidate."""


def write_field(frame: Frame) -> Json:
    """The field of a candidate for a native part; {} for a part of no known shape."""
    value = json_object(frame.data) or {}
    if next(by_key("type", NATIVE)(value), None) is not None:
        return {}
    name = value.pop("type")
    return {name: value["token"] if name == _TOKEN else value} if value else {}


def read_fields(candidate: Fields) -> tuple[dict[str, Json], Json]:
    """The keys of native parts, by their fields, and the fields that are in no known shape."""
    known: dict[str, Json] = {}
    rest: Json = {}
    for name, shape in NATIVE.items():
        value = candidate.get(name)
        if isinstance(value, Mapping):
            value = {key: inner for key, inner in value.items() if key not in _CITED}
        if value:
            written = {"token": value} if name == _TOKEN else value
            if next(shape(written), None) is None:
                known[name] = written
            else:
                rest[name] = value
    return known, rest


def merge_fields(known: Mapping[str, Json], more: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of a stream so far: a later value replaces an earlier one, key by key."""
    names = [name for name in NATIVE if name in known or name in more]
    return {name: {**known.get(name, {}), **more.get(name, {})} for name in names}


def native_part(part: int, name: str, value: Json) -> ev.Raw:
    """The native part of a field; a frame where it has too many values for one."""
    field = value["token"] if name == _TOKEN else value
    frame = Frame(wire({"candidates": [{name: field, "index": 0}]}))
    event = native_event(part, API, {"type": name, **value}, NATIVE)
    return event or ev.Raw(part, API, frame)
