"""How to put together a stream of Amazon Bedrock's Converse API.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html

An event is an object with one key, its name, as SDKs of AWS return it. A message is a list of
blocks; a block of text or reasoning has no start. A name in backquotes is the quirk that a rule is
there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from examples.accumulators.answer import StagedCall, parsed
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import count, mapping, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["BedrockAccumulator"]


class BedrockAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    Without `messageStop` the stream was cut (`bedrock-no-message-stop`).
    """

    end = "messageStop"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._calls: dict[int, StagedCall] = {}
        self._signatures: dict[int, str] = {}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, reasoning, and the call that surfaces."""
        if self._answer.failed:
            return None
        # Every event also has a field `p`, which means nothing (`bedrock-padding-p`).
        for name, value in mapping(payload).items():
            self._event(name, mapping(value))
        return self._answer.delta()

    def _event(self, name: str, value: Mapping[str, Any]) -> None:
        if name == "error" or name.endswith("Exception"):
            # It ends the stream, also as its first event, and whether the client knows its name or
            # not (`bedrock-exception-frame`, `bedrock-throttle-first-frame`,
            # `bedrock-exception-unknown`, `bedrock-error-frame`).
            message = string(value.get("message")) or "the stream reports an error"
            self._answer.fail(f"{message} ({string(value.get('code')) or name})")
        elif name == "metadata":
            # A second one may have no usage (`bedrock-metadata-twice`); one may be missing
            # (`bedrock-no-metadata`).
            self._count_tokens(mapping(value.get("usage")))
        elif not self._answer.complete:
            self._content(name, count(value.get("contentBlockIndex")) or 0, value)

    def _content(self, name: str, index: int, value: Mapping[str, Any]) -> None:
        match name:
            case "contentBlockStart":
                self._start(index, mapping(mapping(value.get("start")).get("toolUse")))
            case "contentBlockDelta":
                self._delta(index, mapping(value.get("delta")))
            case "contentBlockStop":
                self._stop(index)
            case "messageStop":
                # Calls count, whatever the reason says (`bedrock-end-turn-with-call`,
                # `bedrock-tool-use-without-block`, `bedrock-malformed-tool-use`); there may be no
                # content at all (`bedrock-empty-end-turn`).
                self._answer.finish = string(value.get("stopReason")) or None
                self._answer.complete = True
                self._end_open_blocks()
            case _:
                pass  # `bedrock-unknown-event`

    # Blocks

    def _start(self, index: int, use: Mapping[str, Any]) -> None:
        # The service runs its own tools, and has their results in the same message
        # (`bedrock-server-tool-type`). A start without a call opens nothing.
        self._stop(index)
        if use and use.get("type") != "server_tool_use":
            id, name = string(use.get("toolUseId")), string(use.get("name"))
            self._calls[index] = self._answer.open(index, key=index, id=id, name=name)

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        # A delta opens its block (`bedrock-text-without-start`).
        reasoning = mapping(delta.get("reasoningContent"))
        self._answer.add("text", string(delta.get("text")), (index,))
        self._answer.add("reasoning", string(reasoning.get("text")), (index,))
        # It comes in a delta of its own, after the text.
        signature = self._signatures.get(index, "") + string(reasoning.get("signature"))
        self._signatures[index] = signature
        # Reasoning that only the service can read is sent back, too.
        self._answer.keep(string(reasoning.get("redactedContent")))
        call = self._calls.get(index)
        if call is not None:
            # The start has no arguments; a call without any may have no delta, or an empty one
            # (`bedrock-zero-args`).
            call.argue(string(mapping(delta.get("toolUse")).get("input")))

    def _stop(self, index: int) -> None:
        self._answer.keep(self._signatures.pop(index, ""))
        call = self._calls.pop(index, None)
        if call is not None:
            self._answer.surface(call)

    def _end_open_blocks(self) -> None:
        """Ends the blocks without `contentBlockStop` (`bedrock-no-block-stop`). A limit may have
        ended the answer inside of a call, whose arguments may only look complete."""
        for index, call in sorted(self._calls.items()):
            cut = self._answer.finish not in ("tool_use", "end_turn")
            if cut and (not call.arguments or parsed(call.arguments) is None):
                self._answer.reject(call, f"was cut off by {self._answer.finish}")
                del self._calls[index]
        for index in sorted({*self._calls, *self._signatures}):
            self._stop(index)

    def _count_tokens(self, usage: Mapping[str, Any]) -> None:
        """Takes the counts. Cached tokens are not in `inputTokens`, and may come under two names
        (`bedrock-key-twice`)."""
        input, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
        if input is None and output is None:
            return
        cached = count(usage.get("cacheReadInputTokens"))
        written = count(usage.get("cacheWriteInputTokens")) or 0
        self._answer.usage = Usage((input or 0) + (cached or 0) + written, output, None, cached)
