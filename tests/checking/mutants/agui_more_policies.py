"""AG-UI: mistakes of clients with other policies than the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mockllm.checking import Policy
from mockllm.checking.outcome import Outcome
from mockllm.checking.reference import AGUIAccumulator
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]
SKIP = Policy(malformed="skip")


@mutant("arguments-concatenate", api="agui", policy=SKIP, family="call identity")
class SkipsArgumentsByPosition(AGUIAccumulator):
    """Appends arguments to the call that began last, and leaves out the calls that do not parse
    (`agui-parallel-calls`, microsoft/agent-framework#6342)."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")

    def _arguments(self, id: str, value: Object) -> None:
        super()._arguments(list(self._calls)[-1] if self._calls else id, value)


@mutant("arguments-concatenate", api="agui", policy=SKIP, family="argument fragments")
class SkipsOverwrittenArguments(AGUIAccumulator):
    """Assigns the arguments, and leaves out the calls whose last fragment does not parse."""

    def __init__(self) -> None:
        super().__init__(malformed="skip")

    def _arguments(self, id: str, value: Object) -> None:
        if id in self._calls and value.get("delta"):
            self._calls[id].arguments = ""
        super()._arguments(id, value)


@mutant(
    "malformed-contained", api="agui", policy=Policy(malformed="fail"), family="malformed arguments"
)
class FailsInSilence(AGUIAccumulator):
    """Drops the whole answer if arguments do not parse, and reports nothing."""

    def __init__(self) -> None:
        super().__init__(malformed="fail")

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        malformed = any(error.kind == "malformed_arguments" for error in outcome.errors)
        return replace(outcome, errors=(), tool_calls=()) if malformed else outcome


@mutant("unknown-tool", api="agui", policy=Policy(unknown_tool="skip"), family="unknown tools")
class UnknownToolDropsAllCalls(AGUIAccumulator):
    """Leaves out every call of a run that calls a tool which was not offered."""

    def offer(self, tools: tuple[str, ...]) -> None:
        """The tools of the request."""
        self.offered = set(map(str, tools))

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        known = all(call.name in self.offered for call in outcome.tool_calls)
        return outcome if known or not self.offered else replace(outcome, tool_calls=())
