"""Plays cases with faults to the client of examples/resilient_client, with a bug or without."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.rule_verdicts import Finding, judge
from mockllm.conformance.clients.http_sessions import FunctionPlayer, case_message
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.checking.resilience_mutants.declared import Mutant
from tests.checking.resilience_mutants.loading import load

POLICY = ResiliencePolicy(
    longest_wait=60.0,
    final_errors=frozenset({"insufficient_quota"}),
    cancel=frozenset({"leave"}),
)
"""What the runner of the client declares."""

_ALONE = 3
"""How often a case is played by itself where it showed something else than expected, or nothing: on
a busy machine, cases that run side by side are over before their client has sent anything."""


@dataclass
class Found:
    """What was found: the cases by rule, in their order, and what was not judged."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    right: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, case: Case, findings: Iterable[Finding]) -> None:
        """Adds the findings of a case."""
        for finding in findings:
            if finding.verdict == "wrong":
                self.wrong.setdefault(finding.rule, []).append(case.name)
                self.texts[finding.rule, case.name] = finding.text
            elif finding.verdict == "right":
                self.right.setdefault(finding.rule, []).append(case.name)
            else:
                self.open.append(f"{case.name}: {finding.rule}: {finding.text}")


API = "chat"
"""The API of the cases that are played to mutants."""


def cases_of(mutant: Mutant) -> list[Case]:
    """The cases that can show the bug."""
    return [case_ for case_ in fault_cases(API) if mutant.rule in case_.rules]


class Client:
    """The client, which plays cases side by side with those of other clients."""

    def __init__(
        self,
        player: Callable[[Callable[..., Any]], FunctionPlayer],
        pool: ThreadPoolExecutor,
        mutant: Mutant | None,
    ) -> None:
        run = load(mutant)
        self._player = player(lambda url, case: run(case_message(case, {case.api: url})))
        self._pool, self._mutant = pool, mutant
        self._jobs: list[tuple[Case, Future[list[Finding]]]] = []

    def begin(self, cases: Iterable[Case]) -> None:
        """Begins to play cases."""
        self._jobs += [(case, self._pool.submit(self._findings, case)) for case in cases]

    def found(self) -> Found:
        """Waits for all cases. To be called when those of the other clients are over, too."""
        first = [(case, job.result()) for case, job in self._jobs]
        result = _collected(first)
        for _ in range(_ALONE):
            again = [case for case, findings in first if not self._expected(findings)]
            if self._mutant is None:
                again += [case for case, _ in first if set(case.rules) - result.right.keys()]
            elif self._mutant.rule not in result.wrong:
                again += [case for case, _ in first if self._mutant.rule in case.rules]
            if not again:
                break
            second = {case.name: self._findings(case) for case in again}
            first = [(case, second.get(case.name, findings)) for case, findings in first]
            result = _collected(first)
        return result

    def wait(self) -> None:
        """Waits until all cases were played once."""
        for _, job in self._jobs:
            job.result()

    def _findings(self, case: Case) -> list[Finding]:
        played = self._player.play(case)
        outcomes = played.answer.outcomes(late=played.late)
        return judge(case, played.exchanges, outcomes, POLICY)

    def _expected(self, findings: Iterable[Finding]) -> bool:
        rules = {self._mutant.rule, *self._mutant.also} if self._mutant else set()
        return {finding.rule for finding in findings if finding.verdict == "wrong"} <= rules


def _collected(found: Iterable[tuple[Case, list[Finding]]]) -> Found:
    result = Found()
    for case, findings in found:
        result.add(case, findings)
    return result


@contextmanager
def clients(side_by_side: int = 40) -> Iterator[Callable[[Mutant | None], Client]]:
    """Makes clients that share a server. The sockets that mutants leave open, which is their bug,
    are closed at the end, before they can fail another test."""
    numbers = count(1)

    def player(run: Callable[..., Any]) -> FunctionPlayer:
        made = FunctionPlayer(thread, run)
        made._numbers = numbers  # of the sessions, which all clients share
        return made

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "unclosed", ResourceWarning)
        with (
            ServerThread([], ServerOptions(grace=0)) as thread,
            ThreadPoolExecutor(side_by_side) as pool,
        ):
            yield lambda mutant: Client(player, pool, mutant)
        gc.collect()
