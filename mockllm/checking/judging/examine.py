"""Runs a client through many cases, and reports the invariants that it breaks.

`attribution` decides which invariant a failed case breaks, so that one bug is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mockllm.checking.cases.case import Case
from mockllm.checking.invariants import INVARIANTS
from mockllm.checking.judging.attribution import attribute
from mockllm.checking.judging.compare import Difference, differences
from mockllm.checking.judging.running import Factory, Level, run, run_together
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Run

__all__ = ["Failure", "Report", "examine", "examine_bodies", "examine_client"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that a client gets wrong.

    Args:
        invariant: the one that it breaks.
        descriptions: what differs from the expected outcome.
        shrunk: a smaller case that fails in the same way, if one was searched for.
        secondary: whether other cases decided on the invariant: alone, this one would point
            elsewhere.
    """

    invariant: str
    case: Case
    descriptions: tuple[str, ...]
    shrunk: Case | None = None
    secondary: bool = False

    def __str__(self) -> str:
        lines = [f"{self.case.name} breaks {self.invariant}: {INVARIANTS[self.invariant]}."]
        lines += [f"  {description}" for description in self.descriptions]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination.

    Args:
        runs: how many cases were run.
        skipped: the names of the cases that cannot be run at this level.
        failures: one for each case that failed, unless its plain form explains it.
    """

    runs: int
    skipped: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no case failed."""
        return not self.failures

    def broken(self) -> dict[str, list[Failure]]:
        """The failures of each broken invariant, in the order of `INVARIANTS`.

        Failures that are not secondary come first, then the smaller streams.
        """
        broken: dict[str, list[Failure]] = {}
        for name in INVARIANTS:
            failures = [failure for failure in self.failures if failure.invariant == name]
            if failures:
                broken[name] = sorted(failures, key=lambda f: (f.secondary, f.case.answer.size))
        return broken


@dataclass(slots=True)
class _Examination:
    """The results of the cases so far: plain forms by name, and the cases that failed."""

    judge: Callable[[Case], list[Difference]]
    plain: dict[str, list[Difference]] = field(default_factory=dict)
    failed: list[tuple[Case, list[Difference], list[Difference]]] = field(default_factory=list)

    def add(self, case: Case) -> list[Difference]:
        """Judges a case; if it fails, its plain form, too. Returns the differences."""
        found = self.judge_plain(case) if case.plain is None else self.judge(case)
        if found:
            self.failed.append((case, found, self.judge_plain(case.plain) if case.plain else []))
        return found

    def judge_plain(self, case: Case) -> list[Difference]:
        """The differences of a plain case, which runs once."""
        if case.name not in self.plain:
            self.plain[case.name] = self.judge(case)
        return self.plain[case.name]

    def failures(self) -> tuple[Failure, ...]:
        """One for each attributed case."""
        return tuple(
            Failure(one.invariant, one.case, one.descriptions, secondary=one.secondary)
            for one in attribute(self.failed)
        )


def examine(
    factory: Factory,
    cases: Iterable[Case],
    policy: Policy | None = None,
    *,
    level: Level = "payloads",
) -> Report:
    """Runs an accumulator through cases.

    Args:
        factory: makes a new probe for each stream. Its exceptions are bugs of the test, not of
            the client, and propagate.
        policy: how the client intends to behave; default: `Policy()`.
        level: whether probes take decoded events or bytes.
    """
    policy = policy or Policy()
    examination = _Examination(lambda case: run(factory, case, policy, level))
    skipped: list[str] = []
    passed: list[Case] = []
    runs = 0
    for case in cases:
        if level == "payloads" and case.events is None:
            skipped.append(case.name)
            continue
        runs += 1
        failed = bool(examination.add(case))
        if case.plain is not None:
            continue
        shared = _shared_state(factory, passed, case, policy, level, failed=failed)
        if shared is not None:
            # If one stream affects the next, no later result means anything.
            return Report(runs, tuple(skipped), (shared,))
        if not failed:
            passed.append(case)
    return Report(runs, tuple(skipped), examination.failures())


def _shared_state(
    factory: Factory, passed: list[Case], case: Case, policy: Policy, level: Level, *, failed: bool
) -> Failure | None:
    """The failure of a client whose streams share state; None if no case shows it.

    Either a case that has passed fails when it runs again, or two streams at once interfere.

    Args:
        passed: the cases that have passed so far.
        failed: whether `case` fails alone.
    """
    if not passed:
        return None
    if not failed:
        for difference in run_together(factory, passed[-1], case, policy, level)[:1]:
            return Failure("stage-empties", case, (difference.description,))
        return None
    with_calls = [one for one in passed if one.expected.tool_calls]
    for before in (*with_calls[-1:], passed[-1]):
        found = run(factory, before, policy, level)
        if found:
            first = found[0].description
            description = f"{before.name} was right, and is wrong after other streams: {first}"
            return Failure("stage-empties", before, (description,))
    return None


def examine_bodies(
    read: Callable[[object], Outcome], cases: Iterable[Case], policy: Policy | None = None
) -> Report:
    """Checks that a client reads answers that are not streamed as it should read the streams.

    Args:
        read: gives the client's outcome for the JSON value of a body.
    """
    policy = policy or Policy()
    failures: list[Failure] = []
    runs = 0
    for case in cases:
        if case.plain is not None or case.body is None:
            continue
        runs += 1
        try:
            outcome = read(case.body)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
            outcome = Outcome.of(errors=[error])
        found = differences(case, outcome, policy)
        if found:
            descriptions = tuple(difference.description for difference in found)
            failures.append(Failure("stream-equals-body", case, descriptions))
    return Report(runs, (), tuple(failures))


def examine_client(
    client: Run, at: Callable[[Case], str], cases: Iterable[Case], policy: Policy | None = None
) -> Report:
    """Runs a whole client through cases over HTTP.

    Args:
        at: starts to serve a case, and returns the base URL.
    """
    policy = policy or Policy()

    def judge(case: Case) -> list[Difference]:
        return differences(case, outcome_of(client, at(case), case), policy)

    examination = _Examination(judge)
    runs = 0
    for case in cases:
        runs += 1
        examination.add(case)
    return Report(runs, (), examination.failures())


def outcome_of(client: Run, url: str, case: Case) -> Outcome:
    """The outcome of a whole client; an exception counts as an error that it reports."""
    try:
        return client(url, case)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return Outcome.of(errors=[error])
