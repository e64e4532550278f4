"""Lists of cases that a client is known to fail: so that a run fails for what is new alone.

A line is a pattern of case names, with `*` and `?`, and after `#` the reason. Empty lines and lines
that begin with `#` are kept as they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import filter as filter_names
from fnmatch import fnmatchcase
from pathlib import Path

from mockllm.conformance.results import CaseResult, passes
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean


@dataclass(frozen=True, slots=True)
class Known:
    """One line of a list.

    Args:
        pattern: of case names; "" for a comment or an empty line.
        reason: "" if none is given.
    """

    pattern: str
    reason: str
    text: str
    line: int = 0

    def matches(self, case: str) -> bool:
        """Whether a case is on the list by this line."""
        return bool(self.pattern) and fnmatchcase(case, self.pattern)


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list of cases."""

    path: str = ""
    lines: tuple[Known, ...] = ()

    def find(self, case: str) -> Known | None:
        """The first line that lists a case."""
        return next((line for line in self.lines if line.matches(case)), None)


def read_known(path: str | os.PathLike[str], *, missing: bool = False) -> KnownList:
    """The list in a file.

    Args:
        missing: whether the file may be missing, and is then an empty list.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        if missing:
            return KnownList(str(path))
        raise UsageError(
            f"{path}: there is no such file; `mockllm check --known-failing {path} --update` "
            "writes one"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    numbered = enumerate(text.splitlines(), 1)
    return KnownList(str(path), tuple(_line(str(path), number, one) for number, one in numbered))


def _line(path: str, number: int, text: str) -> Known:
    pattern, _, reason = (part.strip() for part in text.partition("#"))
    if len(pattern.split()) > 1:
        raise UsageError(
            f"{path}:{number}: {pattern!r} is not one pattern of case names; "
            "a reason follows after #"
        )
    return Known(pattern, reason, text, number)


def check_patterns(known: KnownList, cases: Iterable[str]) -> None:
    """Checks that each pattern lists a case.

    Args:
        cases: the names of all cases that there are, whether they are run or not.
    """
    names = list(cases)
    for line in known.lines:
        if line.pattern and not any(map(line.matches, names)):
            hint = did_you_mean(line.pattern, names, "remove the line")
            raise UsageError(
                f"{known.path}:{line.line}: there is no case {line.pattern!r} among {len(names)}; "
                f"{hint}"
            )


@dataclass(frozen=True, slots=True)
class Standing:
    """The comparison of results with the lists.

    Args:
        new: mistakes that are on no list: they fail the run.
        listed: mistakes that are known.
        flaky: mistakes of cases that are known to fail at times.
        passing: cases on the list of failing ones that pass: they fail the run, too.
    """

    new: tuple[CaseResult, ...] = ()
    listed: tuple[CaseResult, ...] = ()
    flaky: tuple[CaseResult, ...] = ()
    passing: tuple[CaseResult, ...] = ()
    failing_list: KnownList = field(default=KnownList(), repr=False)
    flaky_list: KnownList = field(default=KnownList(), repr=False)

    @classmethod
    def of(
        cls,
        cases: Iterable[CaseResult],
        failing: KnownList = KnownList(),
        flaky: KnownList = KnownList(),
    ) -> Standing:
        """The comparison of results with both lists."""
        kinds: dict[str, list[CaseResult]] = {"new": [], "listed": [], "flaky": [], "passing": []}
        for case in cases:
            known, maybe = failing.find(case.case), flaky.find(case.case)
            if case.failed:
                kinds["listed" if known else "flaky" if maybe else "new"].append(case)
            elif known and not maybe and passes(case):
                kinds["passing"].append(case)
        sorted_out = {kind: tuple(cases) for kind, cases in kinds.items()}
        return cls(**sorted_out, failing_list=failing, flaky_list=flaky)

    def reason(self, case: str) -> str:
        """Why a case is on a list; "" if it is on none, or has no reason there."""
        known = self.failing_list.find(case) or self.flaky_list.find(case)
        return known.reason if known else ""

    @property
    def good(self) -> bool:
        """Whether the results are as the lists have them."""
        return not (self.new or self.passing)


def updated_text(failing: KnownList, standing: Standing, cases: Sequence[str]) -> str:
    """The text of a list with the cases that fail, and without those that pass.

    Comments, reasons and lines of cases that did not run stay as they are. A pattern of which some
    cases pass is replaced by the others. A quirk whose cases all fail has one new line, and so does
    a scenario.

    Args:
        cases: the names of all cases that there are.
    """
    passing = {case.case for case in standing.passing}
    lines: list[str] = []
    for known in failing.lines:
        matched = [name for name in cases if known.matches(name)]
        if not known.pattern or (matched and not passing.intersection(matched)):
            lines.append(known.text)
        else:
            lines += (_list_line(name, known.reason) for name in matched if name not in passing)
    lines += _new_lines(standing, cases)
    return "".join(f"{line}\n" for line in lines)


def _new_lines(standing: Standing, cases: Sequence[str]) -> Iterator[str]:
    """Lines with the widest patterns that list nothing but cases that fail."""
    failing = {case.case for case in (*standing.new, *standing.listed)}
    covered: set[str] = set()
    for case in standing.new:
        if case.case in covered:
            continue
        found = ((pattern, filter_names(cases, pattern)) for pattern in _patterns(case.case))
        pattern, names = next(one for one in found if failing.issuperset(one[1]))
        covered.update(names)
        yield _list_line(pattern if len(names) > 1 else case.case, _reason(case))


def _patterns(case: str) -> Iterator[str]:
    """The patterns that list a case, the widest first: its quirk, the variant, the stream however
    it is cut, the case alone."""
    stream = case.partition("~")[0]
    scenario, _, quirk = stream.partition("+")
    if quirk:
        of_api = f"{scenario.partition('/')[0]}/*+"
        yield from (f"{of_api}{quirk.partition(':')[0]}*", f"{of_api}{quirk}*")
    yield from (f"{stream}*", case)


def _list_line(case: str, reason: str) -> str:
    return f"{case}  # {reason}" if reason else case


_LONGEST = 100


def _reason(case: CaseResult) -> str:
    """The difference, in a line."""
    text = case.exception or next(iter(case.differences), case.invariant)
    return " ".join(f"{case.cost}: {text}".split())[:_LONGEST]
