"""The objects of the Responses API: identifiers, contents of items, the response itself.

https://platform.openai.com/docs/api-reference/responses/object
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core.events import FinishReason, Frame, StreamError, Token
from mockllm.core.seeded import derive_int
from mockllm.core.turn import Part, Reasoning, Refusal, Text, TokenUsage, Turn
from mockllm.wire.protocols.base import Reply, dumps, logprob
from mockllm.wire.protocols.openai_responses.citations import annotations_of
from mockllm.wire.protocols.records import Fields, Json

INCOMPLETE: dict[FinishReason, str] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
"""The neutral finish reasons that end in `response.incomplete`, with the service's `reason`."""

_RAW_REASONS = frozenset({"max_messages", "steered", *INCOMPLETE.values()})
_ID = re.compile(r"(?:resp_([0-9a-f]{40})|[a-z]{2,4}_([0-9a-f]{40})([0-9a-f]{4,6}))\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        echo: the fields that the response object repeats, as compact JSON text.
        obfuscation: whether deltas have padding, which `stream_options.include_obfuscation: false`
            turns off.
        encrypted: whether reasoning items must have `encrypted_content`.
        namespaces: of the offered tools that have one, by their names.
        partial_images: how many the request asks for before each finished image.
        compacting: whether the request ends with a `compaction_trigger`.
        own_names: of the tools whose name several namespaces have, by the names that tell them
            apart.
    """

    echo: str = "{}"
    obfuscation: bool = False
    encrypted: bool = False
    namespaces: tuple[tuple[str, str], ...] = ()
    partial_images: int = 0
    compacting: bool = False
    own_names: tuple[tuple[str, str], ...] = ()


def response_id(token: str) -> str:
    """The identifier of the response with this token."""
    return f"resp_{token}"


def token_of(id: str) -> str | None:
    """The token in an id that mockllm gave to a response or output item; None for other ids."""
    match = _ID.match(id)
    return (match[1] or match[2]) if match else None


def item_of(id: str) -> tuple[str, int] | None:
    """Token and `output_index` in an id that mockllm gave to an output item; None for other ids."""
    match = _ID.match(id)
    return (match[2], int(match[3], 16)) if match and match[2] else None


def own_id(id: str) -> bool:
    """Whether mockllm derived an id of a response, an item or a call."""
    return token_of(id) is not None


def content(part: Part, finished: bool = True) -> Json:
    """A part as the content (or summary) of its item, empty unless `finished`."""
    match part:
        case Text():
            return {
                "type": "output_text",
                "annotations": annotations_of(part) * finished,
                "logprobs": logprobs(part, with_bytes=True) * finished,
                "text": part.text * finished,
            }
        case Refusal():
            return {"type": "refusal", "refusal": part.text * finished}
        case Reasoning():
            kind = "summary_text" if part.summary else "reasoning_text"
            return {"type": kind, "text": part.text * finished}
    raise AssertionError(f"not content of an item: {part}")


def logprobs(part: Text, with_bytes: bool = False) -> list[Json]:
    """The log probabilities of a text, derived ones of its fragments where it has no tokens; [] if
    it has none. The service sends `bytes` of tokens in contents of items, and not in events."""
    if not part.logprobs:
        return []
    derived = (Token(fragment, logprob(fragment)) for fragment in part.fragments)
    return [token_logprob(token, with_bytes) for token in part.tokens or derived]


def token_logprob(token: Token, with_bytes: bool = False) -> Json:
    """The log probability of one token."""
    top = [_token(other, with_bytes) for other in token.top]
    return {**_token(token, with_bytes), "top_logprobs": top}


def _token(token: Token, with_bytes: bool) -> Json:
    in_bytes = {"bytes": list(token.text.encode("utf-8", "surrogatepass"))} if with_bytes else {}
    return {"token": token.text, **in_bytes, "logprob": token.logprob}


# The response


def response_object(
    reply: Reply,
    status: str,
    *,
    output: list[Any] | None = None,
    usage: TokenUsage | None = None,
    error: StreamError | None = None,
    reason: str | None = None,
) -> Json:
    """The whole response object, which repeats most fields of the request.

    Args:
        status: `in_progress`, `completed`, `incomplete` or `failed`.
        reason: why it is incomplete.
    """
    over = status in ("completed", "incomplete", "failed")
    value: Json = {
        "id": response_id(reply.token),
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "completed_at": _completed_at(reply) if status == "completed" else None,
        "error": {"code": error.code, "message": error.message} if error else None,
        "frequency_penalty": 0.0,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": reply.model,
        "moderation": None,
        "output": output or [],
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "prompt_cache_retention": "in_memory",
        "reasoning": {
            "context": _reasoning_context(reply.model),
            "effort": None,
            "mode": "standard",
            "summary": None,
        },
        "safety_identifier": None,
        "service_tier": "default" if over else "auto",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tool_usage": tool_usage(output or []),
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage_object(usage) if usage else None,
        "user": None,
        "metadata": {},
    }
    return value | _echo(reply, value, over)


def _reasoning_context(model: str) -> str:
    """The mode that a response names where the request leaves the choice to the model, which is
    always one of two. (The SDK's `Reasoning` says which models have which.)"""
    return "all_turns" if model.startswith("gpt-5.6") else "current_turn"


def _echo(reply: Reply, usual: Json, over: bool) -> Json:
    """The fields that the response repeats, with what the request leaves out of objects, and the
    tier: until the answer is over, the one that was requested."""
    echo: Json = json.loads(reply.options.echo)
    if echo.get("reasoning", {}).get("context") == "auto":
        del echo["reasoning"]["context"]
    for key in ("reasoning", "text"):
        if key in echo:
            echo[key] = {**usual[key], **echo[key]}
    if over and echo.get("service_tier") == "auto":
        del echo["service_tier"]
    return echo | ({"service_tier": reply.service_tier} if over and reply.service_tier else {})


def tool_usage(output: list[Any]) -> Json:
    """The usage of hosted tools for the items of an answer."""
    searches = sum(item.get("type") == "web_search_call" for item in output)
    images = {"image_tokens": 0, "text_tokens": 0}
    return {
        "image_gen": {
            "input_tokens": 0,
            "input_tokens_details": images,
            "output_tokens": 0,
            "output_tokens_details": images,
            "total_tokens": 0,
        },
        "web_search": {"num_requests": searches},
    }


def _completed_at(reply: Reply) -> int:
    """When the answer was complete, in seconds since 1970: up to 8 seconds after `created_at`."""
    return reply.created + 1 + derive_int(reply.seed, "completed", below=8)


def usage_object(usage: TokenUsage) -> Json:
    """The tokens of an answer."""
    return {
        "input_tokens": usage.input,
        # openai-python 3 requires both details in its types.
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def frame_of(type: str, sequence_number: int, fields: Fields) -> Frame:
    """One event of the stream."""
    data = dumps({"type": type, "sequence_number": sequence_number, **fields})
    return Frame(data, event=type)


def terminal(turn: Turn, reply: Reply, output: list[Any]) -> Json:
    """The response object in the last event of the stream, and in the body."""
    usage = turn.usage
    if turn.error is not None:
        error = complete_error(turn.error)
        return response_object(reply, "failed", output=output, usage=usage, error=error)
    reason = incomplete_reason(turn)
    if reason is not None:
        return response_object(reply, "incomplete", output=output, usage=usage, reason=reason)
    if turn.finish is None:
        return response_object(reply, "in_progress", output=output)
    return response_object(reply, "completed", output=output, usage=usage)


def incomplete_reason(turn: Turn) -> str | None:
    """The `reason` in `incomplete_details`; None for a turn that is complete."""
    if turn.finish is None:
        return None
    return turn.finish_raw if turn.finish_raw in _RAW_REASONS else INCOMPLETE.get(turn.finish)


def complete_error(error: StreamError) -> StreamError:
    """The error with type and code, which the service always sends."""
    type = error.type or "server_error"
    return StreamError(error.message, type, error.code or type)


def with_sequence_numbers(frames: list[Frame], before: int) -> list[Frame]:
    """Events with the numbers that they have after so many others."""
    frames_after = []
    for number, frame in enumerate(frames, before):
        value = json.loads(frame.data or "null")
        if isinstance(value, dict) and "sequence_number" in value:
            frame = replace(frame, data=dumps({**value, "sequence_number": number}))
        frames_after.append(frame)
    return frames_after
