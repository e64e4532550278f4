"""The verdict of `mockllm run` on the requests that it received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.core.text import counted
from mockllm.replay.sessions.session import Exchange, Session
from mockllm.scenario.model import Scenario

_MOST_SHOWN = 20
_BAD = ("unmatched", "invalid", "unknown route", "failed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the requests were right, and the lines of the report."""

    good: bool
    lines: tuple[str, ...]


def judge(
    exchanges: Sequence[Exchange],
    sessions: Iterable[Session],
    scenarios: Mapping[str, Scenario],
    evicted: Sequence[str] = (),
    **rules: Any,
) -> Verdict:
    """Bad are requests that nothing answers or that are refused, conversation invariants that
    are broken, and turns that were not played of scenarios that were begun, in any session. A
    session that cannot be judged as a whole is reported, too.

    Args:
        evicted: the names of sessions that the server has dropped.
    """
    bad = [exchange for exchange in exchanges if exchange.outcome in _BAD]
    broken: list[str] = []
    missed: list[str] = []
    unknown = [f"session {name}: it was dropped, as there were too many" for name in evicted]
    for session in sessions:
        verification = verify(session, scenarios, **rules)
        where = "" if session.name == "default" else f" (session {session.name})"
        broken += [f"{violation}{where}" for violation in verification.violations]
        missed += [
            f"turn {index + 1} of {len(scenarios[name].turns)} of {name}{where}"
            for name, index in verification.unplayed
        ]
        unknown += [f"session {session.name}: {reason}" for reason in _not_covered(verification)]
    lines = [f"mockllm: {_summary(exchanges)}"]
    for exchange in bad[:_MOST_SHOWN]:
        lines += _problems_of(exchange)
    lines += _more(bad)
    lines += [f"  violated: {what}" for what in broken[:_MOST_SHOWN]]
    lines += _more(broken)
    lines += [f"  not played: {what}" for what in missed]
    lines += _repeated(exchanges)
    lines += [f"  verdict unknown: {what}" for what in unknown[:_MOST_SHOWN]]
    lines += _more(unknown)
    return Verdict(not (bad or broken or missed or unknown), tuple(lines))


def _repeated(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """The recordings that were played again: more requests came than were recorded. It is no
    mistake by itself; with `--once` it is an `extra-request`."""
    repeated = Counter(
        f"turn {(exchange.turn or 0) + 1} of {exchange.scenario}"
        for exchange in exchanges
        if exchange.played.repeated
    )
    for what, count in list(repeated.items())[:_MOST_SHOWN]:
        yield f"  played again: {what}, {counted(count, 'time')}; it was recorded once"
    yield from _more(list(repeated))


def _not_covered(found: Verification) -> Iterator[str]:
    if found.evicted:
        yield "it was dropped once, as there were too many; its earlier requests are not judged"
    if found.forgotten:
        yield f"its first {counted(found.forgotten, 'request')} exceeded its memory; not judged"
    if found.not_judged:
        numbers = ", ".join(map(str, found.not_judged))
        yield f"too large to be kept and judged: request {numbers}"
    for gap in found.gaps:
        yield f"requests may be missing: {gap}"
    if found.missed_faults:
        numbers = ", ".join(map(str, found.missed_faults))
        yield f"a fault did not strike, so nothing was tested by it: request {numbers}"


def _more(found: Sequence[object]) -> list[str]:
    return [f"  ... and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []


def _summary(exchanges: Sequence[Exchange]) -> str:
    count = len(exchanges)
    if not count:
        return "no request came; does the command read its base URL from the environment?"
    outcomes = Counter[str](exchange.outcome for exchange in exchanges)
    labels = {
        "played": "played",
        "error": "answered with the error that the scenario asks for",
        "unmatched": "unmatched",
        "invalid": "refused",
        "unknown route": "for an unknown route",
        "failed": "that mockllm failed on",
    }
    counts = [f"{outcomes[name]} {label}" for name, label in labels.items() if outcomes[name]]
    return f"{counted(count, 'request')}: {', '.join(counts)}"


def _problems_of(exchange: Exchange) -> Iterator[str]:
    where = (
        f" (turn {exchange.turn + 1} of {exchange.scenario})" if exchange.turn is not None else ""
    )
    first = f"  {exchange.outcome}: {exchange.received.method} {exchange.path}{where}"
    problems = [line for problem in exchange.problems for line in problem.splitlines()]
    if len(problems) == 1:
        yield f"{first}: {problems[0]}"
    else:
        yield first
        yield from (f"    {line}" for line in problems)
