"""Results without what was not reproduced outside mockllm: python -m conformance.published FILE...

An accusation against a client is published only after a server without mockllm has shown it, too.
Which ones these are is in reproduced.toml.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from pathlib import Path

from conformance.entries import FAULT_RESULTS, ROOT
from mockllm.conformance.results import CaseResult, Play, Results
from mockllm.conformance.results.file import read_results, write_results

__all__ = ["WITHHELD", "published"]

WITHHELD = "a mistake was seen, and is not published before it is reproduced outside mockllm"
"""Why a rule is not judged in a published file."""


@cache
def _reproduced() -> dict[str, frozenset[str]]:
    text = (ROOT / "conformance" / "reproduced.toml").read_text()
    return {name: frozenset(rules) for name, rules in tomllib.loads(text).items()}


def published(results: Results) -> Results:
    """The results of a client, with the reproduced mistakes only.

    A rule with another mistake is judged in no case: that it is kept in the others says nothing.
    """
    known = _reproduced().get(results.client.name, frozenset())
    broken = {case_.group for case_ in results.cases if case_.failed}
    cases = tuple(_line(case_, broken - known) for case_ in results.cases)
    shown = {case_.played for case_ in cases if case_.failed}
    plays = {
        name: play if name in shown else Play(play.title) for name, play in results.plays.items()
    }
    return replace(results, cases=cases, plays=plays)


def _line(case: CaseResult, withheld: AbstractSet[str]) -> CaseResult:
    if case.group not in withheld or case.verdict not in ("right", "wrong"):
        return replace(case, unconfirmed="")
    return CaseResult(case.case, case.group, "not judged", reaction=case.reaction, reason=WITHHELD)


def main(files: list[str]) -> int:
    """Writes the published form of full results into conformance/results/faults."""
    for name in files:
        path = Path(name)
        write_results(published(read_results(path)), FAULT_RESULTS / path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
