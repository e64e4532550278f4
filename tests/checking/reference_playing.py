"""Plays turns to the reference accumulators, and says what is right to come of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import ByteProbe, Delta, Probe
from mockllm.checking.reference import REFERENCES, Reference
from mockllm.checking.reference.lines import ReferenceBytes
from mockllm.core.turn import TokenUsage, ToolCall, Turn
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import Reply
from mockllm.replay.stream import stream

__all__ = [
    "Record",
    "by_bytes",
    "by_events",
    "cut_at",
    "expected",
    "finish_word",
    "payloads",
    "run",
    "sent",
    "wrong",
]

_WORDS = {
    "chat": {"refusal": "stop"},
    "responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "refusal": "completed",
        "length": "max_output_tokens",
    },
    "anthropic": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
    "gemini": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
    },
    "agui": {"stop": "RUN_FINISHED", "tool_calls": "RUN_FINISHED"},
}


def sent(turn: Turn, api: str) -> bytes:
    """The bytes of a turn over a protocol, asked for with all it can tell."""
    protocol = PROTOCOLS[api]
    params = {"?alt": "sse", ":": "streamGenerateContent", "model": "m"}
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    request = replace(protocol.parse(body, params, False), stream=True)
    usage = turn.usage or TokenUsage(0, 0)
    reply = Reply("seed", "0" * 40, "m", protocol.options(request), usage)
    return b"".join(piece.data for piece in stream(turn, protocol, reply, None))


def cut_at(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Bytes in the pieces that cuts at these places leave."""
    edges = [0, *sorted(place for place in places if place < len(data)), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def payloads(data: bytes, api: str) -> list[tuple[Any, str | None]]:
    """The decoded events of a stream, as a `Probe` is fed them."""
    found: list[tuple[Any, str | None]] = []
    for frame in decode(data):
        text = frame.data.strip() if frame.data else ""
        if text == "[DONE]" and api == "chat":
            break
        if text not in ("", "[DONE]"):
            found.append((json.loads(text), frame.event))
    return found


@dataclass
class Record:
    """What was seen of a probe on its way: all deltas, and every outcome in between."""

    outcome: Outcome
    deltas: list[Delta] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    pending: int = 0

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    @property
    def reasoning(self) -> str:
        return "".join(delta.reasoning for delta in self.deltas)

    @property
    def calls(self) -> list[Call]:
        """The calls that surfaced: in a delta, or when the stream was closed."""
        handed = [call for delta in self.deltas for call in delta.tool_calls]
        before = self.outcomes[-1].tool_calls if self.outcomes else ()
        return [*handed, *(call for call in self.outcome.tool_calls if call not in before)]


def run(
    probe: Reference | ReferenceBytes, fed: Sequence[tuple[Any, ...]], *, watched: bool = True
) -> Record:
    """Takes a probe through a stream; `watched` asks it for its outcome after each step."""
    record = Record(Outcome())
    assert isinstance(probe, Probe | ByteProbe)
    for step in fed:
        delta = probe.feed(*step)
        if delta is not None:
            assert isinstance(delta, Delta)
            record.deltas.append(delta)
        if watched:
            record.outcomes.append(probe.outcome())
    probe.close()
    record.outcome = probe.outcome()
    record.pending = probe.pending()
    return record


def by_bytes(api: str, pieces: Iterable[bytes], **policies: Any) -> Record:
    """What the reference makes of bytes in these pieces."""
    fed = [(piece,) for piece in pieces]
    return run(ReferenceBytes(api, **policies), fed, watched=False)


def by_events(api: str, events: Iterable[Any], **policies: Any) -> Record:
    """What the reference makes of decoded events: values, or pairs with the event line."""
    fed = [event if isinstance(event, tuple) else (event,) for event in events]
    return run(REFERENCES[api](**policies), fed)


# What is right


def finish_word(turn: Turn, api: str) -> str | None:
    """The word of the wire for the finish of a turn."""
    if turn.finish is None:
        return None
    raw = turn.finish_raw or _WORDS[api].get(turn.finish, turn.finish)
    return raw.removeprefix("promptFeedback.blockReason=")


def expected(turn: Turn, api: str, *, ids: bool = True) -> Outcome:
    """What a turn as it comes back means, less its errors."""
    calls = [_call(call, ids=ids) for call in turn.tool_calls if _value(call) is not None]
    usage = turn.usage and Usage(
        turn.usage.input, turn.usage.output, turn.usage.reasoning, turn.usage.cached
    )
    words = turn.text, turn.reasoning, turn.refusal
    return Outcome(*words, tuple(calls), finish_word(turn, api), usage)


def _value(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = call.parsed()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _call(call: ToolCall, *, ids: bool) -> Call:
    return Call(call.name, _value(call), (call.id or None) if ids else None)


def wrong(turn: Turn, api: str, got: Outcome, *, ids: bool = True) -> list[str]:
    """What is wrong with an outcome for a turn as it comes back: nothing, if it is right."""
    right = expected(turn, api, ids=ids)
    found = [
        f"{name}: {getattr(got, name)!r} for {getattr(right, name)!r}"
        for name in ("text", "reasoning", "refusal", "finish")
        if getattr(got, name) != getattr(right, name)
    ]
    found += _calls(right, got, whole=turn.finish is not None)
    found += _errors(turn, got)
    if turn.finish is not None and _counts(got.usage) != _counts(right.usage):
        found.append(f"usage: {got.usage} for {right.usage}")
    return found


def _calls(right: Outcome, got: Outcome, *, whole: bool) -> list[str]:
    told = [call.id for call in got.tool_calls]
    ids = any(call.id for call in right.tool_calls)
    if not all(told) or (not ids and len(set(told)) < len(told)):
        return [f"ids: {told}"]
    ours, theirs = ([_key(call, ids=ids) for call in o.tool_calls] for o in (got, right))
    fits = ours == theirs if whole else not Counter(ours) - Counter(theirs)
    return [] if fits else [f"calls: {got.tool_calls} for {right.tool_calls}"]


def _key(call: Call, *, ids: bool = True) -> tuple[object, ...]:
    return call.id if ids else None, call.name, json.dumps(call.arguments, sort_keys=True)


def _errors(turn: Turn, got: Outcome) -> list[str]:
    kinds = [trouble.kind for trouble in got.errors]
    if turn.error is not None:
        due = ["stream_error"]
    elif turn.finish is None:
        due = ["truncated"]
    else:
        due = ["malformed_arguments" for call in turn.tool_calls if _value(call) is None]
    return [] if kinds == due else [f"errors: {got.errors}, not {due}"]


def _counts(usage: Usage | None) -> tuple[int, ...] | None:
    if usage is None:
        return None
    return tuple(n or 0 for n in (usage.input, usage.output, usage.reasoning, usage.cached))
