"""The objects of the Responses API: identifiers, contents of items, the response itself.

https://platform.openai.com/docs/api-reference/responses/object

Only pure functions and data may live here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.events import Cite, StreamError
from mockllm.core.frame import Frame
from mockllm.core.turn import Part, Reasoning, Refusal, Text, TokenUsage, Turn
from mockllm.protocols.base import Reply, dumps, logprob

__all__ = [
    "API",
    "INCOMPLETE",
    "Options",
    "annotation",
    "content",
    "frame_of",
    "incomplete_reason",
    "item_of",
    "logprobs",
    "response_id",
    "response_object",
    "said",
    "terminal",
    "token_logprob",
    "token_of",
]

API = "responses"

INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Neutral finish reasons that end in `response.incomplete`, and the service's word for each."""

_RAW_REASONS = frozenset({"max_messages", "steered"})
_ID = re.compile(r"(?:resp_([0-9a-f]{40})|(?:msg|fc|rs)_([0-9a-f]{40})([0-9a-f]{4,6}))\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """What of a request the answer's bytes depend on.

    Args:
        echo: the fields that the response object repeats, as compact JSON text.
        obfuscation: whether deltas carry random padding.
        encrypted: whether reasoning items must carry `encrypted_content`.
    """

    echo: str = "{}"
    obfuscation: bool = False
    encrypted: bool = False


def response_id(token: str) -> str:
    """The identifier of the response with this token."""
    return f"resp_{token}"


def token_of(id: str) -> str | None:
    """The token inside an identifier of a response or output item of ours; None if not ours."""
    match = _ID.match(id)
    return (match[1] or match[2]) if match else None


def item_of(id: str) -> tuple[str, int] | None:
    """Token and `output_index` inside an identifier of an output item of ours, else None."""
    match = _ID.match(id)
    return (match[2], int(match[3], 16)) if match and match[2] else None


def content(part: Part, finished: bool = True) -> dict[str, Any]:
    """A part as the content (or summary) of its item, empty unless `finished`."""
    match part:
        case Text():
            return {
                "type": "output_text",
                "annotations": [annotation(c, part.text) for c in part.citations] * finished,
                "logprobs": logprobs(part, with_bytes=True) * finished,
                "text": part.text * finished,
            }
        case Refusal():
            return {"type": "refusal", "refusal": part.text * finished}
        case Reasoning():
            kind = "summary_text" if part.summary else "reasoning_text"
            return {"type": kind, "text": part.text * finished}
    raise AssertionError(f"not content of an item: {part}")


def logprobs(part: Text, with_bytes: bool = False) -> list[dict[str, Any]]:
    """Log probabilities of a text's fragments, as if each were a token; empty if not wanted.

    Contents of items tell the `bytes` of a token, events do not.
    """
    if not part.logprobs:
        return []
    return [token_logprob(fragment, with_bytes) for fragment in part.fragments]


def token_logprob(token: str, with_bytes: bool = False) -> dict[str, Any]:
    """The log probability of one token."""
    in_bytes = {"bytes": list(token.encode())} if with_bytes else {}
    return {"token": token, **in_bytes, "logprob": logprob(token), "top_logprobs": []}


def annotation(cite: Cite, text: str) -> dict[str, Any]:
    """A citation of `text`; its place is the first that holds the cited words, else the end."""
    start = text.find(cite.cited_text) if cite.cited_text else -1
    place = (start, start + len(cite.cited_text)) if start >= 0 else (len(text), len(text))
    return {
        "type": "url_citation",
        "start_index": place[0],
        "end_index": place[1],
        "title": cite.title,
        "url": cite.url,
    }


# The response


def response_object(
    reply: Reply,
    status: str,
    *,
    output: list[Any] | None = None,
    usage: TokenUsage | None = None,
    error: StreamError | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """The whole response object, which repeats what the request asked for.

    Args:
        status: `in_progress`, `completed`, `incomplete` or `failed`.
        reason: why it is incomplete.
    """
    echo: dict[str, Any] = json.loads(reply.options.echo)
    value = {
        "id": response_id(reply.token),
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "error": {"code": error.code, "message": error.message} if error else None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": reply.model,
        "output": output or [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "auto",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(usage) if usage else None,
        "user": None,
        "metadata": {},
    }
    for key in ("reasoning", "text"):
        if key in echo:
            echo[key] = {**value[key], **echo[key]}  # type: ignore[dict-item]
    return {**value, **echo}


def _usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def frame_of(type: str, sequence_number: int, fields: Mapping[str, Any]) -> Frame:
    """One event of the stream."""
    data = dumps({"type": type, "sequence_number": sequence_number, **fields})
    return Frame(data, event=type)


def terminal(turn: Turn, reply: Reply, output: list[Any]) -> dict[str, Any]:
    """The response as the end of the stream, or the body, tells it."""
    usage = turn.usage
    if turn.error is not None:
        error = said(turn.error)
        return response_object(reply, "failed", output=output, usage=usage, error=error)
    if turn.finish in INCOMPLETE:
        reason = incomplete_reason(turn)
        return response_object(reply, "incomplete", output=output, usage=usage, reason=reason)
    if turn.finish is None:
        return response_object(reply, "in_progress", output=output)
    return response_object(reply, "completed", output=output, usage=usage)


def incomplete_reason(turn: Turn) -> str | None:
    """The service's word for why a turn is incomplete; None for one that is not."""
    if turn.finish == "length" and turn.finish_raw in _RAW_REASONS:
        return turn.finish_raw
    return INCOMPLETE.get(turn.finish or "")


def said(error: StreamError) -> StreamError:
    """The error with type and code filled in as the service does: they are never missing."""
    type = error.type or "server_error"
    return StreamError(error.message, type, error.code or type)
