"""Writes the tables of docs/gateways.md from measurements/results/gateways/*.json.

python -m measurements.gateway_page
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
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

_REPLAYED = ROOT / "docs" / "findings" / "gateways" / "replayed.json"
"""The findings that were shown without mockllm, since the cases below and the rule are there."""

_LATER_RULE = "readings-agree"
_LATER_CASES = {
    "call-at-once",
    "call-in-last",
    "calls-together",
    "end-marker",
    "end-with-last",
    "error-529",
    "keep-alive",
    "blank-fragments",
    "cited",
    "cited-body",
    "long-fragment",
    "long-fragment-body",
    "stop-sequence",
    "stop-sequence-body",
    "text-in-start",
    "usage-with-end",
    "words-unterminated",
    "request-definitions",
    "request-developer",
    "request-empty-result",
    "request-end-user",
    "request-headers",
    "request-long",
    "request-metadata",
    "request-reasoning",
    "request-redacted",
    "request-results-swapped",
    "request-signed",
    "request-strict",
    "request-systems",
    "request-user",
    "request-zero",
}
"""Cases whose mistakes are published only where they were shown without mockllm; so are those that
begin with `next-`."""

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
    shown = json.loads(_REPLAYED.read_text(encoding="utf-8"))
    places = {(one["gateway"], f"{one['down']}-{one['up']}", one["case"]) for one in shown}
    keys = {
        (pair.client.name, pair.api, *_key(case))
        for pair in results
        for case in pair.cases
        if case.failed and (pair.client.name, pair.api, _short(case)) in places
    }
    return "\n".join(_lines([_published(pair, keys) for pair in results], results))


def _published(pair: Results, keys: Container[tuple[str, ...]]) -> Results:
    """The results without later mistakes that were not shown without mockllm."""
    return replace(
        pair,
        cases=tuple(
            case
            for case in pair.cases
            if not case.failed
            or not _is_later(case)
            or (pair.client.name, pair.api, *_key(case)) in keys
        ),
    )


def _is_later(case: CaseResult) -> bool:
    name = _short(case)
    return case.group == _LATER_RULE or name in _LATER_CASES or name.startswith("next-")


def _short(case: CaseResult) -> str:
    """The name of the case that was played, without its pair."""
    return case.played.partition("/")[2]


def _key(case: CaseResult) -> tuple[str, str]:
    """The rule and the kind of mistake, the same for equal ones in several cases."""
    text = case.differences[0].partition('"')[0] if case.differences else ""
    return case.group, re.sub(r"\d+", "N", text)[:40]


def _lines(results: Sequence[Results], whole: Sequence[Results]) -> Iterator[str]:
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
        count = sum(len(pair.cases) for pair in whole if pair.client.name == name)
        if left := count - sum(len(pair.cases) for pair in own):
            lines = quantity(left, "line")
            yield f"- Left out: {lines} of later cases and rules, not shown without mockllm."
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
        texts: dict[str, tuple[str, list[str]]] = {}
        for _, case in failed:
            text = _plain(case.differences[0])
            same = re.sub(r"\d+", "N", text) if rule == _LATER_RULE else text
            _, cases = texts.setdefault(same, (text, []))
            cases.append(case.played)
        ranked = sorted(texts.values(), key=lambda item: -len(item[1]))
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
