"""The response of one aimock fixture as a turn: https://aimock.copilotkit.dev/fixtures.

A fixture describes the answer of the model in its own format; there are no bytes to keep. Keys that
the scenario language cannot express are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mockllm.core.errors import MockLLMError, WireError
from mockllm.core.events import FinishReason, Frame, Timed
from mockllm.core.jsontext import compact, is_object
from mockllm.core.timeline import fold
from mockllm.play.tapes.recorded_turn import writable
from mockllm.record.recording.drafting.turns import unresolve
from mockllm.scenario import model as m
from mockllm.scenario.durations import MAX_DURATION
from mockllm.scenario.part_model import (
    AnyPart,
    ErrorSpec,
    FramePart,
    ReasoningPart,
    TextPart,
    ToolPart,
)
from mockllm.wire.protocols import PROTOCOLS

_Json = dict[str, Any]

CHUNK_SIZE = 20
"""How many characters aimock sends in a chunk by default."""

_OTHER_KINDS = (
    "embedding", "image", "images", "audio", "transcription", "video", "json",
)  # fmt: skip
_NOT_KEPT = (
    "id", "created", "model", "systemFingerprint", "role", "provider", "nativeFinishReason",
    "redactedThinking", "webSearches",
)  # fmt: skip
_NOT_KEPT_BESIDE = ("truncateAfterChunks", "disconnectAfterMs", "chaos")
_FINISHES: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}
_INPUT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_OUTPUT = ("completion_tokens", "output_tokens", "candidatesTokenCount")


def turn(entry: _Json) -> tuple[m.TurnSpec, tuple[str, ...]]:
    """The turn of a fixture, and the names of the keys that are not kept.

    Raises:
        WireError: it does not answer a conversation, or has none of the known shapes.
    """
    response = entry.get("response")
    if not isinstance(response, dict):
        raise WireError("it has no 'response'")
    if isinstance(response.get("error"), dict):
        return m.TurnSpec(http=_http(response)), ()
    for kind in _OTHER_KINDS:
        if kind in response:
            raise WireError(f"it answers with '{kind}', which is no conversation")
    reply = tuple(_reply(response, entry))
    if not reply:
        raise WireError("its response has no 'content', no 'toolCalls' and no 'blocks'")
    finish = response.get("finishReason")
    lost = [name for name in _NOT_KEPT if name in response]
    lost += [name for name in _NOT_KEPT_BESIDE if name in entry]
    if finish is not None and finish not in _FINISHES:
        lost.append("finishReason")
    spec = m.TurnSpec(
        reply=reply,
        finish=_FINISHES.get(str(finish)),
        usage=_usage(response.get("usage")),
        timing=_timing(entry),
    )
    return spec, tuple(lost)


def _http(response: _Json) -> m.Http:
    error = response["error"]
    seconds = response.get("retryAfter")
    status = response.get("status", 500)
    if not isinstance(status, int) or not 400 <= status <= 599:
        raise WireError(f"its error has the status {status!r}")
    fields = {
        key: error[key] for key in ("message", "type", "code") if isinstance(error.get(key), str)
    }
    return m.Http(
        status,
        retry_after=_micro(seconds, 1_000_000) if seconds is not None else None,
        error=ErrorSpec(**fields) if fields else None,
    )


# Parts


def _reply(response: _Json, entry: _Json) -> Iterator[AnyPart]:
    size = entry.get("chunkSize")
    split = size if isinstance(size, int) and size > 0 and size != CHUNK_SIZE else None
    for part in _parts(response, entry):
        yield part if isinstance(part, FramePart) or split is None else replace(part, split=split)


def _parts(
    response: _Json, entry: _Json
) -> Iterator[TextPart | ReasoningPart | ToolPart | FramePart]:
    if entry.get("openRouterProcessing") is True:
        yield FramePart("chat", comment="OPENROUTER PROCESSING")
    if reasoning := response.get("reasoning"):
        signature = response.get("reasoningSignature")
        yield ReasoningPart(str(reasoning), signature=str(signature) if signature else None)
    blocks = response.get("blocks")
    if isinstance(blocks, list) and blocks:
        for block in blocks:
            yield _block(block)
        return
    content = response.get("content")
    if content or (content == "" and not response.get("toolCalls")):
        yield TextPart(content if isinstance(content, str) else compact(content))
    for call in response.get("toolCalls") or ():
        yield _call(call)


def _block(block: Any) -> TextPart | ToolPart:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "toolCall"}:
            return _call(block)
    raise WireError(f"a block is neither text nor a toolCall: {compact(block)[:60]}")


def _call(call: Any) -> ToolPart:
    match call:
        case {"name": str(name)} if name:
            arguments = call.get("arguments")
        case _:
            raise WireError(f"a tool call has no name: {compact(call)[:60]}")
    text = arguments if isinstance(arguments, str) else compact(arguments or {})
    id = call.get("id")
    return ToolPart(
        name,
        id=str(id) if id else None,
        arguments=None if text in ("", "{}") else text,
        malformed=not is_object(text or "{}"),
    )


def _usage(usage: Any) -> m.UsageSpec | None:
    if not isinstance(usage, dict):
        return None
    prompt = usage.get("prompt_tokens_details")
    completion = usage.get("completion_tokens_details")
    spec = m.UsageSpec(
        input=_first(usage, _INPUT),
        output=_first(usage, _OUTPUT),
        reasoning=_first(completion, ("reasoning_tokens",)),
        cached=_first(prompt, ("cached_tokens",)),
        cache_written=_first(prompt, ("cache_write_tokens",)),
    )
    return spec if spec != m.UsageSpec() else None


def _first(counts: Any, names: Iterable[str]) -> int | None:
    values = (counts.get(name) for name in names) if isinstance(counts, dict) else ()
    return next((value for value in values if type(value) is int and value >= 0), None)


# Timing


def _timing(entry: _Json) -> m.Timing | None:
    """The pauses, from milliseconds to microseconds. As in aimock, `streamingProfile` wins over
    `recordedTimings`, and both over `latency`."""
    speed = entry.get("replaySpeed")
    scale = 1000 / (speed if isinstance(speed, (int, float)) and speed > 0 else 1)
    match entry:
        case {"streamingProfile": dict(profile)}:
            rate = profile.get("tps")
            every = 1000 / rate if isinstance(rate, (int, float)) and rate > 0 else None
            jitter = profile.get("jitter")
            return m.Timing(
                ttft=_micro(profile.get("ttft"), scale),
                every=_micro(every, scale),
                jitter=float(jitter) if isinstance(jitter, (int, float)) and jitter > 0 else None,
            )
        case {"recordedTimings": dict(timings)}:
            delays = [d for d in timings.get("interChunkDelaysMs") or () if _is_pause(d)]
            mean = sum(delays) / len(delays) if delays else None
            return m.Timing(ttft=_micro(timings.get("ttftMs"), scale), every=_micro(mean, scale))
        case {"latency": latency} if _is_pause(latency):
            return m.Timing(ttft=_micro(latency, scale), every=_micro(latency, scale))
    return None


def _is_pause(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0 < value < MAX_DURATION


def _micro(value: Any, scale: float) -> int | None:
    return min(round(value * scale), MAX_DURATION) if _is_pause(value) else None


# AG-UI


def agui_turn(entry: _Json) -> m.TurnSpec:
    """The turn of a fixture for AG-UI: text, or the events themselves.

    Raises:
        WireError: it has neither, or the events are not those of AG-UI.
    """
    delay = _micro(entry.get("delayMs"), 1000)
    timing = m.Timing(ttft=delay, every=delay) if delay else None
    match entry:
        case {"text": str(text)} if text:
            return m.TurnSpec(reply=(TextPart(text, split="whole"),), timing=timing)
        case {"events": list(events)} if events:
            pass
        case _:
            raise WireError("it has neither 'text' nor 'events'")
    decoder = PROTOCOLS["agui"].decoder()
    try:
        decoded = [
            decoded_event
            for event in events
            for decoded_event in decoder.decode(Frame(compact(event)))
        ]
        folded = fold(Timed(0, event) for event in (*decoded, *decoder.close()))
    except (MockLLMError, ValueError) as error:
        raise WireError(f"its events are not those of AG-UI: {error}") from None
    return replace(unresolve(writable(folded)), timing=timing)
