"""Takes a client through many cases and says which invariants it breaks.

What a client gets wrong is blamed on what it speaks of: where the plain form of an answer goes
wrong, on what differs; where only a variation or a quirk of it does, on what that tests. So one
mistake is told once, under its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from mockllm.checking.case import Case
from mockllm.checking.compare import Difference, differences
from mockllm.checking.invariants import INVARIANTS
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Run
from mockllm.checking.running import Factory, Level, run, together

__all__ = ["Failure", "Report", "examine", "examine_bodies", "examine_client"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that a client gets wrong.

    Args:
        invariant: what it is blamed on.
        words: what differs.
        shrunk: a smaller case that shows the same, where one was looked for.
    """

    invariant: str
    case: Case
    words: tuple[str, ...]
    shrunk: Case | None = None

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
        """The failures by invariant, in the order in which those are listed; the smallest
        stream first."""
        found: dict[str, list[Failure]] = {}
        for name in INVARIANTS:
            blamed = [failure for failure in self.failures if failure.invariant == name]
            if blamed:
                found[name] = sorted(blamed, key=lambda failure: failure.case.answer.size)
        return found


@dataclass(slots=True)
class _Examining:
    """What is known of a client so far: what it makes of the plain cases."""

    judge: Callable[[Case], list[Difference]]
    plain: dict[str, list[Difference]] = field(default_factory=dict)

    def of(self, case: Case) -> list[Difference]:
        """The differences of a plain case, found once."""
        if case.name not in self.plain:
            self.plain[case.name] = self.judge(case)
        return self.plain[case.name]

    def failures(self, case: Case) -> Iterator[Failure]:
        """What a case tells that its plain form does not."""
        found = self.of(case) if case.plain is None else self.judge(case)
        if not found:
            return
        known = set() if case.plain is None else {d.invariant for d in self.of(case.plain)}
        if case.plain is not None:
            found = [_blamed(case, each, plain_is_right=not known) for each in found]
        # One mistake shows in many places of one answer; it is told once.
        loudest = [each for each in found if each.invariant in _WATCHED][:1] or found[:1]
        for each in loudest:
            if each.invariant not in known:
                words = tuple(d.words for d in found if d.invariant == each.invariant)
                yield Failure(each.invariant, case, words)


_WATCHED = (
    "surface-once",
    "delta-is-fragment",
    "delta-first",
    "stage-empties",
    "input-untouched",
)
"""What is seen on the way through a stream speaks for itself, in any case."""


def _blamed(case: Case, found: Difference, *, plain_is_right: bool) -> Difference:
    if not plain_is_right or found.invariant in _WATCHED:
        return found
    return Difference(found.field, found.words, case.invariant)


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
    failures: list[Failure] = []
    skipped: list[str] = []
    runs = 0
    before: Case | None = None
    for case in cases:
        if level == "payloads" and case.events is None:
            skipped.append(case.name)
            continue
        runs += 1
        if case.plain is not None:
            failures += examining.failures(case)
            continue
        failures += examining.failures(case)
        if before is not None and not examining.of(before) and not examining.of(case):
            found = together(factory, before, case, policy, level)
            failures += _told(case, found[:1])
        before = case
    return Report(runs, tuple(skipped), tuple(failures))


def _told(case: Case, found: Iterable[Difference]) -> Iterator[Failure]:
    for each in found:
        yield Failure(each.invariant, case, (each.words,))


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
    failures: list[Failure] = []
    runs = 0
    for case in cases:
        runs += 1
        failures += examining.failures(case)
    return Report(runs, (), tuple(failures))


def outcome_of(client: Run, url: str, case: Case) -> Outcome:
    """What a whole client comes to; what it raises is an error that it reports."""
    try:
        return client(url, case)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return Outcome.of(errors=[error])
