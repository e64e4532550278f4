"""Clients that keep Cohere's plan elsewhere than in the text are accused of nothing."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import CohereAccumulator
from examples.accumulators.lines import ReferenceBytes
from examples.accumulators.values import mapping, string
from mockllm.checking import Policy, case_specs, examine
from mockllm.play.replay.loading import load, shipped_scenarios

LARGE = ("hundred-tools", "long-text", "unicode")
INTERMEDIATE = Policy(intermediate=True)


class PlanIsReasoning(CohereAccumulator):
    """Keeps the plan with the reasoning, as a chain of thought."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        message = mapping(mapping(mapping(payload).get("delta")).get("message"))
        plan = string(message.get("tool_plan"))
        if not plan or self._answer.failed or self._answer.complete:
            return super().feed(payload, event)
        self._answer.add("reasoning", plan, self._slot("plan"))
        return self._answer.delta()


class PlanApart(CohereAccumulator):
    """Keeps the plan in a field of its own, as the SDK of the service does."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        is_plan = mapping(payload).get("type") == "tool-plan-delta"
        return None if is_plan else super().feed(payload, event)


class PlanTwice(PlanIsReasoning):
    """Keeps the plan in both places."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        if mapping(payload).get("type") == "tool-plan-delta":
            super().feed(payload, event)
        return CohereAccumulator.feed(self, payload, event)


@pytest.mark.slow
@pytest.mark.parametrize("client", [PlanIsReasoning, PlanApart])
def test_a_plan_may_be_kept_apart(client: type[CohereAccumulator]) -> None:
    """As reasoning and in a field of its own, at both levels, also where the answer fails."""
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LARGE]

    def found(make: Any, level: Any) -> list[str]:
        specs = case_specs("cohere", scenarios, variations=1, level=level)
        report = examine(make, (spec.compile() for spec in specs), INTERMEDIATE, level=level)
        return [str(failure) for failure in report.failures]

    def of_bytes() -> ReferenceBytes:
        probe = ReferenceBytes("cohere")
        probe._accumulator = client()
        return probe

    assert found(client, "payloads") == []
    assert found(of_bytes, "bytes") == []


def test_a_plan_is_not_kept_twice() -> None:
    """A plan both in the text and in the reasoning was sent once."""
    specs = case_specs("cohere", variations=0, level="payloads")
    report = examine(PlanTwice, (spec.compile() for spec in specs))
    assert set(report.broken()) == {"text-accumulates"}
