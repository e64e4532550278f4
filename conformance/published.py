"""Results without what was not reproduced outside mockllm: python -m conformance.published FILE...

An accusation against a client is published only after a server without mockllm has shown it, too.
Which ones these are is in reproduced.toml.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

from conformance.entries import FAULT_RESULTS, ROOT
from mockllm.conformance.fault_results import FaultCaseResult, RuleResult
from mockllm.conformance.results import Results
from mockllm.conformance.results_file import read_results, write_results

__all__ = ["WITHHELD", "published"]

WITHHELD = "a mistake was seen, and is not published before it is reproduced outside mockllm"
"""Why a rule is not judged in a published file."""


@cache
def _reproduced() -> dict[str, frozenset[str]]:
    text = (ROOT / "conformance" / "reproduced.toml").read_text()
    return {name: frozenset(rules) for name, rules in tomllib.loads(text).items()}


def published(results: Results) -> Results:
    """The results of a client, with the reproduced mistakes only."""
    known = _reproduced().get(results.client.name, frozenset())
    return replace(
        results,
        rules=tuple(_rule(one, known) for one in results.rules),
        faults=tuple(_case(one, known) for one in results.faults),
    )


def _rule(rule: RuleResult, known: frozenset[str]) -> RuleResult:
    if rule.verdict != "wrong" or rule.rule in known:
        return rule
    return replace(rule, verdict="not judged", reason=WITHHELD, wrong=0, cases=())


def _case(case: FaultCaseResult, known: frozenset[str]) -> FaultCaseResult:
    wrong = tuple(one for one in case.wrong if one.rule in known)
    withheld = {one.rule: WITHHELD for one in case.wrong if one.rule not in known}
    changed = replace(
        case,
        wrong=wrong,
        rules=tuple(one for one in case.rules if one not in withheld),
        not_judged={**case.not_judged, **withheld},
        unconfirmed=(),
    )
    if wrong:
        return changed
    return replace(changed, scenario="", faults=(), log=(), actual={}, reproduce=())


def main(files: list[str]) -> int:
    """Writes the published form of full results into conformance/results/faults."""
    for name in files:
        path = Path(name)
        write_results(published(read_results(path)), FAULT_RESULTS / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
