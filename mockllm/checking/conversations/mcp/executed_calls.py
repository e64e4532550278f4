"""The way of each call of the model that an operation executed, where it can be told. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from mockllm.checking.conversations.mcp.operations import ModelCall, ToolRun, ToolTraffic
from mockllm.checking.conversations.round_trips import Step
from mockllm.core.record import record


@record
class ExecutedCall:
    """A call of the model, from the stream over the operation to the result.

    Args:
        exchange: the number of the request that was answered with the call.
        tool: `SERVER.TOOL`.
        operations: the numbers of the requests to the server: the tries of one operation.
        result: that of the first request with the result; None: none has come.
    """

    exchange: int
    id: str
    tool: str
    operations: tuple[int, ...]
    result: int | None

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The numbers of all its requests."""
        return (self.exchange, *self.operations, self.result)

    def as_json(self) -> dict[str, Any]:
        return {
            "exchange": self.exchange,
            "id": self.id,
            "tool": self.tool,
            "operations": list(self.operations),
            "result": self.result,
        }


def executed_calls(traffic: ToolTraffic) -> Iterator[ExecutedCall]:
    """The calls that operations executed with their own arguments, without those of which another
    conversation waits for the same."""
    for call in traffic.calls:
        for run in call.runs:
            step = _step_of(call, run)
            if step is not None:
                ended = (s.number for s, _ in call.results if s.number > run.last.number)
                tries = tuple(exchange.number for exchange in run.tries)
                yield ExecutedCall(step.number, call.call.id, call.tool, tries, next(ended, None))


def _step_of(call: ModelCall, run: ToolRun) -> Step | None:
    """The request whose answer has the call that an operation executed."""
    for other in run.waiting:
        if other.steps[0] not in call.steps and run.call_id in ("", other.call.id):
            return None
    before = [step for step in call.steps if step.number < run.first.number]
    # A client that left a stream, or whose stream broke, asks again.
    begun = [step for step in before if step.exchange.arrived] or before[-1:]
    closed = (
        any(one.exchange.received.clock < end <= two.exchange.received.clock
            for end in call.continued)
        for one, two in itertools.pairwise(begun)
    )  # fmt: skip
    return begun[-1] if begun and all(closed) else None
