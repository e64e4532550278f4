"""Shared by streams and bodies of Converse: stop reasons, usage, citations, tools of the service.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html

The service sorts the keys of all objects.
"""

from __future__ import annotations

from mockllm.core.events import Cite, Passage, Unit
from mockllm.core.seeded import derive, derive_int
from mockllm.core.turn import ServerTool, TokenUsage
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import (
    StopReasons,
    array,
    count,
    json_object,
    mapping,
    passage_of,
    sendable_value,
    string,
    within_input,
)

STOPS = StopReasons(
    {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "content_filtered",
        "refusal": "content_filtered",
    },
    rare={
        "guardrail_intervened": "content_filter",
        "malformed_model_output": "stop",
        "malformed_tool_use": "stop",
        "model_context_window_exceeded": "length",
        "stop_sequence": "stop",
    },
    sequence="stop_sequence",
)
"""The values of `stopReason`."""


# Usage


def write_usage(usage: TokenUsage) -> Json:
    """The `usage` object. `inputTokens` does not include tokens that are read from a cache or
    written into one, `totalTokens` does; in `TokenUsage` both do."""
    usage = within_input(usage)
    cached, written = usage.cached, usage.cache_written
    cache = {"cacheReadInputTokens": cached, "cacheWriteInputTokens": written}
    return {
        **(cache if cached or written else {}),
        "inputTokens": usage.input - cached - written,
        "outputTokens": usage.output,
        "serverToolUsage": {},
        "totalTokens": usage.input + usage.output,
    }


def read_usage(value: Fields) -> TokenUsage:
    """The usage in a `usage` object. The service names cached tokens twice (`...TokenCount`), which
    counts once; all of them count as input."""
    cached = count(value.get("cacheReadInputTokens"))
    written = count(value.get("cacheWriteInputTokens"))
    input = count(value.get("inputTokens")) + cached + written
    return TokenUsage(input, count(value.get("outputTokens")), 0, cached, written)


def metrics(reply: Reply) -> Json:
    """The `metrics` object, derived from the reply."""
    return {"latencyMs": 200 + derive_int(reply.seed, "latency", below=2000)}


# Citations


_PLACES: dict[str, tuple[Unit, bool, str]] = {
    "documentChar": ("characters", False, "documentIndex"),
    "documentPage": ("pages", False, "documentIndex"),
    "documentChunk": ("blocks", False, "documentIndex"),
    "searchResultLocation": ("blocks", True, "searchResultIndex"),
}
"""By its member, what a location counts, whether in a search result, and the field with the number
of its source."""
_MEMBERS = {(unit, of_search): name for name, (unit, of_search, _) in _PLACES.items()}


def citation(cite: Cite) -> Json:
    """A citation: of a document or a search result in the request, or of a page of the web. Without
    a place and a URL, it is one of the first document, whose place is derived."""
    passage = cite.passage
    if passage is None and not cite.url:
        passage = Passage(0, "characters", 0, len(cite.cited_text))
    location: Json = {"web": {"url": cite.url}}
    source: Json = {}
    if passage is not None:
        name = _MEMBERS[passage.unit, passage.of_search]
        span = {_PLACES[name][2]: passage.source, "end": passage.end, "start": passage.start}
        location = {name: dict(sorted(span.items()))}
        source = {"source": cite.url} if cite.url else {}
    return {
        "location": location,
        **source,
        **({"sourceContent": [{"text": cite.cited_text}]} if cite.cited_text else {}),
        **({"title": cite.title} if cite.title else {}),
    }


def read_citation(part: int, value: Fields) -> Cite:
    """The neutral form of a citation of any kind."""
    location = mapping(value.get("location"))
    url = string(mapping(location.get("web")).get("url")) or string(value.get("source"))
    texts = [string(mapping(content).get("text")) for content in array(value.get("sourceContent"))]
    return Cite(part, url, string(value.get("title")), "".join(texts), _passage(location))


def _passage(location: Fields) -> Passage | None:
    for name, (unit, of_search, index) in _PLACES.items():
        if place := mapping(location.get(name)):
            start, end = place.get("start"), place.get("end")
            return passage_of(place.get(index), unit, start, end, of_search=of_search)
    return None


# Tools of the service

SERVER_USE = "server_tool_use"
"""The type of a call that the service answers."""

_TOOLS = {"code_interpreter": "nova_code_interpreter", "web_search": "nova_grounding"}
_TOOL_KINDS = {name: kind for kind, name in _TOOLS.items()}


def server_tool_name(part: ServerTool) -> str | None:
    """The name of a call of the service; None for a tool that this API does not have, and for an
    input that is no JSON object."""
    if part.input and json_object(part.input) is None:
        return None
    return part.name if part.name in _TOOL_KINDS else _TOOLS.get(part.kind)


def read_server_tool(name: str) -> tuple[str, str]:
    """The neutral kind and name of a tool."""
    kind = _TOOL_KINDS.get(name, name)
    return kind, "" if _TOOLS.get(kind, kind) == name else name


def server_id(part: ServerTool) -> str:
    """The id of a call, derived from the call where the part has none."""
    return part.id or "tooluse_" + derive(part.kind, "server tool", part.input, length=22)


def server_result(part: ServerTool) -> list[Json] | None:
    """The content of a result; None without one, and for one in the form of another API."""
    content = sendable_value(part.output or "")
    if not isinstance(content, list) or not content or not all(map(_is_content, content)):
        return None
    return content


def _is_content(value: object) -> bool:
    return bool({"json", "text"} & mapping(value).keys())
