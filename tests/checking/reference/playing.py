"""Feeds turns to the reference accumulators, and compares the outcome with the expected one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from examples.accumulators import REFERENCES, Accumulator
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import ByteProbe, Delta, Fragment, Probe
from mockllm.core.http import Target
from mockllm.core.turn import TokenUsage, ToolCall, Turn
from mockllm.play.replay.compilation.encoding import stream
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply
from tests.clients.oracle import FINISH


def sent(turn: Turn, api: str) -> bytes:
    """The bytes of a streamed turn over a protocol, with usage."""
    protocol = PROTOCOLS[api]
    target = Target({"model": "m"}, "streamGenerateContent", {"alt": "sse"})
    body = {"model": "m", "stream": True, "stream_options": {"include_usage": True}}
    body["generationConfig"] = {"responseModalities": ["TEXT"]}  # not speech
    request = replace(protocol.parse(body, target, False), stream=True)
    usage = turn.usage or TokenUsage(0, 0)
    reply = Reply("seed", "0" * 40, "m", protocol.options(request), usage)
    return b"".join(timed.data for timed in stream((turn,), protocol, reply))


def cut_at(data: bytes, offsets: Iterable[int]) -> list[bytes]:
    """The bytes, cut at these offsets."""
    edges = [0, *sorted(offset for offset in offsets if offset < len(data)), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def payloads(data: bytes, api: str) -> list[tuple[Any, str | None]]:
    """The decoded events of a stream, as a `Probe` is fed them."""
    found: list[tuple[Any, str | None]] = []
    for frame in PROTOCOLS[api].usual.decode(data):
        text = frame.data.strip() if frame.data else ""
        if text == "[DONE]" and api == "chat":
            break
        if text not in ("", "[DONE]"):
            found.append((json.loads(text), frame.event))
    return found


@dataclass
class Run:
    """A probe's way through a stream: all deltas, every outcome in between, and the last one.

    These are without the fields that a client may lack (`basic`); `full` is the last outcome with
    them, and `tool` are the fragments of arguments in the deltas.
    """

    outcome: Outcome
    deltas: list[Delta] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    pending: int = 0
    full: Outcome = field(default_factory=Outcome)
    tool: list[Fragment] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas)

    @property
    def reasoning(self) -> str:
        return "".join(delta.reasoning for delta in self.deltas)

    @property
    def calls(self) -> list[Call]:
        """The calls that surfaced: in a delta, or when the stream was closed."""
        surfaced = [call for delta in self.deltas for call in delta.tool_calls]
        before = self.outcomes[-1].tool_calls if self.outcomes else ()
        return [*surfaced, *(call for call in self.outcome.tool_calls if call not in before)]


def basic(outcome: Outcome) -> Outcome:
    """The outcome without role, model, id, opaque values and raw arguments."""
    calls = tuple(map(_basic, outcome.tool_calls))
    values = outcome.text, outcome.reasoning, outcome.refusal, calls
    return Outcome(*values, outcome.finish, outcome.usage, outcome.errors)


def basic_delta(delta: Delta | None) -> Delta | None:
    """The delta without fragments of arguments and raw arguments; None if nothing remains."""
    if delta is None:
        return None
    without = replace(delta, tool_calls=tuple(map(_basic, delta.tool_calls)), tool=())
    return without if without != Delta() else None


def _basic(call: Call) -> Call:
    return Call(call.name, call.arguments, call.id)


def run(
    probe: Accumulator | ReferenceBytes,
    fed: Sequence[tuple[Any, ...]],
    *,
    intermediate: bool = True,
) -> Run:
    """Feeds a stream to a probe and closes it; `intermediate` reads the outcome after each step."""
    played = Run(Outcome())
    assert isinstance(probe, Probe | ByteProbe)
    for step in fed:
        delta = probe.feed(*step)
        if delta is not None:
            assert isinstance(delta, Delta)
            played.tool += delta.tool
            if (without := basic_delta(delta)) is not None:
                played.deltas.append(without)
        if intermediate:
            played.outcomes.append(basic(probe.outcome()))
    probe.close()
    played.full = probe.outcome()
    played.outcome = basic(played.full)
    played.pending = probe.pending()
    return played


def by_bytes(api: str, chunks: Iterable[bytes], **policies: Any) -> Run:
    """The run of the reference accumulator over a stream in these chunks of bytes."""
    fed = [(chunk,) for chunk in chunks]
    return run(ReferenceBytes(api, **policies), fed, intermediate=False)


def by_events(api: str, events: Iterable[Any], **policies: Any) -> Run:
    """The run of the reference accumulator over decoded events: values, or pairs with the event
    name."""
    fed = [event if isinstance(event, tuple) else (event,) for event in events]
    return run(REFERENCES[api](**policies), fed)


# The expected outcome


def finish_value(turn: Turn, api: str) -> str | None:
    """The finish reason of a turn as the API sends it."""
    if turn.finish is None:
        return None
    raw = turn.finish_raw or FINISH[api].get(turn.finish or "", turn.finish)
    return raw.removeprefix("promptFeedback.blockReason=")


def expected(turn: Turn, api: str, *, ids: bool = True) -> Outcome:
    """The outcome of a projected turn, without its errors."""
    calls = [_call(call, ids=ids) for call in turn.tool_calls if _value(call) is not None]
    usage = turn.usage and Usage(
        turn.usage.input, turn.usage.output, turn.usage.reasoning, turn.usage.cached
    )
    texts = turn.text, turn.reasoning, turn.refusal
    return Outcome(*texts, tuple(calls), finish_value(turn, api), usage)


def _value(call: ToolCall) -> dict[str, Any] | None:
    try:
        value = call.parse_arguments()
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _call(call: ToolCall, *, ids: bool) -> Call:
    return Call(call.name, _value(call), (call.id or None) if ids else None)


def differences(turn: Turn, api: str, outcome: Outcome, *, ids: bool = True) -> list[str]:
    """The differences between an outcome and that of a projected turn; empty if there are none."""
    correct = expected(turn, api, ids=ids)
    found = [
        f"{name}: {getattr(outcome, name)!r} for {getattr(correct, name)!r}"
        for name in ("text", "reasoning", "refusal", "finish")
        if getattr(outcome, name) != getattr(correct, name)
    ]
    found += _calls(correct, outcome, whole=turn.finish is not None)
    found += _errors(turn, outcome)
    if turn.finish is not None and _counts(outcome.usage) != _counts(correct.usage):
        found.append(f"usage: {outcome.usage} for {correct.usage}")
    return found


def _calls(correct: Outcome, outcome: Outcome, *, whole: bool) -> list[str]:
    ids_found = [call.id for call in outcome.tool_calls]
    ids = any(call.id for call in correct.tool_calls)
    if not all(ids_found) or (not ids and len(set(ids_found)) < len(ids_found)):
        return [f"ids: {ids_found}"]
    found_keys, expected_keys = (
        [_key(call, ids=ids) for call in o.tool_calls] for o in (outcome, correct)
    )
    equal = (
        found_keys == expected_keys if whole else not Counter(found_keys) - Counter(expected_keys)
    )
    return [] if equal else [f"calls: {outcome.tool_calls} for {correct.tool_calls}"]


def _key(call: Call, *, ids: bool = True) -> tuple[object, ...]:
    return call.id if ids else None, call.name, json.dumps(call.arguments, sort_keys=True)


def _errors(turn: Turn, outcome: Outcome) -> list[str]:
    kinds = [trouble.kind for trouble in outcome.errors]
    if turn.error is not None:
        expected_kinds = ["stream_error"]
    elif turn.finish is None:
        expected_kinds = ["truncated"]
    else:
        # What custom tools get is no JSON, and is not judged.
        calls = [call for call in turn.tool_calls if not call.custom]
        expected_kinds = ["malformed_arguments" for call in calls if _value(call) is None]
    return [] if kinds == expected_kinds else [f"errors: {outcome.errors}, not {expected_kinds}"]


def _counts(usage: Usage | None) -> tuple[int, ...] | None:
    if usage is None:
        return None
    return tuple(n or 0 for n in (usage.input, usage.output, usage.reasoning, usage.cached))
