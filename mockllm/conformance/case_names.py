"""The cases of names (`cases.build.case_name` makes them), the choice of cases by patterns, and the
commands for a case."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from mockllm.checking.cases.compile import CaseSpec, case_specs
from mockllm.checking.cases.scenarios import Variation
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean
from mockllm.play.quirks import find
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS

T = TypeVar("T")

_NUMBERS = re.compile(r"(split|cut|group|comments)(\d+(?:-\d+)*)")


def parse_variation(word: str) -> Variation:
    """The inverse of `str`."""
    fields: dict[str, Any] = {}
    for item in word.split(",") if word else ():
        numbered = _NUMBERS.fullmatch(item)
        if numbered is not None:
            sizes = tuple(map(int, numbered[2].split("-")))
            fields[numbered[1]] = sizes if numbered[1] in ("split", "cut") else sizes[0]
        elif item in ("bom", "multiline"):
            fields[item] = True
        elif item in ("lf", "cr", "crlf"):
            fields["line_end"] = item
        else:
            raise UsageError(f"{item!r} is no variation, such as split3-1, group2, crlf or cut12")
    return Variation(**fields)


def spec_named(name: str, scenarios: Iterable[Scenario] = ()) -> CaseSpec:
    """The case of a name, not compiled.

    Args:
        scenarios: of the user; those of the kit and the samples of quirks are known.
    """
    rest, _, variation = name.partition("~")
    rest, _, quirk = rest.partition("+")
    api, _, scenario = rest.partition("/")
    if api not in PROTOCOLS:
        raise UsageError(f"the case {name!r} begins with no API; there are: {', '.join(PROTOCOLS)}")
    if quirk:
        find(quirk)
    known = {spec.scenario.name: spec.scenario for spec in case_specs(api, scenarios, variations=0)}
    if scenario not in known:
        hint = did_you_mean(scenario, known, "--scenarios names more of them", most=3)
        raise UsageError(f"there is no case {name!r}: no scenario {scenario!r} over {api}; {hint}")
    return CaseSpec(name, known[scenario], api, parse_variation(variation), quirk)


# Choosing by patterns


def choose(
    items: Sequence[T],
    patterns: Iterable[str],
    names: Callable[[T], Iterable[str]],
    nouns: str,
    option: str = "--only",
) -> list[T]:
    """The items that any pattern of an option names; all of them without patterns.

    Args:
        names: of an item, the whole one first.
        nouns: what such names are, for the message.

    Raises:
        UsageError: a pattern names nothing.
    """
    if not patterns:
        return list(items)
    named = [tuple(names(item)) for item in items]
    numbers: set[int] = set()
    for pattern in patterns:
        matching = [n for n, one in enumerate(named) if any(fnmatchcase(x, pattern) for x in one)]
        if not matching:
            raise UsageError(f"{option} {pattern}: {_nothing(pattern, named, nouns)}")
        numbers.update(matching)
    return [items[number] for number in sorted(numbers)]


def _nothing(pattern: str, named: Sequence[Sequence[str]], nouns: str) -> str:
    known = list(dict.fromkeys(name for names in named for name in names))
    hint = did_you_mean(pattern, known, f"such as {known[0]}", most=3)
    if "~" in pattern:
        hint += "; cases with ~ need --variations and --seed as they were"
    return f"there is no such {nouns} among {len(named)}; {hint}"


# The command lines that show a case again


@dataclass(frozen=True, slots=True)
class Setting:
    """The attachment of a client and the choice of cases, as words of the command line.

    Args:
        command: of the runner; () where its answers came from a file.
        options: of the command, `--api` among them, without those that choose single cases.
        scenarios: paths of the user's scenarios.
        name: of the command of mockllm.
    """

    command: tuple[str, ...]
    options: tuple[str, ...]
    scenarios: tuple[str, ...] = ()
    name: str = "check"


def check_command(setting: Setting, case: str) -> str:
    """The line that judges a case again."""
    paths = _paths(setting.scenarios)
    words = ["mockllm", setting.name, *setting.options, *paths, "--only", case]
    return shlex.join([*words, *(("--", *setting.command) if setting.command else ())])


def show_command(setting: Setting, case: str) -> str:
    """The line that prints the bytes of a case."""
    return shlex.join(["mockllm", "show", case, *_paths(setting.scenarios)])


def _paths(scenarios: Sequence[str]) -> list[str]:
    return [word for path in scenarios for word in ("--scenarios", path)]
