"""How a stream of the Messages API is put together.

https://docs.claude.com/en/docs/build-with-claude/streaming

A message is a list of blocks, each with its start, deltas and stop. A name in backquotes is that
of the quirk that a rule comes from.
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
from mockllm.checking.reference.values import count, error_words, json_text, mapping, string

__all__ = ["AnthropicAccumulator"]


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that has begun.

    Args:
        slot: its place among the others: its index, then the order of coming.
        call: the call that it is, if it is one.
        given: the arguments that came with its start.
    """

    type: str
    slot: Slot
    call: StagedCall | None = None
    given: str = ""


class AnthropicAccumulator:
    """Puts the events of one stream together (`Probe`).

    Args:
        tools: the names of the tools that were offered; None: a call of any tool will do.
        malformed: what becomes of a call whose arguments never parse.
        missing_id: what becomes of a call that never gets an id.
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
        self._begun = False
        self._stopped = False
        self._blocks: dict[int | None, _Block] = {}
        self._count = 0
        self._tokens: dict[str, int] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: its text and thinking, and the call that surfaces with it."""
        if self._answer.failed or self._stopped:
            return None
        value = mapping(payload)
        # `anth-no-event-lines`: the type in the JSON counts; the event line is used where that
        # is missing, and so is a bare error.
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
                self._settle()
            case "error":
                # `anth-error-event`
                self._answer.fail(error_words(value.get("error") or payload))
            case _:
                pass  # `anth-ping`, `anth-unknown-types`
        return self._answer.delta()

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.staged())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """The stream broke underneath, below what an event can tell."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Nothing more comes; without an end of the message it was cut (`anth-cut`)."""
        self._answer.close()

    # The message

    def _message_start(self, message: Mapping[str, Any]) -> None:
        if self._begun:
            # `anth-message-start-twice`: a proxy tried again; the two halves do not fit.
            self._answer.fail("message_start came twice in one stream")
            return
        self._begun = True
        # The output tokens in here are not those of the answer, which has only begun.
        self._count_tokens({**mapping(message.get("usage")), "output_tokens": None})

    def _message_delta(self, value: Mapping[str, Any]) -> None:
        self._count_tokens(mapping(value.get("usage")))
        word = string(mapping(value.get("delta")).get("stop_reason"))
        if word:
            # `anth-two-message-delta`: null in a later one takes nothing back.
            self._answer.finish = word
            self._answer.complete = True
            self._settle()

    def _settle(self) -> None:
        """Ends the calls that got no stop of their own.

        `anth-tool-cut-by-limit`: where the limit struck inside of a call, `{}` or nothing may
        look like all of it.
        """
        cut = self._answer.finish not in (None, "tool_use", "end_turn")
        for block in self._blocks.values():
            call = block.call
            if call is None or call.settled:
                continue
            if cut and (not call.arguments or parsed(call.arguments) is None):
                self._answer.refuse(call, f"was cut off by {self._answer.finish}")
            else:
                self._end(block)

    # Blocks

    def _start(self, index: int | None, block: Mapping[str, Any]) -> None:
        # An index is a key, not a place in a list (`anth-index-gap`), and a start begins a new
        # block even where its index was there before (`anth-index-all-zero`).
        type = string(block.get("type"))
        slot = (index or 0, self._count)
        self._count += 1
        call = None
        if type == "tool_use":
            id, name = string(block.get("id")), string(block.get("name"))
            call = self._answer.open(slot[0], key=index, id=id, name=name)
        before = self._blocks.get(index)
        if before is not None and before.call is not None:
            self._end(before)
        self._blocks[index] = _Block(type, slot, call, _given(block.get("input")))
        # `anth-text-in-start`
        if type == "text":
            self._answer.add("text", string(block.get("text")), slot)
        elif type == "thinking":
            self._answer.add("reasoning", string(block.get("thinking")), slot)

    def _delta(self, index: int | None, delta: Mapping[str, Any]) -> None:
        # By the index, for blocks may overlap (`anth-interleaved`).
        block = self._blocks.get(index)
        if block is None:
            return
        match block.type, delta.get("type"):
            case "text", "text_delta":
                self._answer.add("text", string(delta.get("text")), block.slot)
            case "thinking", "thinking_delta":
                self._answer.add("reasoning", string(delta.get("thinking")), block.slot)
            case "tool_use", "input_json_delta" if block.call and not block.call.settled:
                # Parsed when the block stops and not before (`anth-parse-each-fragment`).
                block.call.arguments += string(delta.get("partial_json"))
            case _:
                pass  # `anth-unknown-types`, and signatures (`anth-signature`)

    def _stop(self, index: int | None) -> None:
        block = self._blocks.get(index)
        if block is not None:
            self._end(block)

    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.settled:
            # `anth-input-in-start`: what came in fragments wins. Nothing and nothing is a call
            # without arguments (`anth-zero-arg`, `anth-input-missing`).
            block.call.arguments = block.call.arguments or block.given
            self._answer.surface(block.call)

    # Usage

    def _count_tokens(self, usage: Mapping[str, Any]) -> None:
        """Counts are sums already, so a later one replaces (`anth-two-message-delta`); one that
        is missing takes nothing back, and none at all is not known (`anth-usage-missing`)."""
        details = mapping(usage.get("output_tokens_details"))
        for name, value in {**usage, "thinking_tokens": details.get("thinking_tokens")}.items():
            number = count(value)
            if number is not None:
                self._tokens[name] = number
        tokens = self._tokens
        if not tokens:
            return
        given, cached = tokens.get("input_tokens"), tokens.get("cache_read_input_tokens")
        if given is not None:
            # `input_tokens` leaves out what was read from the cache, or written into it.
            given += (cached or 0) + tokens.get("cache_creation_input_tokens", 0)
        output, thinking = tokens.get("output_tokens"), tokens.get("thinking_tokens")
        self._answer.usage = Usage(given, output, thinking, cached)


def _given(value: object) -> str:
    """The arguments of a start as text; `{}` from the service means that they follow."""
    if isinstance(value, str):
        return value
    return json_text(value) if value else ""
