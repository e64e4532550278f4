"""The verdict on a session: one object with one wording, which all that report it print or send."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from mockllm.checking.conversations.mcp.executed_calls import ExecutedCall
from mockllm.checking.conversations.session_history import Violation
from mockllm.core.text import quantity
from mockllm.play.replay.sessions.exchange import Exchange

MistakeKind = Literal[
    "no_requests",
    "violations",
    "unmatched",
    "invalid",
    "failed",
    "unplayed",
    "missed_faults",
    "unopened",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class SessionMistake:
    """One reason why a verdict is not good.

    Args:
        kind: the list of a `Verification` that it is in; `unknown`: what could not be judged.
        text: a sentence of one line.
        number: of the request; infinite where there is none, as for a turn that was not played.
        more: further lines, such as the nearest scenarios of a request that matches nothing.
        subject: what the list has of it: a violation, the number of a request, or a turn. None of
            a scenario that was not begun.
    """

    kind: MistakeKind
    text: str
    number: float = math.inf
    more: tuple[str, ...] = ()
    subject: Any = None

    @property
    def rule(self) -> str:
        """The invariant that was broken; "" for other kinds."""
        return self.subject.invariant if self.kind == "violations" else ""


_REFUSALS: dict[str, tuple[MistakeKind, str]] = {
    "failed": ("failed", "could not be answered"),
    "unmatched": ("unmatched", "matches nothing"),
    "unknown route": ("unmatched", "matches nothing"),
    "invalid": ("invalid", "was refused"),
}
"""By the outcome of a request: what it counts as, and its words."""


NO_REQUESTS = SessionMistake(
    "no_requests",
    "no request came; does the client read its base URL (with interception its proxy) from the "
    "environment?",
)
"""A verdict on nothing is no good one: the client may have asked another server."""


def request_mistakes(exchange: Exchange) -> Iterator[SessionMistake]:
    """Why a request got no answer, or not the fault that it should get, or too late."""
    number = exchange.number
    if exchange.outcome in _REFUSALS:
        kind, words = _REFUSALS[exchange.outcome]
        first, *more = "; ".join(exchange.problems).splitlines() or [""]
        yield SessionMistake(
            kind, f"request {number} {words}: {first}", number, tuple(more), number
        )
    if exchange.fault_missed:
        text = f"request {number}: a fault did not strike: {exchange.fault_missed}"
        yield SessionMistake("missed_faults", text, number, subject=number)
    for wait in exchange.expired_gates:
        text = f"request {number}: {wait.problem}"
        yield SessionMistake("unopened", text, number, subject=(number, wait.gate))


def each_once(mistakes: Iterable[tuple[SessionMistake, str]]) -> list[SessionMistake]:
    """Mistakes, equal refusals of several requests once, with their number: clients try again.

    Args:
        mistakes: each with a text about its place, which follows on its own.
    """
    same: dict[Hashable, list[tuple[SessionMistake, str]]] = {}
    for place, (mistake, where) in enumerate(mistakes):
        text = mistake.text.replace(f"request {mistake.number}", "request", 1)
        refusal = mistake.kind, text, where, mistake.more
        key = refusal if mistake.kind in ("unmatched", "invalid", "failed") else place
        same.setdefault(key, []).append((mistake, where))
    return [
        replace(first, text=f"{first.text}{where}{_times(len(equal))}")
        for equal in same.values()
        for first, where in equal[:1]
    ]


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one session.

    Args:
        certain: the mistakes that no missing request may explain, and faults that did not strike.
        remarks: what may be a mistake, and is none of the verdict (`REMARKS`).
        not_judged: the numbers of the requests whose body was too large to be kept.
        dropped: how many entries the journal has dropped; the verdict covers them.
        forgotten: how many of these the verdict does not cover.
        evicted: whether the server dropped an earlier session of this name, with all it knew.
        gaps: why requests may be missing that other server processes answered.
        maybe_counted: the numbers of the requests that were refused because a state store was away,
            and which it may have counted all the same, so that an answer may have been left out.
        doubtful: what would be wrong if no request were missing. A missing one may be its cause.
        calls: of the model, that operations of MCP servers executed, where that can be told.
    """

    certain: tuple[SessionMistake, ...] = ()
    remarks: tuple[Violation, ...] = ()
    not_judged: tuple[int, ...] = ()
    dropped: int = 0
    forgotten: int = 0
    evicted: bool = False
    gaps: tuple[str, ...] = ()
    maybe_counted: tuple[int, ...] = ()
    doubtful: tuple[str, ...] = ()
    calls: tuple[ExecutedCall, ...] = ()

    def _subjects(self, kind: MistakeKind) -> tuple[Any, ...]:
        found = (mistake.subject for mistake in self.certain if mistake.kind == kind)
        return tuple(subject for subject in found if subject is not None)

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The invariants that were broken, in the order of the requests that show them."""
        return self._subjects("violations")

    @property
    def unplayed(self) -> tuple[tuple[str, int], ...]:
        """The turns that were not played, of scenarios that were begun: name and index."""
        return self._subjects("unplayed")

    @property
    def unmatched(self) -> tuple[int, ...]:
        """The numbers of the requests that no scenario matched, unknown routes included."""
        return self._subjects("unmatched")

    @property
    def invalid(self) -> tuple[int, ...]:
        """The numbers of the requests that were rejected."""
        return self._subjects("invalid")

    @property
    def failed(self) -> tuple[int, ...]:
        """The numbers of the requests that mockllm could not answer, because of a mistake of its
        own; no option allows them."""
        return self._subjects("failed")

    @property
    def missed_faults(self) -> tuple[int, ...]:
        """The numbers of the requests whose answer had a fault that did not strike."""
        return self._subjects("missed_faults")

    @property
    def unopened(self) -> tuple[tuple[int, str], ...]:
        """The gates that nobody opened within their limits: number of the request, and name; no
        option allows them."""
        return self._subjects("unopened")

    @property
    def no_requests(self) -> bool:
        """Whether no request came, where one was expected."""
        return NO_REQUESTS in self.certain

    @property
    def mistakes(self) -> tuple[SessionMistake, ...]:
        """All reasons why the verdict is not good, in the order of the requests."""
        unknown = (
            SessionMistake("unknown", f"verdict unknown: {why}") for why in self._why_unknown()
        )
        return tuple(sorted((*self.certain, *unknown), key=lambda mistake: mistake.number))

    def _why_unknown(self) -> Iterator[str]:
        """Why the verdict does not cover all requests, a sentence for each reason."""
        if self.evicted:
            yield "it was dropped once, as there were too many; its earlier requests are not judged"
        if self.forgotten:
            requests = quantity(self.forgotten, "request")
            yield f"its first {requests} exceeded its memory; not judged"
        if self.not_judged:
            yield f"too large to be kept and judged: request {_join_numbers(self.not_judged)}"
        for gap in self.gaps:
            yield f"requests may be missing: {gap}"
        if self.maybe_counted:
            yield (
                "the state store may have counted a request that was refused because it was away, "
                "so an answer of the scenario may have been left out: request "
                f"{_join_numbers(self.maybe_counted)}"
            )
        for sentence in self.doubtful:
            yield f"a request that is missing may be the cause: {sentence}"

    @property
    def good(self) -> bool:
        """Whether all requests were judged, and there is nothing to report."""
        return self.verdict == "good"

    @property
    def verdict(self) -> Literal["good", "bad", "unknown"]:
        """`bad` if there is anything wrong; `unknown` if there is not, and some requests could not
        be judged, may be missing, had a fault that did not strike, or may have been counted
        although they were refused."""
        kinds = {mistake.kind for mistake in self.mistakes}
        if kinds - {"missed_faults", "unknown"}:
            return "bad"
        return "unknown" if kinds else "good"

    def as_json(self) -> dict[str, Any]:
        """The JSON value that the control route sends; turns count from 0."""
        numbers = ("unmatched", "invalid", "failed", "not_judged", "missed_faults")
        values = {
            name: getattr(self, name)
            for name in (*numbers, "dropped", "forgotten", "evicted", "gaps", *_RARE)
        }
        values["calls"] = [call.as_json() for call in self.calls]
        values["unopened"] = [{"request": n, "gate": gate} for n, gate in self.unopened]
        return {
            "good": self.good,
            "verdict": self.verdict,
            "violations": [violation.as_json() for violation in self.violations],
            "remarks": [remark.as_json() for remark in self.remarks],
            "unplayed": [{"scenario": name, "turn": index} for name, index in self.unplayed],
            **{
                name: list(value) if isinstance(value, tuple) else value
                for name, value in values.items()
                if value or name not in _RARE
            },
        }


_RARE = ("no_requests", "unopened", "maybe_counted", "doubtful", "calls")
"""Fields of the JSON value that are absent where they are empty."""


def _join_numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
