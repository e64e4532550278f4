"""Messages: mistakes with blocks, their indexes, and the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.anthropic import _Block
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class InputOfTheStart(AnthropicAccumulator):
    """Reads the `input` of the block's start alone, which is `{}` (`anth-input-in-start`)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") != "input_json_delta":
            super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class InputOfTheStartLost(AnthropicAccumulator):
    """Reads the `input` of the deltas alone (`anth-input-in-start`)."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "input": {}})


@mutant("arguments-concatenate", "text-accumulates", api="anthropic", family="call identity")
class IndexIsAPosition(AnthropicAccumulator):
    """Uses the index as a position in a list of blocks (`anth-index-gap`)."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(len(self._blocks), block)


@mutant("arguments-concatenate", "text-accumulates", api="anthropic", family="call identity")
class DeltasToTheOpenBlock(AnthropicAccumulator):
    """Appends every fragment to the block that began last (`anth-interleaved`)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(list(self._blocks)[-1] if self._blocks else index, delta)


@mutant("arguments-concatenate", api="anthropic", family="call identity")
class FirstBlockOfAnIndex(AnthropicAccumulator):
    """Ignores a start whose index was used before (`anth-index-all-zero`)."""

    def _start(self, index: int | None, block: Object) -> None:
        if index not in self._blocks:
            super()._start(index, block)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class ParsesEachFragment(AnthropicAccumulator):
    """Parses every `partial_json` alone (`anth-parse-each-fragment`)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("partial_json"):
            json.loads(delta["partial_json"])
        super()._delta(index, delta)


@mutant("zero-arguments", api="anthropic", family="zero arguments")
class ParsesEmptyArguments(AnthropicAccumulator):
    """Parses a `partial_json` that is empty (`anth-zero-arg`)."""

    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.closed and not block.initial_arguments:
            block.call.arguments = block.call.arguments or json.loads("")
        super()._end(block)


@mutant("zero-arguments", api="anthropic", family="zero arguments")
class DropsFalsyInput(AnthropicAccumulator):
    """Drops calls without any input (`anth-zero-arg`)."""

    def _end(self, block: _Block) -> None:
        if block.call is not None and not (block.call.arguments or block.initial_arguments):
            block.call.closed = True
        super()._end(block)


@mutant("text-accumulates", api="anthropic", family="reasoning")
class ThinkingIsText(AnthropicAccumulator):
    """Adds thinking to the text."""

    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "thinking_delta":
            self._answer.add("text", delta["thinking"], (index or 0,))
        else:
            super()._delta(index, delta)


@mutant("text-accumulates", api="anthropic", family="text")
class TextOfTheStartLost(AnthropicAccumulator):
    """Reads text of deltas alone (`anth-text-in-start`)."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "text": ""})


@mutant("text-accumulates", api="anthropic", family="text")
class SecondStartGoesOn(AnthropicAccumulator):
    """Joins two attempts of a proxy (`anth-message-start-twice`)."""

    def _message_start(self, message: Object) -> None:
        self._started = False
        super()._message_start(message)


@mutant("finish-and-usage", api="anthropic", family="usage")
class SumsUsage(AnthropicAccumulator):
    """Adds the tokens of `message_delta` to those of `message_start`."""

    def _count_tokens(self, usage: Object) -> None:
        output = usage.get("output_tokens")
        more = self._tokens.get("output_tokens", 1)
        super()._count_tokens({**usage, "output_tokens": output and output + more})


@mutant("finish-and-usage", api="anthropic", family="finish")
class LastStopReason(AnthropicAccumulator):
    """Keeps the last `stop_reason`, even if it is null (`anth-two-message-delta`)."""

    def _message_delta(self, value: Object) -> None:
        super()._message_delta(value)
        self._answer.finish = value["delta"].get("stop_reason")


@mutant("finish-and-usage", api="anthropic", family="usage")
class InputTokensAlone(AnthropicAccumulator):
    """Leaves the tokens of the cache out of the input tokens."""

    def _count_tokens(self, usage: Object) -> None:
        cached = ("cache_read_input_tokens", "cache_creation_input_tokens")
        super()._count_tokens({**usage, **dict.fromkeys(cached)})


@mutant("unknown-event", api="anthropic", family="unknown events")
class UnknownEventRaises(AnthropicAccumulator):
    """Raises on unknown events (`anth-unknown-types`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        type = payload.get("type") or event or "error"
        if not type.startswith(("message_", "content_block_", "ping", "error")):
            raise ValueError(f"unknown event {type!r}")
        return super().feed(payload, event)


@mutant("unknown-event", api="anthropic", family="unknown events")
class UnknownBlockRaises(AnthropicAccumulator):
    """Raises on unknown blocks (`anth-unknown-types`)."""

    def _start(self, index: int | None, block: Object) -> None:
        known = {"text": 0, "thinking": 1, "redacted_thinking": 2, "tool_use": 3}
        known[block["type"]]
        super()._start(index, block)


# The exception is a KeyError, so the report names `null-tolerant`.
@mutant("null-tolerant", api="anthropic", family="unknown events")
class PingIsADelta(AnthropicAccumulator):
    """Expects a delta in every event after the start of a block (`anth-ping`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "ping" and self._started and not self._answer.complete:
            payload["delta"]
        return super().feed(payload, event)


@mutant("null-tolerant", api="anthropic", family="null and absent")
class InputRequired(AnthropicAccumulator):
    """Raises where the start of a call has no `input` (`anth-input-missing`)."""

    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") == "tool_use":
            block["input"].items()
        super()._start(index, block)


@mutant("null-tolerant", api="anthropic", family="null and absent")
class UsageRequired(AnthropicAccumulator):
    """Raises where `message_delta` has no usage (`anth-usage-missing`)."""

    def _message_delta(self, value: Object) -> None:
        value["usage"]
        super()._message_delta(value)


@mutant("surface-complete", api="anthropic", family="malformed arguments")
class CutCallComesOut(AnthropicAccumulator):
    """Repairs a call that the token limit cut off (`anth-tool-cut-by-limit`)."""

    def _message_delta(self, value: Object) -> None:
        if value["delta"].get("stop_reason") == "max_tokens":
            for block in self._blocks.values():
                if block.call is not None and not block.call.closed:
                    block.call.arguments = "{}"
                    self._answer.surface(block.call)
        super()._message_delta(value)


@mutant("error-ends", api="anthropic", family="errors")
class ErrorIsAnEnd(AnthropicAccumulator):
    """Treats an error as the end of the message (`anth-error-event`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return super().feed({"type": "message_stop"} if "error" in payload else payload, event)


@mutant("truncated-is-not-complete", api="anthropic", family="cut streams")
class EndOfInputIsTheEnd(AnthropicAccumulator):
    """Treats a stream that stops as complete (`anth-cut`)."""

    def close(self) -> None:
        self._answer.complete = True
        super().close()


# Errors without an event line are dropped as well.
@mutant("truncated-is-not-complete", "error-ends", api="anthropic", family="null and absent")
class EventLinesRequired(AnthropicAccumulator):
    """Drops events without an event line and ends as complete (`anth-no-event-lines`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if event is None:
            self._answer.complete = not self._started
            return None
        return super().feed(payload, event)
