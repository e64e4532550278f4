"""docs/maintainers/resilience-mutants.md, from what was found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mockllm.checking.rules import RESILIENCE
from tests.checking.resilience_mutants.declared import MUTANTS
from tests.checking.resilience_mutants.playing import Found

PAGE = Path(__file__).parents[3] / "docs" / "maintainers" / "resilience-mutants.md"

_HEAD = """# Mutants of a resilient client

<!-- Written by `python -m tests.checking.resilience_mutants`; do not edit. -->

{summary}

[examples/resilient_client](../../examples/resilient_client) is a client for five APIs that
survives faults. A mutant is this client with one bug. Each must be found by the rule of its row,
and must not be accused of anything that it does not do. [resilience.md](../resilience.md) describes
the rules.

`python -m tests.checking.resilience_mutants` plays the cases with faults to the client in each API,
and those of Chat Completions to each mutant. Then it writes this page. The last column has the
further rules that a bug breaks by its nature.

| rule | the mutant | found in | breaks also |
|---|---|---|---|
"""


def page(found: Mapping[str, Found], correct: Mapping[str, Found]) -> str:
    """The page.

    Args:
        found: of each mutant, by its name.
        correct: of the client without a bug, by API.
    """
    caught = [mutant for mutant in MUTANTS if mutant.rule in found[mutant.name].wrong]
    falsely = [
        mutant for mutant in MUTANTS if set(found[mutant.name].wrong) - {mutant.rule, *mutant.also}
    ]
    judged = sum(len(names) for one in correct.values() for names in one.right.values())
    accused = sum(len(names) for one in correct.values() for names in one.wrong.values())
    summary = (
        f"{len(MUTANTS)} mutants: {len(caught)} are found by the right rule, {len(falsely)} are "
        f"accused of something else, too.\nThe client without a bug is judged {judged:,} times, in "
        f"{len(correct)} APIs, and is accused {accused} times."
    )
    rows = [
        f"| `{mutant.rule}` | {mutant.bug} | {_case(found[mutant.name], mutant.rule)} "
        f"| {_list(mutant.also)} |"
        for rule in RESILIENCE
        for mutant in MUTANTS
        if mutant.rule == rule
    ]
    return _HEAD.format(summary=summary) + "\n".join(rows) + "\n"


def _case(found: Found, rule: str) -> str:
    """The first of the cases that show the bug, without the API."""
    names = found.wrong.get(rule)
    return names[0].partition("/")[2] if names else "**not found**"


def _list(rules: frozenset[str]) -> str:
    return ", ".join(f"`{rule}`" for rule in RESILIENCE if rule in rules)
