"""Responses: mistakes of clients with other policies than the default."""

from __future__ import annotations

from dataclasses import replace

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.responses import _Item
from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome
from tests.checking.mutants.common import Skips
from tests.checking.mutants.declared import mutant
from tests.checking.mutants.responses import AppendsFinalArguments, LastItemGetsAll

SKIP = Policy(malformed="skip")


@mutant("arguments-concatenate", api="responses", policy=SKIP, family="call identity")
class SkipsArgumentsByPosition(Skips, LastItemGetsAll):
    """Appends fragments to the newest item, trusts them more than the end, and leaves out the
    calls that do not parse (`resp-interleaved`)."""


@mutant("final-replaces", api="responses", policy=SKIP, family="final values")
class SkipsDoubledArguments(Skips, AppendsFinalArguments):
    """Appends the final arguments to the deltas, and leaves out the calls that do not parse."""


@mutant(
    "malformed-contained",
    api="responses",
    policy=Policy(malformed="fail"),
    family="malformed arguments",
)
class ReportsOnlyTheCall(ResponsesAccumulator):
    """Reports the call, and treats the rest of the answer as good, although its policy is that
    the answer fails."""


@mutant("unknown-tool", api="responses", policy=Policy(unknown_tool="skip"), family="unknown tools")
class UnknownToolEndsTheCalls(ResponsesAccumulator):
    """Ignores the calls behind a call of a tool that was not offered."""

    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        names = [call.name in self.offered for call in outcome.tool_calls]
        known = names.index(False) if self.offered and False in names else len(names)
        return replace(outcome, tool_calls=outcome.tool_calls[:known])


@mutant("missing-id", api="responses", policy=Policy(missing_id="error"), family="call ids")
class IdOfTheItemInstead(ResponsesAccumulator):
    """Uses the id of the item where a call has no `call_id`; results then find no call."""

    def __init__(self) -> None:
        super().__init__(missing_id="error")

    def _surface(self, item: _Item) -> None:
        if item.call is not None and not item.call.id:
            item.call.id = min(item.ids, default="")
        super()._surface(item)
