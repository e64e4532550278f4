"""The kit's own scenarios of Anthropic, Gemini and AG-UI find accumulators with one bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from examples.accumulators import AGUIAccumulator, AnthropicAccumulator, GeminiAccumulator
from examples.accumulators.values import mapping, sequence
from mockllm.checking import Case, Delta, Outcome, Probe, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import single
from mockllm.checking.material import kit_scenarios
from mockllm.scenario.model import Api
from tests.cases import for_all

Object = Mapping[str, Any]


@cache
def kit(api: Api) -> tuple[Case, ...]:
    return tuple(case(single(scenario), api) for scenario in kit_scenarios(api))


# Anthropic


class CacheWritesCountedTwice(AnthropicAccumulator):
    """Adds the tokens written to the cache by their time to live to their total."""

    def _count_tokens(self, usage: Object) -> None:
        parts = mapping(usage.get("cache_creation")).values()
        if parts:
            total = usage.get("cache_creation_input_tokens", 0) + sum(parts)
            usage = {**usage, "cache_creation_input_tokens": total}
        super()._count_tokens(usage)


class NullCountsErase(AnthropicAccumulator):
    """Erases the counts of the start where those of the end are null."""

    def _count_tokens(self, usage: Object) -> None:
        for name, count in usage.items():
            if count is None and name != "output_tokens":
                self._tokens.pop(name, None)
        super()._count_tokens(usage)


class EmptyAnswerRaises(AnthropicAccumulator):
    """Treats an answer without text and calls as an error."""

    def close(self) -> None:
        outcome = self.outcome()
        if outcome.finish == "end_turn" and not (outcome.text or outcome.tool_calls):
            raise ValueError("the answer is empty")
        super().close()


class AnswerOfThinkingRaises(AnthropicAccumulator):
    """Treats an answer that has only thinking as an error."""

    def close(self) -> None:
        outcome = self.outcome()
        if outcome.reasoning and outcome.finish and not (outcome.text or outcome.tool_calls):
            raise ValueError("the answer has only thinking")
        super().close()


class HostedToolsByName(AnthropicAccumulator):
    """Recognises the tools of the service by their names."""

    def _start(self, index: int | None, block: Object) -> None:
        hosted = block.get("name") in ("web_search", "web_fetch", "code_execution")
        super()._start(index, {**block, "type": "server_tool_use"} if hosted else block)


class CallsByStopReason(AnthropicAccumulator):
    """Drops the calls of an answer that ends with `end_turn`."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=()) if outcome.finish == "end_turn" else outcome


class CallsBeforeHostedResultsLost(AnthropicAccumulator):
    """Drops the calls so far where the result of a hosted tool comes."""

    def _start(self, index: int | None, block: Object) -> None:
        if str(block.get("type")).endswith("_tool_result"):
            self._answer._calls.clear()
        super()._start(index, block)


# Gemini


class ThoughtsByTheKey(GeminiAccumulator):
    """Treats every part that has `thought` as a thought, also where it is false."""

    def _part(self, part: Object) -> None:
        super()._part({**part, "thought": "thought" in part})


class NullCandidatesRaise(GeminiAccumulator):
    """Iterates over candidates that are null."""

    def _chunk(self, chunk: Object) -> None:
        list(chunk.get("candidates", []))
        super()._chunk(chunk)


class EmptyCandidatesRaise(GeminiAccumulator):
    """Reads the first of no candidates."""

    def _chunk(self, chunk: Object) -> None:
        if chunk.get("candidates") is not None:
            chunk["candidates"][0]
        super()._chunk(chunk)


class NullContentRaises(GeminiAccumulator):
    """Looks for parts in content that is null."""

    def _candidate(self, candidate: Object) -> None:
        candidate.get("content", {}).get("parts")
        super()._candidate(candidate)


class NullPartsRaise(GeminiAccumulator):
    """Iterates over parts that are null."""

    def _candidate(self, candidate: Object) -> None:
        list(mapping(candidate.get("content")).get("parts", []))
        super()._candidate(candidate)


class CallsOfALimitLost(GeminiAccumulator):
    """Drops the calls of an answer that the limit of tokens ends."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=()) if outcome.finish == "MAX_TOKENS" else outcome


class OpenCallRunsAfterAnError(GeminiAccumulator):
    """Runs a call with the arguments so far where the stream fails."""

    def outcome(self) -> Outcome:
        if self._partial_call is not None and self._answer.failed:
            call, arguments = self._partial_call
            self._partial_call = None
            call.arguments = arguments.text()
            call.closed = False
            self._answer.surface(call)
        return super().outcome()


# AG-UI


class CodeOfTheErrorRequired(AGUIAccumulator):
    """Reads the code of RUN_ERROR, which is optional."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "RUN_ERROR":
            payload["code"]
        return super().feed(payload, event)


class SnapshotDropsCalls(AGUIAccumulator):
    """Drops the calls that were streamed where a snapshot comes."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT":
            self._answer._calls.clear()
        return super().feed(payload, event)


class SnapshotAddsCalls(AGUIAccumulator):
    """Adds the calls of a snapshot to those that were streamed."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "MESSAGES_SNAPSHOT":
            for message in payload["messages"][-1:]:
                for call in sequence(message.get("toolCalls")):
                    function = call["function"]
                    again = self._answer.open(id=call["id"], name=function["name"])
                    again.argue(function["arguments"])
                    self._answer.surface(again)
        return super().feed(payload, event)


class StepsClearTheText(AGUIAccumulator):
    """Starts the text again with every step."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("type") == "STEP_STARTED":
            self._answer._texts["text"].clear()
        return super().feed(payload, event)


FOUND: list[tuple[Api, type[Probe], str]] = [
    ("anthropic", CacheWritesCountedTwice, "finish-and-usage"),
    ("anthropic", NullCountsErase, "finish-and-usage"),
    ("anthropic", EmptyAnswerRaises, "finish-and-usage"),
    ("anthropic", AnswerOfThinkingRaises, "finish-and-usage"),
    ("anthropic", HostedToolsByName, "unknown-event"),
    ("anthropic", CallsByStopReason, "unknown-event"),
    ("anthropic", CallsBeforeHostedResultsLost, "unknown-event"),
    ("gemini", ThoughtsByTheKey, "text-accumulates"),
    ("gemini", NullCandidatesRaise, "null-tolerant"),
    ("gemini", EmptyCandidatesRaise, "null-tolerant"),
    ("gemini", NullContentRaises, "null-tolerant"),
    ("gemini", NullPartsRaise, "null-tolerant"),
    ("gemini", CallsOfALimitLost, "surface-once"),
    ("gemini", OpenCallRunsAfterAnError, "error-ends"),
    ("agui", CodeOfTheErrorRequired, "error-ends"),
    ("agui", SnapshotDropsCalls, "surface-once"),
    ("agui", SnapshotAddsCalls, "surface-once"),
    ("agui", StepsClearTheText, "text-accumulates"),
]


@pytest.mark.slow
@for_all(
    ("api", "probe", "invariant"), FOUND, ids=[f"{api}-{one.__name__}" for api, one, _ in FOUND]
)
def test_the_bug_is_found(api: Api, probe: type[Probe], invariant: str) -> None:
    """A bug that no quirk shows is found, and the report names the invariant."""
    broken = examine(probe, kit(api)).broken()
    assert invariant in broken, broken
