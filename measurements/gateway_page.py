"""Writes the tables of docs/gateways.md from measurements/results/gateways/*.json.

python -m measurements.gateway_page
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby

from measurements.entries import RESULTS, ROOT
from measurements.fault_page import with_table
from mockllm.checking.rules import COSTS, GATEWAYS
from mockllm.conformance.gateways.presets import presets
from mockllm.conformance.results import CaseResult, Results, passes
from mockllm.conformance.results.file import read_results
from mockllm.core.errors import MockLLMError
from mockllm.core.text import quantity

PAGE = ROOT / "docs" / "gateways.md"
GATEWAY_RESULTS = RESULTS / "gateways"

_MOST_NAMES = 4
_MOST_MISTAKES = 4


def measured_gateways() -> list[Results]:
    """The results of all files, by gateway and pair.

    Raises:
        UsageError: a file is damaged.
    """
    results = map(read_results, sorted(GATEWAY_RESULTS.glob("*.json")))
    order = list(presets())
    return sorted(results, key=lambda one: (order.index(one.client.name), one.api))


def table(results: Sequence[Results]) -> str:
    """The tables, and below each what is wrong, the worst first."""
    return "\n".join(_lines(results))


def _lines(results: Sequence[Results]) -> Iterator[str]:
    for name, group in groupby(results, key=lambda measured: measured.client.name):
        preset = presets()[name]
        own = list(group)
        yield f"### {preset['title']} {own[0].client.version}"
        yield ""
        yield f"Measured on {own[0].date}. {preset['notes']}".rstrip()
        yield ""
        costs = [cost for cost in COSTS if any(_of_cost(pair, cost) for pair in own)]
        yield f"| clients, upstream | judged | right | {' | '.join(costs)} |"
        yield "|---" * (len(costs) + 3) + "|"
        for pair in own:
            right = sum(map(passes, pair.cases))
            counts = (len(_of_cost(pair, cost)) or "" for cost in costs)
            down, _, up = pair.api.partition("-")
            judged = right + sum(case.failed for case in pair.cases)
            yield f"| {down}, {up} | {judged} | {right} | {' | '.join(map(str, counts))} |"
        yield ""
        yield from _mistakes(own)
        yield ""


def _of_cost(results: Results, cost: str) -> list[CaseResult]:
    return [case for case in results.cases if case.failed and case.cost == cost]


def _mistakes(results: Sequence[Results]) -> Iterator[str]:
    """What is wrong under each rule, over all pairs."""
    for rule in GATEWAYS:
        failed = [
            (pair.api, case)
            for pair in results
            for case in pair.cases
            if case.failed and case.group == rule
        ]
        if not failed:
            continue
        pairs = list(dict.fromkeys(api for api, _ in failed))
        shown = ", ".join(pairs[:_MOST_NAMES])
        more = f" and {len(pairs) - _MOST_NAMES} more" if len(pairs) > _MOST_NAMES else ""
        yield f"- `{rule}` is broken in {quantity(len(failed), 'case')} over {shown}{more}:"
        texts: dict[str, list[str]] = {}
        for _, case in failed:
            texts.setdefault(_plain(case.differences[0]), []).append(case.played)
        ranked = sorted(texts.items(), key=lambda item: -len(item[1]))
        for text, cases in ranked[:_MOST_MISTAKES]:
            again = f" (and {len(cases) - 1} more)" if len(cases) > 1 else ""
            yield f"  - `{cases[0]}`{again}: {text}"
        if len(ranked) > _MOST_MISTAKES:
            yield f"  - {quantity(len(ranked) - _MOST_MISTAKES, 'more difference')}"


def _plain(text: str) -> str:
    """A difference in one line of a table of Markdown."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= 240 else f"{line[:237]}..."


def main() -> int:
    """Writes the page; the exit code."""
    try:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(with_table(text, table(measured_gateways())), encoding="utf-8")
    except (OSError, MockLLMError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
