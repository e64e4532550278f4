"""How to put together a stream of the Anthropic Messages API.

https://docs.claude.com/en/docs/build-with-claude/streaming

A message is a list of blocks, each with a start, deltas and a stop. A name in backquotes is the
quirk that a rule is there for; `mockllm quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference.answer import (
    Answer,
    Malformed,
    MissingId,
    Slot,
    StagedCall,
    parsed,
)
from mockllm.checking.reference.values import count, error_message, json_text, mapping, string

__all__ = ["AnthropicAccumulator"]


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that has begun.

    Args:
        slot: its sort key: its index, then the order of arrival.
        call: the staged call, if the block is a call.
        initial_arguments: the arguments in its start event.
    """

    type: str
    slot: Slot
    call: StagedCall | None = None
    initial_arguments: str = ""


class AnthropicAccumulator:
    """Puts the events of one stream together (a `Probe`).

    Args:
        tools: the names of the tools that were offered; None: a call of any tool is accepted.
        malformed: what happens to a call whose arguments never parse.
        missing_id: what happens to a call that never gets an id.
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(
            tools, malformed, missing_id, "a message_delta with its stop_reason, or message_stop"
        )
        self._started = False
        self._stopped = False
        self._blocks: dict[int | None, _Block] = {}
        self._count = 0
        self._tokens: dict[str, int] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, thinking, and the call that surfaces."""
        if self._answer.failed or self._stopped:
            return None
        value = mapping(payload)
        # The type in the JSON counts, since the event line may be missing
        # (`anth-no-event-lines`). A bare error has no type.
        type = string(value.get("type")) or ("error" if value.get("error") else event or "")
        index = count(value.get("index"))
        match type:
            case "message_start":
                self._message_start(mapping(value.get("message")))
            case "content_block_start":
                self._start(index, mapping(value.get("content_block")))
            case "content_block_delta":
                self._delta(index, mapping(value.get("delta")))
            case "content_block_stop":
                self._stop(index)
            case "message_delta":
                self._message_delta(value)
            case "message_stop":
                self._answer.complete = self._stopped = True
                self._end_open_calls()
            case "error":
                # `anth-error-event`
                self._answer.fail(error_message(value.get("error") or payload))
            case _:
                pass  # `anth-ping`, `anth-unknown-types`
        return self._answer.delta()

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.open_calls())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """Ends the answer with an error of the transport, such as a broken connection."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Ends the input. Without an end of the message the stream was cut (`anth-cut`)."""
        self._answer.close()

    # The message

    def _message_start(self, message: Mapping[str, Any]) -> None:
        if self._started:
            # A proxy sent the request again; the two halves do not belong together
            # (`anth-message-start-twice`).
            self._answer.fail("message_start came twice in one stream")
            return
        self._started = True
        # The output tokens in this event are a first estimate; `message_delta` has the total.
        self._count_tokens({**mapping(message.get("usage")), "output_tokens": None})

    def _message_delta(self, value: Mapping[str, Any]) -> None:
        self._count_tokens(mapping(value.get("usage")))
        stop_reason = string(mapping(value.get("delta")).get("stop_reason"))
        if stop_reason:
            # Null in a second `message_delta` does not erase it (`anth-two-message-delta`).
            self._answer.finish = stop_reason
            self._answer.complete = True
            self._end_open_calls()

    def _end_open_calls(self) -> None:
        """Ends the calls whose block has no stop.

        If a limit ended the answer inside a call, empty arguments may only look complete
        (`anth-tool-cut-by-limit`).
        """
        cut = self._answer.finish not in (None, "tool_use", "end_turn")
        for block in self._blocks.values():
            call = block.call
            if call is None or call.closed:
                continue
            if cut and (not call.arguments or parsed(call.arguments) is None):
                self._answer.reject(call, f"was cut off by {self._answer.finish}")
            else:
                self._end(block)

    # Blocks

    def _start(self, index: int | None, block: Mapping[str, Any]) -> None:
        # An index is a key, not a position in a list (`anth-index-gap`). A start begins a new
        # block even if its index was used before (`anth-index-all-zero`).
        type = string(block.get("type"))
        slot = (index or 0, self._count)
        self._count += 1
        call = None
        if type == "tool_use":
            id, name = string(block.get("id")), string(block.get("name"))
            call = self._answer.open(slot[0], key=index, id=id, name=name)
        previous = self._blocks.get(index)
        if previous is not None and previous.call is not None:
            self._end(previous)
        self._blocks[index] = _Block(type, slot, call, _initial_arguments(block.get("input")))
        # A start may have text already (`anth-text-in-start`).
        if type == "text":
            self._answer.add("text", string(block.get("text")), slot)
        elif type == "thinking":
            self._answer.add("reasoning", string(block.get("thinking")), slot)

    def _delta(self, index: int | None, delta: Mapping[str, Any]) -> None:
        # Deltas of several blocks may alternate (`anth-interleaved`).
        block = self._blocks.get(index)
        if block is None:
            return
        match block.type, delta.get("type"):
            case "text", "text_delta":
                self._answer.add("text", string(delta.get("text")), block.slot)
            case "thinking", "thinking_delta":
                self._answer.add("reasoning", string(delta.get("thinking")), block.slot)
            case "tool_use", "input_json_delta" if block.call and not block.call.closed:
                # A fragment alone need not parse (`anth-parse-each-fragment`).
                block.call.arguments += string(delta.get("partial_json"))
            case _:
                pass  # `anth-unknown-types`, `anth-signature`

    def _stop(self, index: int | None) -> None:
        block = self._blocks.get(index)
        if block is not None:
            self._end(block)

    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.closed:
            # Arguments from deltas take precedence over those in the start
            # (`anth-input-in-start`). A call without either has no arguments (`anth-zero-arg`,
            # `anth-input-missing`).
            block.call.arguments = block.call.arguments or block.initial_arguments
            self._answer.surface(block.call)

    # Usage

    def _count_tokens(self, usage: Mapping[str, Any]) -> None:
        """Takes the counts of an event.

        Each count is a total and replaces an earlier one (`anth-two-message-delta`). A missing
        count does not erase one. Without any, the usage is unknown (`anth-usage-missing`).
        """
        details = mapping(usage.get("output_tokens_details"))
        for name, value in {**usage, "thinking_tokens": details.get("thinking_tokens")}.items():
            number = count(value)
            if number is not None:
                self._tokens[name] = number
        tokens = self._tokens
        if not tokens:
            return
        input_tokens, cached = tokens.get("input_tokens"), tokens.get("cache_read_input_tokens")
        if input_tokens is not None:
            # Anthropic's `input_tokens` excludes tokens read from the cache or written to it.
            input_tokens += (cached or 0) + tokens.get("cache_creation_input_tokens", 0)
        output, thinking = tokens.get("output_tokens"), tokens.get("thinking_tokens")
        self._answer.usage = Usage(input_tokens, output, thinking, cached)


def _initial_arguments(value: object) -> str:
    """The arguments of a start event as text. The service sends `{}` if they follow in deltas."""
    if isinstance(value, str):
        return value
    return json_text(value) if value else ""
