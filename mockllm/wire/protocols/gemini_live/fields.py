"""Shared by both directions of Gemini Live: options, names of fields, ends of turns, usage.

https://ai.google.dev/api/live#BidiGenerateContentServerMessage
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.events import Usage
from mockllm.core.http import close_reason
from mockllm.core.record import record
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import count, string

SPEECH = "audio/pcm;rate=24000"
"""The media type of spoken answers: 16 bits, one channel."""


@record
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        spoken: whether texts are sent as speech.
        transcribed: whether what is spoken is sent as text, too.
    """

    spoken: bool = False
    transcribed: bool = True


# Names

_FREE = frozenset({"args", "labels", "parametersJsonSchema", "response", "responseJsonSchema"})
"""Fields whose content the client defines."""

_DEEPEST = 64
_INNER = re.compile(r"_([a-z0-9])")


def camel(name: str) -> str:
    """`turn_complete` as `turnComplete`."""
    return _INNER.sub(lambda match: match[1].upper(), name)


def fold(value: Any, depth: int = 0) -> Any:
    """A message with camelCase names. Protocol buffers accept both cases in JSON, and google-genai
    for Python sends both in one message."""
    if isinstance(value, list):
        return [fold(item, depth + 1) for item in value]
    if not isinstance(value, dict) or depth > _DEEPEST:
        return value
    folded = {}
    for name, item in value.items():
        key = camel(name)
        if key == "properties" and isinstance(item, dict):
            folded[key] = {inner: fold(schema, depth + 2) for inner, schema in item.items()}
        else:
            folded[key] = item if key in _FREE else fold(item, depth + 1)
    return folded


# Ends of turns: https://ai.google.dev/api/live#turncompletereason

MALFORMED = "MALFORMED_FUNCTION_CALL"

REJECTED = "RESPONSE_REJECTED"
"""The reason for a filtered answer."""

_FILTERED = re.compile(
    r"(?:.*PROHIBITED.*|.*_SAFETY|INPUT_.*|GENERATED_.*|OUTPUT_.*|.*BLOCKLIST|UNSAFE_.*)\Z"
)
_VALUE = re.compile(r"[A-Z][A-Z_]*\Z")


def write_finish(finish: ev.Finish, *, malformed: bool) -> str:
    """The `turnCompleteReason` of a finish; "" for the usual end, which has none."""
    if finish.raw is not None and _VALUE.match(finish.raw):
        return finish.raw
    if finish.reason == "content_filter":
        return REJECTED
    return MALFORMED if malformed else ""


def read_finish(reason: str) -> ev.Finish:
    """The finish of a `turnCompleteReason`."""
    if reason == REJECTED:
        return ev.Finish("content_filter")
    return ev.Finish("content_filter" if _FILTERED.match(reason) else "stop", reason or None)


# Errors are close frames: https://www.rfc-editor.org/rfc/rfc6455#section-7.4

INTERNAL = 1011
_CODE = re.compile(r"100[0-37-9]|101[0-4]|[34]\d{3}", re.ASCII)
"""The codes that an endpoint may send."""


def write_close(error: ev.StreamError) -> Json:
    """The close frame of an error, which stands among the messages of an answer. Its code is that
    of the error, if it is one of WebSockets."""
    stated = error.code or ""
    code = int(stated) if _CODE.fullmatch(stated) else INTERNAL
    return {"close": {"code": code, "reason": close_reason(error.message)}}


def read_close(close: Mapping[str, Any]) -> ev.StreamError:
    """The error of a close frame."""
    code = count(close.get("code"))
    kept = None if code == INTERNAL else str(code)
    return ev.StreamError(string(close.get("reason")), None, kept)


# Usage


def write_usage(usage: Usage, modality: str) -> Json:
    """The object beside `turnComplete`. Thoughts are in no other count.

    Args:
        modality: of the answer.
    """
    response = max(0, usage.output - usage.reasoning)
    return {
        "promptTokenCount": usage.input,
        "responseTokenCount": response,
        "totalTokenCount": usage.input + response,
        **({"cachedContentTokenCount": usage.cached} if usage.cached else {}),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input}],
        "responseTokensDetails": [{"modality": modality, "tokenCount": response}],
        **({"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}),
    }
