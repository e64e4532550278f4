"""Results as lines of a terminal: a line for each group, the worst mistakes, and what was not
judged. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from mockllm.checking.rules import CASE_RULES, COST_MEANINGS, promise, severity
from mockllm.conformance.case_names import Setting, show_command
from mockllm.conformance.results import CaseResult, Play, Results, log_line, passes, rule_verdict
from mockllm.conformance.results.known import Standing
from mockllm.core.text import quantity, shorten
from mockllm.play.quirks.base import TOPICS

_WORST = 10
_WIDEST = 150
_MOST_DIFFERENCES = 3

_MOST_REQUESTS = 8
_MOST_NAMES = 6


def exit_code(results: Results, standing: Standing) -> int:
    """0 if all is right or as listed, 1 for mistakes, 2 if not all cases could be judged."""
    if not standing.good:
        return 1
    return 2 if results.stopped or _is_unknown(results) else 0


def _is_unknown(results: Results) -> bool:
    """Whether nothing was judged, the adapter failed, or a rule of resilience was not judged."""
    judged = any(case.failed or passes(case) or case.differences for case in results.cases)
    adapter = any(case.verdict == "adapter" for case in results.cases)
    cut = any(case.verdict == "not judged" and "@" in case.played for case in results.cases)
    rules = any(rule_verdict(cases) == "not judged" for cases in results.rules.values())
    return not judged or adapter or cut or rules


def terminal_lines(results: Results, standing: Standing) -> Iterator[str]:
    """The lines of a report."""
    yield _title(results)
    yield ""
    yield from _table(results)
    yield from _worst(standing.new, results)
    yield from _known_failures(standing)
    yield from _not_judged(results)
    yield from _mistakes_seen_once(results)


def _title(results: Results) -> str:
    client = results.client
    name = " ".join(filter(None, (client.name, client.version)))
    language = f" ({client.language})" if client.language else ""
    cases = quantity(len(results.cases), "case")
    return f"{name}{language} over {results.api}, level {results.level}: {cases}"


def _table(results: Results) -> Iterator[str]:
    groups = results.groups
    order = {name: number for number, name in enumerate(("plain", "cuts", *TOPICS, *CASE_RULES))}
    rows: list[tuple[str, ...]] = [("GROUP", "CASES", "RIGHT", "WRONG", "OTHER", "WORST MISTAKE")]
    for group in sorted(groups, key=lambda name: order.get(name, len(order))):
        cases = groups[group]
        right, wrong = sum(map(passes, cases)), sum(case.failed for case in cases)
        other = len(cases) - right - wrong
        counts = (str(number or "") for number in (len(cases), right, wrong, other))
        rows.append((group, *counts, results.worst(group) or ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        numbers = (text.rjust(width) for text, width in zip(row[1:5], widths[1:5], strict=True))
        yield "  ".join((row[0].ljust(widths[0]), *numbers, row[5])).rstrip()
    yield from _other(results.cases)


def _other(cases: Sequence[CaseResult]) -> Iterator[str]:
    """The counts of the column OTHER."""
    rest = [case for case in cases if not (case.failed or passes(case))]
    counts = Counter(map(_why_other, rest))
    if counts:
        yield "OTHER: " + ", ".join(f"{count} {why}" for why, count in counts.items())


def _why_other(case: CaseResult) -> str:
    if case.verdict == "adapter":
        return "raised by the adapter"
    if case.verdict in ("not judged", "not applicable", "non-strict", "informational"):
        return case.verdict
    return "wrong in their plain form, too" if case.baseline else "allowed by the policy"


def _worst(new: Sequence[CaseResult], results: Results) -> Iterator[str]:
    """The worst mistakes, each once: variants and samples of a quirk are one mistake, and so are
    the cases in which a rule of resilience is broken."""
    mistakes: dict[tuple[str, str, str], list[CaseResult]] = {}
    for case in worst_first(new):
        topic = case.group if case.group == "cuts" or case.group in CASE_RULES else case.case
        about = case.quirk.partition(":")[0] or topic
        mistakes.setdefault((case.cost or "", about, case.invariant), []).append(case)
    if not mistakes:
        return
    yield ""
    yield f"MISTAKES: {len(mistakes)}, in {quantity(len(new), 'case')}" + (
        f"; the worst {_WORST}:" if len(mistakes) > _WORST else ""
    )
    cost = None
    for cases in islice(mistakes.values(), _WORST):
        first = cases[0]
        if first.cost != cost:
            cost = first.cost
            yield f"{cost}: {COST_MEANINGS[cost or 'loud failure']}"
        yield from mistake_lines(first, cases[1:], results.plays)
    plain = next((case.case for case in new if case.group not in CASE_RULES), "")
    if plain:
        yield f"To see the bytes: {show_command(Setting((), ()), plain)}"


def worst_first(mistakes: Iterable[CaseResult]) -> list[CaseResult]:
    """Mistakes with the worst cost first; an empty stream last of those that were cut, since nearly
    every other prefix says more."""
    return sorted(mistakes, key=_severity)


def _severity(case: CaseResult) -> tuple[int, bool, bool]:
    empty = case.group in CASE_RULES and case.stream is not None and not any(case.stream.writes)
    return severity(case.cost), "~" in case.case, empty


def broken_rule_lines(rule: str, results: Results) -> Iterator[str]:
    """The mistakes of a client under a rule of resilience."""
    first, *more = worst_first(case for case in results.rules[rule] if case.failed)
    return mistake_lines(first, more, results.plays)


def summary_lines(results: Results) -> Iterator[str]:
    """The counts of cases that were judged and that were not, without the mistakes."""
    yield _title(results)
    yield from _not_judged(results)
    yield from _mistakes_seen_once(results)


def mistake_lines(
    case: CaseResult, more: Sequence[CaseResult], plays: Mapping[str, Play]
) -> Iterator[str]:
    """A mistake of a client.

    Args:
        more: the other cases in which it makes the same one.
        plays: see `Results`.
    """
    also = f" (and {len(more)} more like it)" if more else ""
    yield f"  {case.case}{also}"
    if case.group in CASE_RULES:
        yield f"    {case.group}: {promise(case.group)}"
    texts = [case.exception] if case.exception else []
    texts += [text for text in case.differences if not case.exception or case.exception not in text]
    for text in texts[:_MOST_DIFFERENCES]:
        yield f"    {_short(text)}"
    yield from (f"    {line}" for line in _play_lines(case, plays))
    if case.group in CASE_RULES:
        yield from _others(more)
        yield from (f"    again: {line}" for line in case.reproduce[:1])


def _play_lines(case: CaseResult, plays: Mapping[str, Play]) -> Iterator[str]:
    """The events of a case with a fault, and the log of its connections."""
    play = plays.get(case.played)
    if play is None:
        return
    yield play.title
    yield from (f"  {log_line(entry)}" for entry in play.log[:_MOST_REQUESTS])
    if len(play.log) > _MOST_REQUESTS:
        yield f"  and {len(play.log) - _MOST_REQUESTS} more requests"


def _others(more: Sequence[CaseResult]) -> Iterator[str]:
    """The names of further cases in which a rule is broken."""
    if more:
        names = ", ".join(other.played for other in more[:_MOST_NAMES])
        rest = len(more) - _MOST_NAMES
        yield f"    also in {names}" + (f" and {rest} more" if rest > 0 else "")


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _WIDEST, keep=_WIDEST - 41, tail=40)


def _known_failures(standing: Standing) -> Iterator[str]:
    """The standing of the list of failing cases, and those that pass although they are on it."""
    if standing.listed or standing.flaky:
        yield ""
        known, flaky = len(standing.listed), len(standing.flaky)
        yield f"KNOWN: {known} failing as listed, {flaky} of the flaky ones failing"
    if standing.passing:
        yield ""
        yield "PASSING, and on the list of failing cases; take them off the list, or use --update:"
        for case in standing.passing:
            yield f"  {case.case}"


def _not_judged(results: Results) -> Iterator[str]:
    lines = list(_reasons(results))
    if lines:
        yield ""
        yield "NOT JUDGED"
        yield from (f"  {line}" for line in lines)


def _reasons(results: Results) -> Iterable[str]:
    if results.stopped:
        yield f"the remaining cases: {results.stopped}"
    yield from results.arguments.get("outside", ())
    fields = Counter(name for case in results.cases for name in case.not_judged)
    for name, count in fields.most_common():
        cases = quantity(count, "case")
        yield f"{name} in {cases}: the client has no place for it, or the policy ignores it"
    unjudged = (case for case in results.cases if case.verdict in ("not judged", "not applicable"))
    reasons = Counter(map(_reason, unjudged))
    for reason, count in reasons.most_common():
        yield f"{quantity(count, 'case')}: {reason}"
    adapter = [case for case in results.cases if case.verdict == "adapter"]
    if adapter:
        yield f"{quantity(len(adapter), 'case')}, {adapter[0].case} first: {adapter[0].reason}"


def _reason(case: CaseResult) -> str:
    """Why there is no verdict; of a rule of resilience, with its name."""
    rule = f"{case.group}: " if case.group in CASE_RULES else ""
    apart = "does not apply: " if case.verdict == "not applicable" else ""
    return f"{rule}{apart}{case.reason}"


def _mistakes_seen_once(results: Results) -> Iterator[str]:
    once = [case for case in results.cases if case.unconfirmed]
    if once:
        yield ""
        yield "NOT SEEN AGAIN when it was played again, so not counted"
        yield from (f"  {case.case}: {_short(case.unconfirmed)}" for case in once)
