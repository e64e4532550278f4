"""The result of an examination: verdicts, failures, excuses, and what was not judged. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Judgement
from mockllm.checking.rules import FIELDS_OF, INVARIANTS, Verdict
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean
from mockllm.play.quirks import QUIRKS
from mockllm.scenario.part_model import frame_apis


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that a client gets wrong, and one invariant that it breaks there.

    Args:
        shrunk: a smaller case that fails in the same way, if one was searched for.
        secondary: whether other cases decided on the invariant: alone, this one would point
            elsewhere.
        exception: the client's own exception, with the place that raised it; "" if it raised none.
        at: the index of the event or read that it was raised at.
    """

    invariant: str
    case: Case
    descriptions: tuple[str, ...]
    shrunk: Case | None = None
    secondary: bool = False
    exception: str = ""
    at: int | None = None

    def __str__(self) -> str:
        lines = [self.exception] if self.exception else []
        lines.append(f"{self.case.name} breaks {self.invariant}: {INVARIANTS[self.invariant]}.")
        lines += [f"  {description}" for description in self.descriptions]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Result:
    """One case and how its outcome was judged.

    Args:
        excuse: the name in `Policy.allow` that allows the client to get it wrong; "" for none.
        reason: of the excuse, which is not needed where the verdict is `right`.
    """

    case: Case
    judgement: Judgement
    excuse: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination.

    Args:
        skipped: the names of the cases that cannot be run at this level. They are not judged.
        failures: for each case that failed, one for each invariant, unless the plain form of the
            case explains it.
        results: of every case that was run.
        plain_forms: of plain forms that fail and are no cases themselves.
        stopped: why the remaining cases were not judged; "" if all were.
    """

    results: tuple[Result, ...] = field(default=(), repr=False)
    failures: tuple[Failure, ...] = ()
    skipped: tuple[str, ...] = ()
    plain_forms: tuple[Result, ...] = field(default=(), repr=False)
    stopped: str = ""

    @property
    def runs(self) -> int:
        """The number of cases that were run."""
        return len(self.results)

    @property
    def excused(self) -> tuple[Result, ...]:
        """The results of the cases that the policy allows the client to get wrong."""
        return tuple(result for result in self.results if result.excuse)

    @property
    def good(self) -> bool:
        """Whether no case failed."""
        return not self.failures

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """The number of cases with each verdict; those that were skipped are `not judged`.

        Cases that are wrong and excused are left out: every other wrong one makes the run fail.
        """
        shown = (*self.results, *self.plain_forms)
        counts = Counter(
            result.judgement.verdict
            for result in shown
            if not (result.excuse and result.judgement.differences)
        )
        counts["not judged"] += len(self.skipped)
        return {name: count for name, count in counts.items() if count}

    @property
    def not_judged(self) -> Mapping[str, int]:
        """The fields that were not judged, each with the number of cases: the client has no place
        for them, or the policy ignores them."""
        return Counter(name for result in self.results for name in result.judgement.not_judged)

    def judges(self, invariant: str) -> bool:
        """Whether a field that an invariant is about was judged in any case."""
        fields = FIELDS_OF.get(invariant, ())
        return not fields or any(
            name not in result.judgement.not_judged
            for result in self.results
            for name in fields
            if result.case.expects(name)
        )

    @property
    def needless(self) -> tuple[str, ...]:
        """The names in `Policy.allow` whose cases are all right."""
        needed = {
            result.excuse
            for result in self.excused
            if result.judgement.verdict not in ("right", "tolerated")
        }
        names = dict.fromkeys(result.excuse for result in self.excused)
        return tuple(name for name in names if name not in needed)

    def broken(self) -> dict[str, list[Failure]]:
        """The failures of each broken invariant, in the order of `INVARIANTS`.

        Failures that are not secondary come first, then those of usual streams: without quirks, not
        written frame by frame, not cut. Of these, the smallest come first.
        """
        broken: dict[str, list[Failure]] = {}
        for name in INVARIANTS:
            failures = [failure for failure in self.failures if failure.invariant == name]
            if failures:
                broken[name] = sorted(failures, key=_rarity)
        return broken


def _rarity(failure: Failure) -> tuple[bool, bool, bool, bool, int]:
    case = failure.case
    by_hand = case.api in frame_apis(case.scenario.turns[0].for_api(case.api).reply)
    is_cut = case.plain is not None
    return failure.secondary, bool(case.quirk), by_hand, is_cut, case.answer.size


# What a policy allows


def allowed_name(case: Case, allow: Mapping[str, str]) -> str | None:
    """The name in `allow` that covers a case: its own, its quirk, or its quirk with the variant."""
    quirk = case.quirk.partition(":")[0]
    return next((name for name in (case.name, case.quirk, quirk) if name and name in allow), None)


def check_allowed(allow: Mapping[str, str], cases: Iterable[str] | None = None) -> None:
    """Checks that every name in `allow` is a quirk, a variant of one, or a case.

    Args:
        cases: the names of all cases; None: names of cases are not checked.
    """
    if not allow:
        return
    variants = {
        f"{quirk.name}:{variant.name}" for quirk in QUIRKS.values() for variant in quirk.variants
    }
    known = {*QUIRKS, *variants}
    for name in allow:
        if name in known or ("/" in name and cases is None):
            continue
        among = set(cases or ()) if "/" in name else known
        if name in among:
            continue
        hint = did_you_mean(name, sorted(among))
        raise UsageError(
            f"allow: there is no quirk or case {name!r}; {hint}{' ' if hint else ''}`mockllm "
            "list quirks` lists the quirks, and a report names its cases"
        )
