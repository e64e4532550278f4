"""Takes a client through many cases and says which invariants it breaks.

What a client gets wrong is blamed on what it speaks of (see `blame`), so that one mistake is told
once, under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mockllm.checking.cases.case import Case
from mockllm.checking.invariants import INVARIANTS
from mockllm.checking.judging.attribution import blame
from mockllm.checking.judging.compare import Difference, differences
from mockllm.checking.judging.running import Factory, Level, run, together
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Run

__all__ = ["Failure", "Report", "examine", "examine_bodies", "examine_client"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that a client gets wrong.

    Args:
        invariant: what it is blamed on.
        words: what differs.
        shrunk: a smaller case that shows the same, where one was looked for.
        again: whether the case, seen alone, would be blamed on something else, and only others
            show that it is the same mistake.
    """

    invariant: str
    case: Case
    words: tuple[str, ...]
    shrunk: Case | None = None
    again: bool = False

    def __str__(self) -> str:
        lines = [f"{self.case.name} breaks {self.invariant}: {INVARIANTS[self.invariant]}."]
        lines += [f"  {words}" for words in self.words]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """What came of an examination.

    Args:
        runs: how many cases were run.
        skipped: the names of the cases that could not be run at this level.
        failures: one for each case that went wrong and is not another's consequence.
    """

    runs: int
    skipped: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no case went wrong."""
        return not self.failures

    def broken(self) -> dict[str, list[Failure]]:
        """The failures by invariant, in the order in which those are listed; first those that
        show it alone, the smallest stream before the others."""
        found: dict[str, list[Failure]] = {}
        for name in INVARIANTS:
            blamed = [failure for failure in self.failures if failure.invariant == name]
            if blamed:
                found[name] = sorted(blamed, key=lambda f: (f.again, f.case.answer.size))
        return found


@dataclass(slots=True)
class _Examining:
    """What is known of a client so far."""

    judge: Callable[[Case], list[Difference]]
    plain: dict[str, list[Difference]] = field(default_factory=dict)
    wrong: list[tuple[Case, list[Difference], list[Difference]]] = field(default_factory=list)

    def look(self, case: Case) -> list[Difference]:
        """Judges a case, and its plain form if that was not seen before."""
        found = self.of(case) if case.plain is None else self.judge(case)
        if found:
            self.wrong.append((case, found, self.of(case.plain) if case.plain else []))
        return found

    def of(self, case: Case) -> list[Difference]:
        """The differences of a plain case, found once."""
        if case.name not in self.plain:
            self.plain[case.name] = self.judge(case)
        return self.plain[case.name]

    def failures(self) -> tuple[Failure, ...]:
        """One for each case that tells something."""
        return tuple(
            Failure(each.invariant, each.case, each.words, again=each.again)
            for each in blame(self.wrong)
        )


def examine(
    factory: Factory,
    cases: Iterable[Case],
    policy: Policy | None = None,
    *,
    level: Level = "payloads",
) -> Report:
    """Takes an accumulator through cases.

    Args:
        factory: makes a new probe for each stream; what it raises is a fault of the test, not
            of the client, and goes through.
        policy: how the client means to behave; default: `Policy()`.
        level: whether probes are fed decoded events or bytes.
    """
    policy = policy or Policy()
    examining = _Examining(lambda case: run(factory, case, policy, level))
    skipped: list[str] = []
    right: list[Case] = []
    runs = 0
    for case in cases:
        if level == "payloads" and case.events is None:
            skipped.append(case.name)
            continue
        runs += 1
        wrong = examining.look(case)
        if case.plain is not None:
            continue
        shared = _shared(factory, right, case, policy, level, wrong=bool(wrong))
        if shared is not None:
            # What one stream leaves to the next makes all that follows worth nothing.
            return Report(runs, tuple(skipped), (shared,))
        if not wrong:
            right.append(case)
    return Report(runs, tuple(skipped), examining.failures())


def _shared(
    factory: Factory, right: list[Case], case: Case, policy: Policy, level: Level, *, wrong: bool
) -> Failure | None:
    """Whether streams share something: a case that was right is wrong after others, or two at
    once disturb each other.

    Args:
        right: the cases that were right so far.
        wrong: whether the case is wrong as it is.
    """
    if not right:
        return None
    if not wrong:
        for each in together(factory, right[-1], case, policy, level)[:1]:
            return Failure("stage-empties", case, (each.words,))
        return None
    called = [each for each in right if each.expected.tool_calls]
    for before in (*called[-1:], right[-1]):
        found = run(factory, before, policy, level)
        if found:
            words = f"{before.name} was right, and is wrong after other streams: {found[0].words}"
            return Failure("stage-empties", before, (words,))
    return None


def examine_bodies(
    read: Callable[[object], Outcome], cases: Iterable[Case], policy: Policy | None = None
) -> Report:
    """Whether a client makes of the answer that is not streamed what it makes of the stream.

    Args:
        read: what the client makes of the JSON value of a body.
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
            words = tuple(each.words for each in found)
            failures.append(Failure("stream-equals-body", case, words))
    return Report(runs, (), tuple(failures))


def examine_client(
    client: Run, at: Callable[[Case], str], cases: Iterable[Case], policy: Policy | None = None
) -> Report:
    """Takes a whole client through cases over HTTP.

    Args:
        at: makes a case be played, and gives the base URL where it is.
    """
    policy = policy or Policy()

    def judge(case: Case) -> list[Difference]:
        return differences(case, outcome_of(client, at(case), case), policy)

    examining = _Examining(judge)
    runs = 0
    for case in cases:
        runs += 1
        examining.look(case)
    return Report(runs, (), examining.failures())


def outcome_of(client: Run, url: str, case: Case) -> Outcome:
    """What a whole client comes to; what it raises is an error that it reports."""
    try:
        return client(url, case)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return Outcome.of(errors=[error])
