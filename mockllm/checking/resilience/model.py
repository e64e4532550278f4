"""Cases with faults, outcomes and findings. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.checking.outcome import Outcome
from mockllm.scenario.model import Scenario, ToolSpec

__all__ = [
    "ClientOutcome",
    "ErrorKind",
    "FaultCase",
    "Finding",
    "ReportedError",
    "Verdict",
]

Verdict = Literal["right", "wrong", "not judged", "not applicable"]

ErrorKind = Literal[
    "overloaded", "rate_limit", "network", "protocol", "server", "timeout", "request"
]


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A case: what is played, and how the client is to behave.

    Args:
        name: `API/NAME`.
        title: what happens, in a sentence.
        rules: the names of the rules that it can judge.
        scenario: what answers.
        text, calls: what a client has that got the whole answer: its text, and the arguments of
            its calls as text.
        faults: of every answer, besides those of the scenario, as `--fault` has them.
        tools: that the request offers.
        deadline: seconds after which the client is to have answered.
        tries, idle_timeout: the settings that the client should have, the latter in seconds.
        requests: how often the prompt is sent, with the same client.
        together: whether they are sent at the same time.
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
class ReportedError:
    """An error that a client reports.

    Args:
        type: the class of the exception, or the code of the error; "" where it is not known.
        kind: what the client says of the cause; None where it does not say it.
        has_kind: whether it is known what the client says of causes at all.
    """

    message: str
    type: str = ""
    kind: str | None = None
    has_kind: bool = False


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """What a client ends up with after one request. None: it is not known.

    Args:
        answered: whether the client ended by itself before its deadline.
        partial: whether what it hands on is marked as incomplete.
        handed_on: everything that its user saw, after replacements.
        left: how many `tasks`, `threads`, `connections` are open after it was closed.
    """

    outcome: Outcome = field(default_factory=Outcome)
    answered: bool = True
    partial: bool | None = None
    handed_on: str | None = None
    errors: tuple[ReportedError, ...] = ()
    left: Mapping[str, int] | None = None

    @property
    def failed(self) -> bool:
        """Whether it reports an error."""
        return bool(self.errors or self.outcome.errors)

    @property
    def shown(self) -> str:
        """What its user saw, as far as that is known."""
        return self.outcome.text if self.handed_on is None else self.handed_on

    @property
    def arguments(self) -> list[Any]:
        """The arguments of its calls: values, or text where they are kept as text."""
        return [call.arguments for call in self.outcome.tool_calls]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule in a case.

    Args:
        text: what the client did, or why the rule was not judged.
    """

    rule: str
    verdict: Verdict
    text: str = ""
