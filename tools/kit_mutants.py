"""Which mistakes of accumulators does the kit find?

`python -m tools.kit_mutants` runs each mutant of `tests/checking/mutants` (a correct accumulator
with one mistake) through the cases of `AccumulatorSuite`, and prints for each kind of mistake and
each API how many are caught, tolerated and escaped. It runs the five correct accumulators as well,
and exits with 1 if the kit accuses one of them.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import (
    INVARIANTS,
    ByteProbe,
    Case,
    Outcome,
    Policy,
    Probe,
    Trouble,
    cases,
    examine,
)
from mockllm.checking.cases.case import Level
from mockllm.checking.judging.compare import judge
from mockllm.checking.judging.running import drive, feed_arguments
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.model import Api
from tests.checking.mutants import FAMILIES, MUTANTS, Mutant
from tests.checking.mutants.altered import forget_streams

PAGE = Path(__file__).parents[1] / "docs" / "maintainers" / "mutants.md"

Verdict = Literal["caught", "tolerated", "escaped"]
_Factory = Callable[[], Probe | ByteProbe]

VERDICTS: tuple[Verdict, ...] = ("caught", "tolerated", "escaped")
VARIATIONS = 4
"""Ways of cutting each answer; a suite plays 25, which find no other mutant and take longer."""

_PORTION = 40
"""Mutants that one process runs at a time; each process compiles the cases that it needs."""

_LEVELS: tuple[Level, ...] = ("payloads", "bytes")
_APIS = tuple(api for api in REFERENCES if any(mutant.api == api for mutant in MUTANTS))


@dataclass(frozen=True, slots=True)
class Result:
    """What the kit reports for one mutant.

    Args:
        verdict: `caught` if it is accused; `tolerated` if its outcomes differ from the correct ones
            only where the kit accepts several; else `escaped`.
        reported: the invariants that the report names.
        detail: the first failure, or why there is none.
    """

    mutant: Mutant
    verdict: Verdict
    reported: frozenset[str]
    detail: str

    @property
    def rightly_named(self) -> bool:
        """Whether a caught mutant is accused of what it breaks, and of nothing else."""
        return self.verdict != "caught" or self.reported == self.mutant.breaks


@cache
def material(api: Api, level: Level) -> tuple[Case, ...]:
    """The cases of `AccumulatorSuite` with its defaults, but fewer variations."""
    scenarios = load([shipped_scenarios()])
    return tuple(cases(api, scenarios, variations=VARIATIONS, level=level))


def result_of(mutant: Mutant, found: Sequence[Case]) -> Result:
    """The result of a mutant on these cases."""
    forget_streams()
    report = examine(mutant.make, found, mutant.policy, level=mutant.level)
    broken = report.broken()
    if broken:
        first = str(next(iter(broken.values()))[0])
        return Result(mutant, "caught", frozenset(broken), first)
    verdict, detail = _unnoticed(mutant, found)
    return Result(mutant, verdict, frozenset(), detail)


# Mutants that are not accused


def _unnoticed(mutant: Mutant, found: Iterable[Case]) -> tuple[Verdict, str]:
    """Whether a mutant that is not accused is tolerated or has escaped, and why."""
    tolerated = ""
    differing: list[str] = []
    for case in found:
        if mutant.level == "payloads" and case.events is None:
            continue
        got = _outcome(mutant.make, case, mutant.level)
        correct = _correct(mutant, case)
        if got == correct:
            continue
        judgement = judge(case, got, mutant.policy)
        if judgement.differences:
            differing.append(f"{case.name} ({judgement.verdict})")
        elif judgement.verdict == "tolerated" or case.reaction == "either":
            tolerated = tolerated or f"{case.name} accepts several outcomes."
        elif _without_wording(got) == _without_wording(correct):
            tolerated = tolerated or f"{case.name} accepts any error."
        else:
            differing.append(f"{case.name} ({judgement.verdict})")
    if differing:
        return "escaped", f"Differs in {len(differing)} cases; the first is {differing[0]}."
    if tolerated:
        return "tolerated", tolerated
    return "escaped", "Its final outcome is right in every case."


def _without_wording(outcome: Outcome) -> Outcome:
    return replace(outcome, errors=outcome.errors and (Trouble(""),))


def _correct(mutant: Mutant, case: Case) -> Outcome:
    """The outcome of the correct accumulator of an API, with the policy of a mutant."""
    policy = mutant.policy
    correct = _outcome(partial(_reference, mutant.api, mutant.level, policy), case, mutant.level)
    if policy.unknown_tool == "keep" or not case.tools:
        return correct
    offered = {tool.name for tool in case.tools}
    known = tuple(call for call in correct.tool_calls if call.name in offered)
    return replace(correct, tool_calls=known)


def _outcome(factory: _Factory, case: Case, level: Level) -> Outcome:
    """The outcome of a client, whose exceptions count as errors that it reports."""
    probe: Any = factory()
    if hasattr(probe, "offer"):
        probe.offer(tuple(tool.name for tool in case.tools))
    return drive(probe, feed_arguments(case, level))


def _reference(api: Api, level: Level, policy: Policy) -> Probe | ByteProbe:
    """The correct accumulator of an API, with a policy."""
    choices: dict[str, Any] = {"malformed": policy.malformed}
    if policy.missing_id != "none":
        choices["missing_id"] = policy.missing_id
    if level == "bytes":
        return ReferenceBytes(api, **choices)
    return REFERENCES[api](**choices)


def accused_references(api: Api, level: Level, found: Sequence[Case]) -> Iterator[str]:
    """The accusations of the correct accumulator, of which there should be none."""
    for policy in (Policy(), Policy(intermediate=True)):
        report = examine(partial(_reference, api, level, policy), found, policy, level=level)
        for failure in report.failures:
            watched = ", watched" if policy.intermediate else ""
            yield f"the correct accumulator of {api} ({level}{watched}): {failure}"


# Many mutants


def _run_group(group: Sequence[Mutant], *, first_only: bool) -> list[Result]:
    """The results of mutants of one API and level."""
    found = material(group[0].api, group[0].level)
    results: list[Result] = []
    for mutant in group:
        results.append(result_of(mutant, found))
        if first_only and results[-1].verdict == "escaped":
            break
    return results


def _accusations(group: Sequence[Mutant]) -> list[str]:
    api, level = group[0].api, group[0].level
    return list(accused_references(api, level, material(api, level)))


def _groups(mutants: Iterable[Mutant]) -> list[list[Mutant]]:
    """The mutants by API and level."""

    def key(mutant: Mutant) -> tuple[int, int]:
        return _APIS.index(mutant.api), _LEVELS.index(mutant.level)

    return [list(found) for _, found in groupby(sorted(mutants, key=key), key)]


def _portions(groups: Iterable[Sequence[Mutant]]) -> Iterator[Sequence[Mutant]]:
    """The groups in portions, so that all processes have work until the end."""
    for group in groups:
        for start in range(0, len(group), _PORTION):
            yield group[start : start + _PORTION]


# Reports


def _share(results: Sequence[Result]) -> str:
    """How many mutants are caught, and the share of those that are not tolerated."""
    count = Counter(result.verdict for result in results)
    judged = count["caught"] + count["escaped"]
    share = f" ({count['caught'] / judged:.1%})" if judged else ""
    return (
        f"{len(results)} mutants: {count['caught']} of {judged} caught{share}, "
        f"{count['tolerated']} tolerated, {count['escaped']} escaped"
    )


def table(results: Sequence[Result]) -> str:
    """A Markdown table: for each family and API, the numbers caught, tolerated and escaped."""
    rows = [["family", *_APIS, "all"]]
    families = [name for name in FAMILIES if any(r.mutant.family == name for r in results)]
    for family in families:
        rows.append([family, *_cells([r for r in results if r.mutant.family == family])])
    rows.append(["all", *_cells(results)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _cells(results: Sequence[Result]) -> Iterator[str]:
    for api in (*_APIS, None):
        count = Counter(r.verdict for r in results if api in (r.mutant.api, None))
        yield " / ".join(str(count[verdict]) for verdict in VERDICTS) if count else ""


def _escaped(results: Iterable[Result], verdict: Verdict) -> list[str]:
    """A line for each mutant with this verdict: its mistake, and why it is not accused."""
    return [
        f"{result.mutant} ({result.mutant.family}): {result.mutant.mistake} "
        f"{result.mutant.excuse or result.detail}"
        for result in results
        if result.verdict == verdict
    ]


def _wrongly_named(results: Iterable[Result]) -> list[str]:
    """A line for each caught mutant that is accused of something else than it breaks."""
    return [
        f"{result.mutant}: declared {_names(result.mutant.breaks)}, "
        f"reported {_names(result.reported)}"
        for result in results
        if not result.rightly_named
    ]


def _names(invariants: Iterable[str]) -> str:
    return ", ".join(sorted(invariants, key=list(INVARIANTS).index))


def _lists(results: Sequence[Result]) -> dict[str, list[str]]:
    return {
        "Escaped": _escaped(results, "escaped"),
        "Tolerated": _escaped(results, "tolerated"),
        "Caught under another name": _wrongly_named(results),
    }


def page(results: Sequence[Result]) -> str:
    """docs/maintainers/mutants.md."""
    tested = [
        "# Mutants of accumulators",
        f"{_share(results)}. The correct accumulators of all APIs are accused of nothing.",
        "A mutant is a correct accumulator with one mistake that a public project has made. Its "
        "row in `tests/checking/mutants` describes the mistake and names projects that made "
        "it. `python -m tools.kit_mutants` runs each mutant through the cases that "
        "`AccumulatorSuite` plays, and writes this page. A mutant is *caught* if the kit accuses "
        "it. It is *tolerated* if its outcomes differ from the correct ones only where the kit "
        "accepts several outcomes. Otherwise it has *escaped*.",
        "Each cell has the numbers caught / tolerated / escaped.",
        table(results),
        "The families:",
        "\n".join(f"- {name}: {mistake}." for name, mistake in FAMILIES.items()),
    ]
    for title, lines in _lists(results).items():
        if lines:
            tested += [f"## {title}", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(tested) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; the exit code."""
    options = _parser().parse_args(argv)
    chosen = [
        mutant
        for mutant in MUTANTS
        if options.api in (None, mutant.api) and mutant.family.startswith(options.family)
    ]
    if not chosen:
        print(f"no mutant of family {options.family!r}; there are: {', '.join(FAMILIES)}")
        return 2
    run = partial(_run_group, first_only=options.first)
    groups = _groups(chosen)
    with ProcessPoolExecutor(options.jobs) as pool:
        accusations = pool.map(_accusations, groups)
        results = [result for found in pool.map(run, _portions(groups)) for result in found]
        accused = [accusation for found in accusations for accusation in found]
    for title, lines in _lists(results).items():
        if lines:
            print(f"{title}:", *lines, sep="\n  ", end="\n\n")
    print(table(results), _share(results), sep="\n\n")
    if options.markdown:
        options.markdown.write_text(page(results), encoding="utf-8")
    print(*accused, sep="\n")
    return 1 if accused or (options.first and _escaped(results, "escaped")) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.kit_mutants", description=__doc__)
    parser.add_argument("--api", choices=_APIS, help="only mutants of this API")
    parser.add_argument("--family", default="", help="only families that begin so")
    parser.add_argument(
        "-x",
        dest="first",
        action="store_true",
        help="stop an API at its first mutant that escapes, and exit with 1",
    )
    parser.add_argument("--markdown", type=Path, help=f"also write the page; it belongs at {PAGE}")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="processes; default: one a processor"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
