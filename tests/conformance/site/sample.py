"""Results to draw: correct accumulators and deliberately wrong ones, run through real cases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import islice

from mockllm.checking import Case, Policy, Tool, cases, examine
from mockllm.checking.judging.running import Factory, drive, feed_arguments
from mockllm.conformance.case_names import Setting
from mockllm.conformance.clients.client_results import client_results
from mockllm.conformance.clients.messages import Answer, Hello
from mockllm.conformance.results import Client, Results
from tests.checking.mutants import MUTANTS, Mutant

LANGUAGES = ("python", "typescript", "rust", "go")

SETTING = Setting(("node", "runner.mjs"), ("--api", "chat"))


class InProcess:
    """A runner in this process: an accumulator of the checking kit, or a mutant of one."""

    def __init__(self, client: Client, factory: Factory, level: str) -> None:
        self.hello = Hello(client)
        self.answers: dict[str, Answer] = {}
        self._factory, self._level = factory, level

    def answer(self, case: Case) -> Answer:
        """The answer to a case; it is one of the answers from then on."""
        probe = self._factory()
        if hasattr(probe, "offer"):
            probe.offer(tuple(Tool(t.name, t.description, t.parameters) for t in case.tools))
        self.answers[case.name] = Answer(drive(probe, feed_arguments(case, self._level)))
        return self.answers[case.name]


@cache
def some_cases(api: str, level: str = "payloads", count: int = 150) -> tuple[Case, ...]:
    """The plain samples and the quirks of an API, each on its first sample."""
    found: dict[str, Case] = {}
    for one in islice(cases(api, variations=0, level=level), count):
        if one.answer.size < 20_000:
            found.setdefault(one.quirk or one.name, one)
    return tuple(found.values())


def results_of(
    client: Client,
    factory: Factory,
    chosen: Sequence[Case],
    *,
    policy: Policy | None = None,
    level: str = "payloads",
) -> Results:
    """What `mockllm check` would write of an accumulator."""
    runner = InProcess(client, factory, level)
    for case in chosen:
        for one in (case, case.plain):
            if one is not None and one.name not in runner.answers:
                runner.answer(one)
    policy = policy or Policy()
    report = examine(factory, chosen, policy, level=level)
    run = Results(client, chosen[0].api, level, "0.9.0", "2026-07-28", commit="de70975")
    return client_results(report, runner, run, policy, SETTING)


def mutant_results(mutant: Mutant) -> Results:
    """The results of a mutant of the checking kit, under a name of its own."""
    number = MUTANTS.index(mutant)
    client = Client(
        mutant.make.__name__,
        version=f"1.{number}.0",
        language=LANGUAGES[number % len(LANGUAGES)],
        entry_point=f"{mutant.make.__name__}.stream()",
        adapter="node runner.mjs",
    )
    chosen = some_cases(mutant.api, mutant.level)
    return results_of(
        client,
        mutant.make,
        chosen,
        policy=mutant.policy,
        level=mutant.level,
    )
