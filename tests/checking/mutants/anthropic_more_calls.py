"""Messages: more mistakes with calls, their blocks and their fragments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.anthropic import _Block
from examples.accumulators.values import mapping, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import (
    AbandonsNothing,
    answer_of,
    closing_brackets,
    rewriting_arguments,
    with_calls,
)
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import WATCHED, mutant

Object = Mapping[str, Any]

common(
    __name__,
    "anthropic",
    OneCallForEachName=(
        """Keeps calls by the name of their tool: a second call of one tool replaces the first
    (NousResearch/hermes-agent#11863)."""
    ),
    OneVariableForTheCall="""Has one variable for the current call, and so reports the last one only
    (jeremychone/rust-genai#173).""",
    IndexesSortedAsText="Sorts the indexes as text, as keys of a JSON object: 10 comes before 2.",
    LastCallFirst="Takes finished calls from a stack, the last one first.",
    MalformedInputIsEmpty="Runs a call whose arguments do not parse with `{}`.",
    MalformedInputRaises="Raises where arguments do not parse, and loses what follows.",
    CutRunsOpenCalls=(
        """Runs the calls that are open when the stream stops, if their arguments parse or are
    empty."""
    ),
)


@mutant("surface-once", api="anthropic", family="call identity")
class FirstCallOnly(AnthropicAccumulator):
    """Ignores the blocks after the first call, as an agent does that runs one tool a turn."""

    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") != "tool_use" or not any(b.call for b in self._blocks.values()):
            super()._start(index, block)


@mutant("surface-once", api="anthropic", family="call identity")
class OneDigitOfTheIndex(AnthropicAccumulator):
    """Uses the last digit of the index as the key, so an eleventh block replaces the first."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[-10:])


@mutant("arguments-concatenate", api="anthropic", family="call identity")
class ServerToolInputToTheCall(AnthropicAccumulator):
    """Appends the `input_json_delta` of a block that it does not know, such as
    `server_tool_use`, to the call before it (langchain-ai/langchainjs#10013,
    microsoft/agent-framework#5050)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is None and delta.get("type") == "input_json_delta":
            calls = [b.call for b in self._blocks.values() if b.call is not None]
            if calls:
                calls[-1].closed = False
                calls[-1].arguments += string(delta.get("partial_json"))
        super()._delta(index, delta)


@mutant("unknown-event", api="anthropic", family="emission")
class ServerToolsAreCalls(AnthropicAccumulator):
    """Reports a tool that the service runs itself as a call for the client
    (langchain-ai/langchainjs#9911)."""

    def _start(self, index: int | None, block: Object) -> None:
        hosted = string(block.get("type")).endswith("tool_use")
        super()._start(index, {**block, "type": "tool_use"} if hosted else block)


@mutant("id-kept", api="anthropic", family="call ids")
class PrefixOfTheIdChanged(AnthropicAccumulator):
    """Gives ids the prefix of another service, as gateways do between two APIs."""

    def outcome(self) -> Outcome:
        return with_calls(
            super().outcome(),
            lambda call: replace(call, id="fc_" + str(call.id).partition("_")[2]),
        )


@mutant("id-kept", api="anthropic", family="call ids")
class IdsCutToTheirBeginning(AnthropicAccumulator):
    """Cuts ids to the length that another service accepts, here to six characters."""

    def outcome(self) -> Outcome:
        return with_calls(super().outcome(), lambda call: replace(call, id=str(call.id)[:6]))


@mutant("id-kept", api="anthropic", family="call ids")
class IdOfTheMessage(AnthropicAccumulator):
    """Makes the id of a call from the id of the message and the index of the block."""

    def _message_start(self, message: Object) -> None:
        self.message = string(message.get("id"))
        super()._message_start(message)

    def _start(self, index: int | None, block: Object) -> None:
        id = f"{self.__dict__.get('message', '')}-{self._count}"
        super()._start(index, {**block, "id": id} if "id" in block else block)


@mutant("name-kept", api="anthropic", family="call names")
class NamesInLowerCase(AnthropicAccumulator):
    """Changes names to the form of its own tool registry: lower case without underscores."""

    def outcome(self) -> Outcome:
        def changed(call: Any) -> Any:
            return replace(call, name=call.name.lower().replace("_", "-"))

        return with_calls(super().outcome(), changed)


# Fragments


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class StartIsTheFirstFragment(AnthropicAccumulator):
    """Appends fragments to the `{}` of the start, as text."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        call = self._blocks[index].call
        if call is not None:
            call.arguments = json.dumps(block.get("input") or {})


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class EmptyFragmentIsAnObject(AnthropicAccumulator):
    """Replaces an empty `partial_json`, with which every call begins, by `{}`
    (theopenco/llmgateway#2468)."""

    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "input_json_delta":
            delta = {**delta, "partial_json": delta.get("partial_json") or "{}"}
        super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class TrimsFragments(AnthropicAccumulator):
    """Strips white space from each fragment, also where a string goes on."""

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, {**delta, "partial_json": string(delta.get("partial_json")).strip()})


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class RepeatedFragmentsDropped(AnthropicAccumulator):
    """Drops a fragment that equals the one before it, as a duplicate."""

    def _delta(self, index: int | None, delta: Object) -> None:
        before = self.__dict__.get("before")
        self.before = (index, delta.get("partial_json"))
        if not delta.get("partial_json") or before != self.before:
            super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class LastFragmentOnly(AnthropicAccumulator):
    """Assigns fragments instead of appending them."""

    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is not None and delta.get("partial_json"):
            block.call.arguments = ""
        super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class FailedFragmentsSwallowed(AnthropicAccumulator):
    """Parses each fragment alone and ignores those that fail, so that longer arguments are
    `{}` (bojieli/ai-agent-book#194)."""

    def _end(self, block: _Block) -> None:
        if block.call is not None and self.__dict__.get("fragments", {}).get(block.call.id, 0) > 1:
            block.call.arguments = "{}"
        super()._end(block)

    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is not None and delta.get("partial_json"):
            counts = self.__dict__.setdefault("fragments", {})
            counts[block.call.id] = counts.get(block.call.id, 0) + 1
        super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", family="argument fragments")
class StopWithoutDeltasEmpties(AnthropicAccumulator):
    """Parses the joined deltas at the stop even if there were none, and so loses the arguments
    of the start (earendil-works/pi#2593, Yeachan-Heo/gajae-code#1895)."""

    def _end(self, block: _Block) -> None:
        if block.call is not None and not block.call.closed:
            block.call.arguments = block.call.arguments or "{}"
        super()._end(block)


@mutant("surface-complete", api="anthropic", family="emission")
class StopEndsTheNewestCall(AnthropicAccumulator):
    """Ignores the index of a stop, and ends the call that began last (`anth-interleaved`)."""

    def _stop(self, index: int | None) -> None:
        super()._stop(list(self._blocks)[-1] if self._blocks else index)


# Arguments that do not parse


@mutant("malformed-contained", api="anthropic", family="malformed arguments")
class BracketsClosed(AnthropicAccumulator):
    """Adds the quotes and brackets that cut arguments lack, and runs the call (a parser of
    partial JSON, used on the final arguments)."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(closing_brackets))


@mutant("error-ends", api="anthropic", family="errors")
class ErrorRunsOpenCalls(AnthropicAccumulator):
    """Runs the calls that are open when an error comes, if their arguments parse
    (brightwave-inc/tidebreak#1122)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" in payload:
            answer_of(self, AbandonsNothing)
        return super().feed(payload, event)


# What is passed on during the stream


@mutant("delta-is-fragment", api="anthropic", policy=WATCHED, family="deltas")
class HandsOnArgumentsSoFar(AnthropicAccumulator):
    """Passes on all arguments so far for each fragment."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if not mapping(mapping(payload).get("delta")).get("partial_json"):
            return delta
        block = self._blocks.get(payload["index"])
        if block is None or block.call is None:
            return delta
        call = block.call
        fragment = Fragment(call.arguments, call.id, call.name, call.number)
        return replace(delta or Delta(), tool=(fragment,))


@mutant("surface-once", api="anthropic", policy=WATCHED, family="deltas")
class HandsOnCallsAgainAtTheEnd(AnthropicAccumulator):
    """Passes on each call at its stop, and all calls again with the stop reason."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if mapping(payload).get("type") == "message_delta" and self.outcome().tool_calls:
            return replace(delta or Delta(), tool_calls=self.outcome().tool_calls)
        return delta


@mutant("delta-first", api="anthropic", policy=WATCHED, family="deltas")
class HandsOnTextAtTheStop(AnthropicAccumulator):
    """Shows text as it comes, but passes it on when its block stops."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        held = self.__dict__.setdefault("held", [])
        if delta is not None and delta.text:
            held.append(delta.text)
            return None
        if held and mapping(payload).get("type") == "content_block_stop":
            text = "".join(held)
            held.clear()
            return Delta(text)
        return delta
