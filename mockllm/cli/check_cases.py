"""Which cases `mockllm check` runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import cast

import click

from mockllm.checking.cases.case import Case
from mockllm.cli.check_options import CheckOptions
from mockllm.cli.options.common import read_scenarios
from mockllm.conformance.case_names import name_of
from mockllm.conformance.kept_cases import kept_cases
from mockllm.conformance.pool import Level
from mockllm.errors import UsageError

__all__ = ["all_cases", "chosen", "names_of"]


def all_cases(options: CheckOptions) -> list[Case]:
    """The cases of the scenarios, whether they are chosen or not."""
    return kept_cases(
        options.api,
        read_scenarios(options.paths),
        variations=options.variations,
        quirks=not options.no_quirks,
        seed=options.seed,
        level=cast("Level", options.level),
        report=lambda line: click.echo(f"mockllm: {line}", err=True),
    )


def chosen(cases: Sequence[Case], patterns: Iterable[str]) -> list[Case]:
    """The cases that any pattern names: the case, its quirk, or its quirk with the variant.

    Raises:
        UsageError: a pattern names none.
    """
    if not patterns:
        return list(cases)
    cases = [*_plain_forms(cases), *cases]
    found: set[int] = set()
    for pattern in patterns:
        matching = [n for n, case in enumerate(cases) if _matches(case, pattern)]
        if not matching:
            raise UsageError(_nothing(pattern, cases))
        found.update(matching)
    return [cases[number] for number in sorted(found)]


def names_of(cases: Sequence[Case]) -> tuple[str, ...]:
    """The names that results may have: those of the cases, and of their plain forms."""
    return tuple(map(name_of, (*cases, *_plain_forms(cases))))


def _plain_forms(cases: Sequence[Case]) -> list[Case]:
    """The plain forms that are no cases themselves: those of the samples of quirks."""
    listed = {name_of(case) for case in cases}
    forms = {name_of(case.plain): case.plain for case in cases if case.plain is not None}
    return [form for name, form in forms.items() if name not in listed]


def _matches(case: Case, pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in _names(case))


def _names(case: Case) -> tuple[str, ...]:
    name = name_of(case)
    names = (name, name.partition("/")[2], case.quirk, case.quirk.partition(":")[0])
    return tuple(filter(None, names))


def _nothing(pattern: str, cases: Sequence[Case]) -> str:
    names = list(dict.fromkeys(name for case in cases for name in _names(case)))
    near = get_close_matches(pattern, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`mockllm quirks` lists the quirks"
    if "~" in pattern:
        hint += "; cases with ~ need --variations and --seed as they were"
    return f"--only {pattern}: there is no such case or quirk among {len(cases)} cases; {hint}"
