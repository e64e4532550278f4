"""Shared by streams and bodies of the Messages API: stop reasons, usage, message and blocks.

https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

from mockllm.core.events import Cite, Passage, Unit
from mockllm.core.seeded import derive
from mockllm.core.turn import Part, Reasoning, Refusal, ServerTool, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols.anthropic_messages.bedrock import BEDROCK
from mockllm.wire.protocols.anthropic_messages.server_tools import DIRECT, opened_tool, requests_of
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import (
    StopReasons,
    count,
    mapping,
    passage_of,
    string,
    within_input,
)

DEFAULT_ERROR = "api_error"
"""The type of an error that has none; the service always sends one."""

UNTHREADED = "thread_unsupported_request"
"""The code of an error after which clients continue without a thread, with the whole history."""

REFUSAL_DETAILS = {"type": "refusal", "category": None, "explanation": None}
"""The `stop_details` of a refusal under no named policy."""

STOPS = StopReasons(
    {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "refusal": "refusal",
        "content_filter": "refusal",
    },
    rare={
        "stop_sequence": "stop",
        "pause_turn": "stop",
        "compaction": "stop",
        "model_context_window_exceeded": "length",
    },
    sequence="stop_sequence",
)
"""The values of `stop_reason`."""


# Usage


def message_usage(turn: Turn) -> TokenUsage:
    """The usage in the message, which always has one: zeros where the turn has none."""
    return within_input(turn.usage or TokenUsage(0, 0))


def write_usage(turn: Turn) -> Json:
    """The `usage` object at the end of the stream. In this API `input_tokens` does not include
    tokens that are read from a cache or written into one; in `TokenUsage` it does."""
    usage = message_usage(turn)
    return {
        **_input_usage(usage),
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        **requests_of(turn),
    }


def _input_usage(usage: TokenUsage) -> Json:
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_written,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
    }


def read_usage(value: Fields) -> TokenUsage:
    """The usage in a `usage` object; the inverse of `write_usage`. Tokens that are read from a
    cache or written into one count as input."""
    cached = count(value.get("cache_read_input_tokens"))
    created = count(value.get("cache_creation_input_tokens"))
    details = mapping(value.get("output_tokens_details"))
    return TokenUsage(
        count(value.get("input_tokens")) + cached + created,
        count(value.get("output_tokens")),
        count(details.get("thinking_tokens")),
        cached,
        created,
    )


# The message and its blocks


def message_id(reply: Reply) -> str:
    """The id of an answer, which names the service if it is Bedrock."""
    service = "bdrk_" if reply.options == BEDROCK else ""
    return f"msg_{service}01" + derive(reply.seed, "message", reply.token, length=22)


def request_id(seed: str, *what: object) -> str:
    """The id of a request, for the header `request-id` and for errors."""
    return "req_01" + derive(seed, "request", *what, length=22)


def opened_message(turn: Turn, reply: Reply) -> Json:
    """The message in `message_start`: without content, and with one output token, because the
    service sends a small number there and the real one at the end."""
    usage = message_usage(turn)
    # A cache lives for five minutes unless the request says more.
    created = {"ephemeral_5m_input_tokens": usage.cache_written, "ephemeral_1h_input_tokens": 0}
    return {
        "model": reply.model,
        "id": message_id(reply),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            **_input_usage(usage),
            "cache_creation": created,
            "output_tokens": 1,
            "service_tier": reply.service_tier or "standard",
            "inference_geo": "global",
        },
    }


def opened_block(part: Part) -> Json | None:
    """The block in `content_block_start`; None for parts without a block (opaque frames, empty
    refusals, tools of other services)."""
    match part:
        case Text(citations=citations):
            return {**({"citations": []} if citations else {}), "type": "text", "text": ""}
        case Refusal(fragments=fragments) if any(fragments):
            return {"type": "text", "text": ""}
        case Reasoning():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall(id=id, name=name):
            # Clients replace `input` by what the deltas join to, so the service leaves it empty.
            return {"type": "tool_use", "id": id, "name": name, "input": {}, "caller": DIRECT}
        case ServerTool():
            return opened_tool(part)
    return None


def hidden(part: Reasoning) -> bool:
    """Whether reasoning has no text: its block has a signature only (`display: omitted`)."""
    return part.fragments == ("",)


def signature_of(part: Reasoning) -> str:
    """The signature of reasoning, which the service always sends; derived from the text where the
    turn has none."""
    return part.signature or "ErUB" + derive(part.text, "signature", length=60)


_PLACES: dict[str, tuple[Unit, str, str]] = {
    "char_location": ("characters", "start_char_index", "end_char_index"),
    "page_location": ("pages", "start_page_number", "end_page_number"),
    "content_block_location": ("blocks", "start_block_index", "end_block_index"),
}
"""By the type of a citation of a document, what its place counts, and the fields with it."""
_TYPES = {unit: type for type, (unit, _, _) in _PLACES.items()}
_SEARCH = "search_result_location"


def citation(cite: Cite) -> Json:
    """A citation: of a document or a search result in the request, or of a result of a web search.
    Without a place and a URL, it is one of the first document, whose place is derived."""
    passage = cite.passage
    if passage is None and not cite.url:
        passage = Passage(0, "characters", 0, len(cite.cited_text))
    if passage is not None:
        _, start, end = _PLACES[_TYPES[passage.unit]]
        span = {start: passage.start, end: passage.end}
        if passage.of_search:
            return {
                "type": _SEARCH,
                "cited_text": cite.cited_text,
                "search_result_index": passage.source,
                "source": cite.url,
                "title": cite.title or None,
                **span,
            }
        return {
            "type": _TYPES[passage.unit],
            "cited_text": cite.cited_text,
            "document_index": passage.source,
            "document_title": cite.title or None,
            **span,
        }
    return {
        "type": "web_search_result_location",
        "cited_text": cite.cited_text,
        "url": cite.url,
        "title": cite.title or None,
        "encrypted_index": "Eo8B" + derive(cite.url, "citation", cite.cited_text, length=60),
    }


def read_citation(part: int, value: object) -> Cite | None:
    """The neutral form of a citation of any kind; None for a value that is none."""
    cite = mapping(value)
    if not string(cite.get("type")).endswith("_location"):
        return None
    # A `search_result_location` has a source, which may be a URL; documents have a title only.
    url = string(cite.get("url")) or string(cite.get("source"))
    title = string(cite.get("title")) or string(cite.get("document_title"))
    return Cite(part, url, title, string(cite.get("cited_text")), _passage(cite))


def _passage(cite: Fields) -> Passage | None:
    type = string(cite.get("type"))
    of_search = type == _SEARCH
    place = _PLACES.get("content_block_location" if of_search else type)
    if place is None:
        return None
    unit, start, end = place
    index = cite.get("search_result_index" if of_search else "document_index")
    return passage_of(index, unit, cite.get(start), cite.get(end), of_search=of_search)
