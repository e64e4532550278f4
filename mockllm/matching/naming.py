"""The scenario that a request names: by its path, a header or its model."""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.request import Request
from mockllm.matching.index import SCENARIO_HEADER, ScenarioIndex


def split_model(served: ScenarioIndex, model: str) -> tuple[str, str | None]:
    """The model of a request, and the name of the scenario that its model field names, if any.

    `mock/<scenario>` always names a scenario. `<model>@<scenario>` does so only where the scenario
    is served, because models of some services have `@` in their names (Vertex AI:
    `claude-3-5-sonnet@20240620`).
    """
    if model.startswith("mock/"):
        return model, model[5:]
    before, at, name = model.rpartition("@")
    if at and name in served.by_name:
        return before, name
    return model, None


def named_scenario(
    served: ScenarioIndex, request: Request, headers: Mapping[str, str]
) -> str | None:
    """The name of the scenario that a request names by its path, header or model; None or "" where
    it names none."""
    name = request.scenario or headers.get(SCENARIO_HEADER)
    return name or split_model(served, request.model)[1]
