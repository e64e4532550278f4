"""Anthropic's models on Amazon Bedrock, called by InvokeModel with bodies of the Messages API.

https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html

The path has the model, and whether to stream. Each event of a stream is in base64 in a frame of
AWS; pings are left out, and the last event counts the tokens again. Errors are those of Bedrock.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

from mockllm.core.events import Frame
from mockllm.core.http import Target
from mockllm.core.seeded import derive_int
from mockllm.core.turn import TokenUsage
from mockllm.wire.framing.carrier import wrapping
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.protocols import aws
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import base64_bytes, json_object, mapping, string, within_input

BEDROCK = "bedrock"
"""`Reply.options` of an answer there, and the trait of its request."""

STREAMED = "invoke-with-response-stream"

_EXCEPTIONS = {
    "api_error": aws.SERVER_ERROR,
    "invalid_request_error": "validationException",
    "overloaded_error": aws.OVERLOADED,
    "rate_limit_error": aws.RATE_LIMIT,
}
_OTHER_EXCEPTION = "modelStreamErrorException"


def is_bedrock(target: Target) -> bool:
    """Whether a request came to a path of Bedrock."""
    return "action" in target.segments


def _wrap(frame: Frame) -> Frame:
    value = json_object(frame.data) or {}
    if value.get("type") == "error":
        error = mapping(value.get("error"))
        type = string(error.get("type"))
        name = type if aws.is_exception(type) else _EXCEPTIONS.get(type, _OTHER_EXCEPTION)
        return Frame(dumps({"message": string(error.get("message"))}), name, kind="exception")
    data = (frame.data or "").encode("utf-8", "backslashreplace")
    padding = aws.PADDINGS[zlib.crc32(data) % len(aws.PADDINGS)]
    chunk = {"bytes": base64.b64encode(data).decode(), "p": padding}
    return Frame(dumps(chunk), "chunk")


def _unwrap(frame: Frame) -> Frame:
    payload = json_object(frame.data) or {}
    if frame.kind != "event":
        # An error without a model has its message instead of a payload.
        message = string(payload.get("message")) or frame.data or ""
        error = {"type": frame.event or "", "message": message}
        return Frame(dumps({"type": "error", "error": error}), "error")
    data = base64_bytes(payload.get("bytes"))
    if data is None:
        return frame
    text = data.decode("utf-8", "replace")
    return Frame(text, string((json_object(text) or {}).get("type")) or None)


CHUNKS = wrapping(EVENTSTREAM, _wrap, _unwrap)
"""Events in base64 in frames of AWS."""


def metrics(usage: TokenUsage, reply: Reply) -> Json:
    """The fields that the last event of a stream has besides those of Anthropic."""
    latency = _latency(reply)
    written = usage.cache_written
    read = usage.input - usage.cached - written
    counts = {"inputTokenCount": read, "outputTokenCount": usage.output}
    times = {"invocationLatency": latency, "firstByteLatency": latency // 2}
    cache = {"cacheReadInputTokenCount": usage.cached, "cacheWriteInputTokenCount": written}
    both = counts | times | (cache if usage.cached or written else {})
    return {"amazon-bedrock-invocationMetrics": both}


def _latency(reply: Reply) -> int:
    """Milliseconds, derived from the reply."""
    return 300 + derive_int(reply.seed, "latency", below=2000)


def headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of an answer."""
    named = aws.request_headers(reply.seed, "answer")
    if reply.service_tier:
        named["x-amzn-bedrock-service-tier"] = reply.service_tier
    if stream:
        type = {"x-amzn-bedrock-content-type": "application/json"}
        return {"content-type": EVENTSTREAM.content_type, **named, **type}
    usage, prefix = within_input(reply.usage), "x-amzn-bedrock"
    caches = {"read": usage.cached, "write": usage.cache_written}
    return {
        "content-type": "application/json",
        **named,
        f"{prefix}-input-token-count": str(usage.input - sum(caches.values())),
        f"{prefix}-output-token-count": str(usage.output),
        f"{prefix}-invocation-latency": str(_latency(reply)),
        **{
            f"{prefix}-cache-{verb}-input-token-count": str(tokens)
            for verb, tokens in caches.items()
            if tokens
        },
    }


def error_at(
    target: Target, status: int, body: Json, headers: Mapping[str, str]
) -> tuple[Json, Mapping[str, str]]:
    """The body and the headers of an error, from those that Anthropic has for it."""
    if not is_bedrock(target):
        return body, headers
    error = mapping(body.get("error"))
    message = string(error.get("message"))
    named = aws.request_headers(message, "error", status)
    named |= aws.error_headers(status, string(error.get("type")))
    others = {name: headers[name] for name in headers if not name.startswith(_OWN_HEADERS)}
    return {"message": message}, {**others, **named}


_OWN_HEADERS = ("anthropic-", "request-id")
"""The beginnings of the names of headers that only Anthropic's own service has."""
