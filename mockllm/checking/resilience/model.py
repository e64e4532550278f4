"""Cases with faults, and findings. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mockllm.scenario.model import Scenario, ToolSpec

Verdict = Literal["right", "wrong", "not judged", "not applicable"]


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A case: what is played, and how the client is to behave.

    Args:
        name: `API/NAME`.
        text, calls: what a client has that got the whole answer: its text, and the arguments of
            its calls as text.
        faults: of every answer, besides those of the scenario, as `--fault` has them.
        deadline: seconds after which the client is to have answered.
        tries, idle_timeout: the settings that the client should have, the latter in seconds.
        requests: how often the prompt is sent, with the same client.
        cancel: whether the client cancels once the first piece of the answer has come.
        kinds: the kinds of error that name the cause.
        wait: what `retry-after` says, in seconds.
        final: the code of the error, for clients that call it final.
    """

    name: str
    api: str
    title: str
    rules: tuple[str, ...]
    scenario: Scenario
    text: str = ""
    calls: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    prompt: str = "What is the weather in Paris?"
    tools: tuple[ToolSpec, ...] = ()
    model: str = "mock-model"
    deadline: float = 10.0
    tries: int = 3
    idle_timeout: float = 0.3
    requests: int = 1
    together: bool = False
    cancel: bool = False
    kinds: frozenset[str] = frozenset()
    wait: float = 0.0
    final: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule in a case."""

    rule: str
    verdict: Verdict
    text: str = ""
