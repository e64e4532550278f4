"""How to put together a stream of the Anthropic Messages API.

https://docs.claude.com/en/docs/build-with-claude/streaming

A message is a list of blocks, each with a start, deltas and a stop. A name in backquotes is the
quirk that a rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

from examples.accumulators.answer import Slot, StagedCall, parsed
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["AnthropicAccumulator"]


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that has begun.

    Args:
        slot: its sort key: its index, then the order of arrival.
        call: the staged call, if the block is a call.
        initial_arguments: the arguments in its start event.
        signature: the fragments of its signature.
    """

    type: str
    slot: Slot
    call: StagedCall | None = None
    initial_arguments: str = ""
    signature: list[str] = field(default_factory=list)


class AnthropicAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    Without an end of the message the stream was cut (`anth-cut`).
    """

    end = "a message_delta with its stop_reason, or message_stop"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
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
                self._end_open_blocks()
            case "error":
                # `anth-error-event`
                self._answer.fail(error_message(value.get("error") or payload))
            case _:
                pass  # `anth-ping`, `anth-unknown-types`
        return self._answer.delta()

    # The message

    def _message_start(self, message: Mapping[str, Any]) -> None:
        if self._started:
            # A proxy sent the request again; the two halves do not belong together
            # (`anth-message-start-twice`).
            self._answer.fail("message_start came twice in one stream")
            return
        self._started = True
        self._answer.identify(string(message.get("id")), string(message.get("model")))
        usage = mapping(message.get("usage"))
        blocks = list(map(mapping, sequence(message.get("content"))))
        if all(map(_is_placeholder, blocks)):
            # The output tokens are a first estimate here; `message_delta` has the total.
            self._count_tokens({**usage, "output_tokens": None})
            return
        # Programmatic tool calling sends a message that is complete in its start, with its stop
        # reason and without events of blocks (langchain-ai/langchain#34406).
        for index, block in enumerate(blocks):
            self._start(index, block)
            self._stop(index)
        self._count_tokens(usage)
        self._stop_reason(message)

    def _message_delta(self, value: Mapping[str, Any]) -> None:
        self._count_tokens(mapping(value.get("usage")))
        self._stop_reason(mapping(value.get("delta")))

    def _stop_reason(self, value: Mapping[str, Any]) -> None:
        stop_reason = string(value.get("stop_reason"))
        if stop_reason and not self._answer.failed:
            # Null in a second `message_delta` does not erase it (`anth-two-message-delta`). Calls
            # run whatever it says (`anth-end-turn-with-tools`).
            self._answer.finish = stop_reason
            self._answer.complete = True
            self._end_open_blocks()

    def _end_open_blocks(self) -> None:
        """Ends the blocks that have no stop.

        If a limit ended the answer inside a call, empty arguments may only look complete
        (`anth-tool-cut-by-limit`).
        """
        cut = self._answer.finish not in (None, "tool_use", "end_turn")
        for block in self._blocks.values():
            call = None if block.call is None or block.call.closed else block.call
            if call and cut and (not call.arguments or parsed(call.arguments) is None):
                self._answer.reject(call, f"was cut off by {self._answer.finish}")
            else:
                self._end(block)

    # Blocks

    def _start(self, index: int | None, block: Mapping[str, Any]) -> None:
        # An index is a key, not a position in a list (`anth-index-gap`), and an id is none
        # (`anth-id-shared`). A start begins a new block even if its index was used before
        # (`anth-index-all-zero`).
        type = string(block.get("type"))
        slot = (index or 0, self._count)
        self._count += 1
        call = None
        if type == "tool_use":
            id, name = string(block.get("id")), string(block.get("name"))
            call = self._answer.open(slot[0], key=index, id=id, name=name)
        previous = self._blocks.get(index)
        if previous is not None:
            self._end(previous)
        initial_arguments = _initial_arguments(block.get("input"))
        begun = self._blocks[index] = _Block(type, slot, call, initial_arguments)
        # A start may have text already (`anth-text-in-start`).
        if type == "text":
            self._answer.add("text", string(block.get("text")), slot)
        elif type == "thinking":
            self._answer.add("reasoning", string(block.get("thinking")), slot)
            begun.signature.append(string(block.get("signature")))
        elif type == "redacted_thinking":
            # The whole block is in its start. It has to be sent back unchanged.
            self._answer.keep(string(block.get("data")))

    def _delta(self, index: int | None, delta: Mapping[str, Any]) -> None:
        # Deltas of several blocks may alternate (`anth-interleaved`).
        block = self._blocks.get(index)
        if block is None:
            # Without it the answer would lack text, and look complete (`anth-start-missing`).
            self._answer.fail(f"a delta came for block {index}, which has not started")
            return
        match block.type, delta.get("type"):
            case "text", "text_delta":
                self._answer.add("text", string(delta.get("text")), block.slot)
            case "thinking", "thinking_delta":
                self._answer.add("reasoning", string(delta.get("thinking")), block.slot)
            case "tool_use", "input_json_delta" if block.call and not block.call.closed:
                # A fragment alone need not parse (`anth-parse-each-fragment`).
                block.call.argue(string(delta.get("partial_json")))
            case "thinking", "signature_delta":
                # One delta, or several (`anth-signature`).
                block.signature.append(string(delta.get("signature")))
            case _:
                # `anth-unknown-types`. The input of a tool that the service runs is not that of a
                # call of the client (`server_tool_use`).
                pass

    def _stop(self, index: int | None) -> None:
        block = self._blocks.get(index)
        if block is not None:
            self._end(block)

    def _end(self, block: _Block) -> None:
        self._answer.keep("".join(block.signature))
        if block.call is not None and not block.call.closed:
            # Arguments from deltas take precedence over those in the start
            # (`anth-input-in-start`). A call without either has no arguments (`anth-zero-arg`,
            # `anth-input-missing`).
            block.call.replace_arguments(block.call.arguments or block.initial_arguments)
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


def _is_placeholder(block: Mapping[str, Any]) -> bool:
    """Whether a block in `message_start` is empty: proxies send one and open the block later."""
    empty = not (block.get("text") or block.get("thinking") or block.get("signature"))
    return empty and block.get("type") in ("text", "thinking")


def _initial_arguments(value: object) -> str:
    """The arguments of a start event as text. The service sends `{}` if they follow in deltas."""
    if isinstance(value, str):
        return value
    return json_text(value) if value else ""
