"""Messages: mistakes of clients with other policies than the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import string
from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome
from tests.checking.mutants.anthropic_more_calls import LastFragmentOnly
from tests.checking.mutants.common import Skips, common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]
SKIP = Policy(malformed="skip")
KEEP = Policy(malformed="keep")
FAIL = Policy(malformed="fail")

common(
    __name__,
    "anthropic",
    FailsInSilence="Drops the whole answer if arguments do not parse, and reports nothing.",
    UnknownToolDropsAllCalls=(
        "Leaves out every call of an answer that calls a tool which was not offered."
    ),
)


@mutant("arguments-concatenate", api="anthropic", policy=SKIP, family="argument fragments")
class SkipsOverwrittenArguments(Skips, LastFragmentOnly):
    """Assigns fragments, and leaves out the calls whose last fragment does not parse."""


@mutant("arguments-concatenate", api="anthropic", policy=SKIP, family="call identity")
class SkipsArgumentsByPosition(Skips, AnthropicAccumulator):
    """Appends fragments to the newest block, and leaves out the calls that do not parse."""

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


@mutant(
    "unknown-tool", api="anthropic", policy=Policy(unknown_tool="error"), family="unknown tools"
)
class UnknownToolIsRun(AnthropicAccumulator):
    """Reports calls of any tool, against its own policy."""
