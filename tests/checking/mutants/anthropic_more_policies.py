"""Messages: mistakes of clients with other policies than the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome
from mockllm.checking.reference import AnthropicAccumulator
from mockllm.checking.reference.values import string
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]
SKIP = Policy(malformed="skip")
KEEP = Policy(malformed="keep")
FAIL = Policy(malformed="fail")


@mutant("arguments-concatenate", api="anthropic", policy=SKIP, family="argument fragments")
class SkipsOverwrittenArguments(AnthropicAccumulator):
    """Assigns fragments, and leaves out the calls whose last fragment does not parse."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")

    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.call is not None and delta.get("partial_json"):
            block.call.arguments = ""
        super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", policy=SKIP, family="call identity")
class SkipsArgumentsByPosition(AnthropicAccumulator):
    """Appends fragments to the newest block, and leaves out the calls that do not parse."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")

    def _delta(self, index: int | None, delta: Object) -> None:
        if delta.get("type") == "input_json_delta" and self._blocks:
            index = list(self._blocks)[-1]
        super()._delta(index, delta)


@mutant("arguments-concatenate", api="anthropic", policy=KEEP, family="argument fragments")
class KeepsTrimmedArguments(AnthropicAccumulator):
    """Strips each fragment, and keeps arguments that do not parse as text."""

    def __init__(self) -> None:
        super().__init__(malformed="keep")

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, {**delta, "partial_json": string(delta.get("partial_json")).strip()})


@mutant("malformed-contained", api="anthropic", policy=KEEP, family="malformed arguments")
class KeepsTheBeginning(AnthropicAccumulator):
    """Keeps the first twenty characters of arguments that do not parse."""

    def __init__(self) -> None:
        super().__init__(malformed="keep")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(
            replace(call, arguments=call.arguments[:20])
            if isinstance(call.arguments, str)
            else call
            for call in outcome.tool_calls
        )
        return replace(outcome, tool_calls=calls)


@mutant("malformed-contained", api="anthropic", policy=FAIL, family="malformed arguments")
class FailsInSilence(AnthropicAccumulator):
    """Drops the whole answer if arguments do not parse, and reports nothing."""

    def __init__(self) -> None:
        super().__init__(malformed="fail")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        malformed = any(error.kind == "malformed_arguments" for error in outcome.errors)
        return replace(outcome, errors=(), tool_calls=()) if malformed else outcome


@mutant("unknown-tool", api="anthropic", policy=Policy(unknown_tool="skip"), family="unknown tools")
class UnknownToolDropsAllCalls(AnthropicAccumulator):
    """Leaves out every call of an answer that calls a tool which was not offered."""

    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        known = all(call.name in self.offered for call in outcome.tool_calls)
        return outcome if known or not self.offered else replace(outcome, tool_calls=())


@mutant(
    "unknown-tool", api="anthropic", policy=Policy(unknown_tool="error"), family="unknown tools"
)
class UnknownToolIsRun(AnthropicAccumulator):
    """Reports calls of any tool, against its own policy."""
