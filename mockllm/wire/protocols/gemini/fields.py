"""Shared by both directions of Gemini: options, finish reasons, usage.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mockllm.core import events as ev
from mockllm.core.events import Frame, Usage
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.gemini_common import json_value
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        array: whether the stream is one JSON array instead of events (no `alt=sse`).
        ids: whether function calls have ids.
        partial: whether arguments are streamed in fragments (Vertex AI).
        candidates: `candidateCount`; all candidates have the same content.
        vertex: whether the path is one of Vertex AI.
    """

    array: bool = False
    ids: bool = False
    partial: bool = False
    candidates: int = 1
    vertex: bool = False


# JSON

ARRAY_SEPARATOR, ARRAY_END = "\n,\r\n", "\n]"
"""What stands between the elements of the array that the service sends without `alt=sse`, and at
its end; clients split it there."""


# Finish reasons

BLOCKED = "promptFeedback.blockReason="
"""The prefix of `finish_raw` for a blocked prompt, whose answer has no candidate."""

CALLS_MESSAGE = "Model generated function call(s)."
"""The `finishMessage` of a body with calls."""

SAFETY_RATINGS = [
    {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
]
"""The ratings sent with `SAFETY`."""

_MALFORMED = "MALFORMED_FUNCTION_CALL"
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
_VALUE = re.compile(r"(?:promptFeedback\.blockReason=)?[A-Z][A-Z_]*\Z")
# https://ai.google.dev/api/generate-content#FinishReason
FINISHES: dict[ev.FinishReason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "STOP",
}
"""The usual `finishReason` of each finish."""

_REASONS: dict[str, ev.FinishReason] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "MODEL_ARMOR",
            "ESCALATION",
        ),
        "content_filter",
    ),
}

ABNORMAL = (
    "OTHER",
    _MALFORMED,
    "IMAGE_OTHER",
    "NO_IMAGE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
    "PUP_LIMITED_DISABLED",
)
"""The values for answers that end in another way, which the neutral form does not tell: they are
`tool_calls` after calls, and `stop` otherwise."""

FINISH_REASONS = frozenset({*FINISHES.values(), *_REASONS, *ABNORMAL})
"""All values that are known."""


def write_finish(reason: ev.FinishReason, raw: str | None, *, malformed: bool) -> str:
    """The `finishReason` of a finish, or `BLOCKED` and the block reason of a prompt.

    Args:
        raw: sent as it is if it can be a value of this API.
        malformed: whether the turn has a call with arguments that are not an object.
    """
    if raw is not None and raw != _UNSPECIFIED and _VALUE.match(raw):
        return raw
    usual = FINISHES[reason]
    return _MALFORMED if malformed and usual == "STOP" else usual


def read_finish(value: str, *, calls: bool) -> ev.Finish | None:
    """The finish of a `finishReason`; None where it is absent. `STOP` after calls is `tool_calls`,
    because Gemini has no value for calls."""
    if value in ("", _UNSPECIFIED):
        return None
    if value.startswith(BLOCKED):
        return ev.Finish("content_filter", value)
    reason = _REASONS.get(value, "tool_calls" if calls else "stop")
    usual = value == FINISHES[reason]
    return ev.Finish(reason, None if usual else value)


def ends(frame: Frame) -> bool:
    """Whether a frame has the finish reason of the first candidate, or blocks the prompt: it
    replaces the end of its turn."""
    chunk, first = _first_candidate(frame)
    blocked = mapping(chunk.get("promptFeedback")).get("blockReason")
    return bool(blocked or (first.get("finishReason") and not first.get("index")))


def has_part(frame: Frame) -> bool:
    """Whether a frame has a part of content, so that texts before and after it are not one."""
    _, first = _first_candidate(frame)
    return bool(mapping(first.get("content")).get("parts"))


def _first_candidate(frame: Frame) -> tuple[Fields, Fields]:
    chunk = mapping(json_value(frame.data or ""))
    return chunk, mapping(next(iter(array(chunk.get("candidates"))), None))


def blocked_reason(value: str) -> str | None:
    """The `blockReason` in the result of `write_finish`; None for a finish reason."""
    return value.removeprefix(BLOCKED) if value.startswith(BLOCKED) else None


# Usage

_DETAILED = re.compile(r"gemini-(?:1\.|2\.0)")
"""The models that say on the Gemini API what kind of tokens an answer has; later ones do not."""


def write_usage(usage: Usage, visible: int, reply: Reply) -> Json:
    """The object in a chunk.

    Args:
        visible: the tokens of the visible answer so far.
        reply: of the answer. Vertex AI names the kind of traffic, the Gemini API the service tier.
    """
    vertex = reply.options.vertex
    thoughts = {"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}
    detailed = vertex or _DETAILED.match(reply.model) is not None
    details = _details(visible) if detailed and visible else []
    return {
        "promptTokenCount": usage.input,
        **({"candidatesTokenCount": visible} if visible else {}),
        "totalTokenCount": usage.input + visible + usage.reasoning,
        **({"cachedContentTokenCount": usage.cached} if usage.cached else {}),
        **({"trafficType": "ON_DEMAND"} if vertex else {}),
        "promptTokensDetails": _details(usage.input),
        **({"candidatesTokensDetails": details} if details else {}),
        **thoughts,
        **({} if vertex else {"serviceTier": reply.service_tier or "standard"}),
    }


def _details(tokens: int) -> list[Json]:
    return [{"modality": "TEXT", "tokenCount": tokens}]
