"""The objects of Realtime: responses, items, usage and ids.

https://platform.openai.com/docs/api-reference/realtime-server-events
"""

from __future__ import annotations

import json

from mockllm.core import events as ev
from mockllm.core.seeded import derive
from mockllm.core.turn import TokenUsage
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_common import error_of
from mockllm.wire.protocols.openai_realtime.request import Options
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import count, mapping, string

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is `incomplete`, by the neutral reason."""

FINISHES: dict[str, ev.FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


def response_id(token: str) -> str:
    """The id of an answer."""
    return f"resp_{token}"


def item_id(seed: str, number: int) -> str:
    """The id of an item of an answer."""
    return "item_" + derive(seed, "item", number, length=21)


def event_id(seed: str, number: int) -> str:
    """The id of an event."""
    return "event_" + derive(seed, "event", number, length=21)


def response(reply: Reply, status: str, details: Json | None, output: list[Json]) -> Json:
    """The object of an answer, without usage."""
    options: Options = reply.options
    sound: Json = {"type": options.sound}
    if options.rate is not None:
        sound["rate"] = options.rate
    return {
        "object": "realtime.response",
        "id": response_id(reply.token),
        "status": status,
        "status_details": details,
        "output": output,
        "conversation_id": options.conversation,
        "output_modalities": [options.modality],
        "max_output_tokens": options.most,
        "audio": {"output": {"format": sound, "voice": options.voice}},
        "usage": None,
        "metadata": json.loads(options.metadata),
    }


def ending(finish: ev.Finish) -> tuple[str, Json | None]:
    """Status and details of a response that is over."""
    reason = _REASONS.get(finish.reason)
    if reason is None:
        return "completed", None
    return "incomplete", {"type": "incomplete", "reason": reason}


def failure(error: ev.StreamError) -> Json:
    """The details of a response that failed."""
    shown = {
        "type": error.type or "server_error",
        "code": error.code,
        "message": error.message,
    }
    return {"type": "failed", "error": shown}


def read_ending(response: Fields, *, called: bool) -> ev.Finish | ev.StreamError | None:
    """How a response ended; None where it is still on its way.

    Args:
        called: whether it has calls.
    """
    status, details = response.get("status"), mapping(response.get("status_details"))
    match status:
        case "failed":
            return error_of(details.get("error") or "The response failed.")
        case "incomplete":
            reason = string(details.get("reason"))
            usual = FINISHES.get(reason)
            return ev.Finish(usual) if usual else ev.Finish("length", reason or None)
        case "cancelled":
            return None
        case "completed":
            return ev.Finish("tool_calls" if called else "stop")
    return None


def usage_object(usage: TokenUsage, options: Options) -> Json:
    """The counts of an answer. Most of what is spoken counts as audio."""
    heard = min(options.heard, usage.input)
    spoken = usage.output - usage.output // 5 if options.modality == "audio" else 0
    cached = min(usage.cached, usage.input - heard)
    none = {"audio_tokens": 0, "image_tokens": 0}
    return {
        "total_tokens": usage.input + usage.output,
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "input_token_details": {
            "text_tokens": usage.input - heard,
            "audio_tokens": heard,
            "image_tokens": 0,
            "cached_tokens": cached,
            "cached_tokens_details": {"text_tokens": cached, **none},
        },
        "output_token_details": {"text_tokens": usage.output - spoken, "audio_tokens": spoken},
    }


def read_usage(value: object) -> ev.Usage | None:
    """The counts in a `usage` object; None where there are none."""
    usage = mapping(value)
    if "input_tokens" not in usage and "output_tokens" not in usage:
        return None
    details = mapping(usage.get("input_token_details"))
    return ev.Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        cached=count(details.get("cached_tokens")),
    )
