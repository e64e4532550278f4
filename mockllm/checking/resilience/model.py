"""Cases with faults, findings, and what a client declares. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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


Ruling = tuple[Verdict, str]
"""The verdict of a rule, and what the client did, or why the rule was not judged."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule in a case."""

    rule: str
    verdict: Verdict
    text: str = ""


@dataclass(frozen=True, slots=True)
class ResiliencePolicy:
    """How a client intends to take faults, where good designs differ.

    Args:
        tries: how often it sends one request at most; None: it takes the number of the case.
        idle_timeout: after how many seconds without a byte it gives up; None: it takes that of the
            case.
        has_idle_timeout: whether it has such a timeout at all.
        longest_wait: the longest `retry-after` that it waits for, in seconds; None: any.
        final_errors: the codes of errors that it never repeats.
    """

    tries: int | None = None
    idle_timeout: float | None = None
    has_idle_timeout: bool = True
    longest_wait: float | None = None
    final_errors: frozenset[str] = frozenset()
    retries: bool = True

    @classmethod
    def declared(cls, settings: Mapping[str, Any]) -> ResiliencePolicy:
        """The policy of a client that declares settings, as the first line of a runner has them.

        `tries` of null, or of 1, says that the client does not retry.
        """
        tries, idle = settings.get("tries"), settings.get("idle_timeout")
        return cls(
            tries=tries,
            idle_timeout=idle,
            has_idle_timeout="idle_timeout" not in settings or idle is not None,
            longest_wait=settings.get("longest_wait"),
            final_errors=frozenset(settings.get("final_errors", ())),
            retries="tries" not in settings or tries not in (None, 1),
        )
