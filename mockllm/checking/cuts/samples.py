"""The answers that are cut. It reads the file of this package."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import plain_cases
from mockllm.protocols import PROTOCOLS
from mockllm.replay.loading import loads
from mockllm.scenario.model import Api, Scenario


@cache
def cut_samples() -> tuple[Scenario, ...]:
    """The kit's own samples."""
    text = (files(__package__ or "") / "samples.yaml").read_text(encoding="utf-8")
    return loads(text, "samples.yaml")


def kit_samples_of(api: Api) -> list[Case]:
    """The kit's samples over an API, without those that it cannot express."""
    return [case for case in plain_cases(cut_samples(), api) if not _lost(case)]


def samples_of(api: Api, scenarios: Iterable[Scenario]) -> list[Case]:
    """The streamed turns of scenarios, without those that end with an error anyway."""
    return [case for case in plain_cases(scenarios, api) if case.reaction == "same"]


def is_malformed(case: Case) -> bool:
    """Whether the stream has a call whose arguments are no JSON object, even when it is whole."""
    return any(not isinstance(call.arguments, dict) for call in case.expected.tool_calls)


def _lost(case: Case) -> bool:
    """Whether the API cannot carry the call of a sample: it has arguments as values."""
    values = PROTOCOLS[case.api].client.arguments_are_values
    return values and bool(case.tools) and not case.expected.tool_calls
