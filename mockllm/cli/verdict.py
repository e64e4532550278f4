"""The verdict of `mockllm run` on the requests that it received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mockllm.checking.conversations.judge import verify
from mockllm.replay.session import Exchange, Session
from mockllm.scenario.model import Scenario

__all__ = ["Verdict", "judge"]

_MOST_SHOWN = 20
_BAD = ("unmatched", "invalid")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the requests were right, and the lines of the report."""

    good: bool
    lines: tuple[str, ...]


def judge(
    exchanges: Sequence[Exchange],
    sessions: Iterable[Session],
    scenarios: Mapping[str, Scenario],
) -> Verdict:
    """Bad are requests that nothing answers or that are refused, conversation invariants that
    are broken, and turns that were not played of scenarios that were begun, in any session."""
    bad = [exchange for exchange in exchanges if exchange.outcome in _BAD]
    broken: list[str] = []
    missed: list[str] = []
    for session in sessions:
        found = verify(session, scenarios)
        where = "" if session.name == "default" else f" (session {session.name})"
        broken += [f"{violation}{where}" for violation in found.violations]
        missed += [
            f"turn {index + 1} of {len(scenarios[name].turns)} of {name}{where}"
            for name, index in found.unplayed
        ]
    lines = [f"mockllm: {_summary(exchanges)}"]
    for exchange in bad[:_MOST_SHOWN]:
        lines += _problems_of(exchange)
    lines += _more(bad)
    lines += [f"  violated: {what}" for what in broken[:_MOST_SHOWN]]
    lines += _more(broken)
    lines += [f"  not played: {what}" for what in missed]
    return Verdict(not bad and not broken and not missed, tuple(lines))


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
    }
    counts = [f"{outcomes[name]} {label}" for name, label in labels.items() if outcomes[name]]
    return f"{count} request{'s' * (count > 1)}: {', '.join(counts)}"


def _problems_of(exchange: Exchange) -> Iterator[str]:
    where = (
        f" (turn {exchange.turn + 1} of {exchange.scenario})" if exchange.turn is not None else ""
    )
    yield f"  {exchange.outcome}: {exchange.method} {exchange.path}{where}"
    for problem in exchange.problems:
        for line in problem.splitlines():
            yield f"    {line}"
