"""Takes one client through one case, and looks at it on the way where it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from mockllm.checking.case import Case
from mockllm.checking.compare import Difference, differences
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import ByteProbe, Delta, Probe

__all__ = ["Factory", "Level", "drive", "run", "together"]

Level = Literal["payloads", "bytes"]
Factory = Callable[[], Probe | ByteProbe]
"""Makes a new probe for each stream."""

_Step = tuple[Any, ...]


def steps(case: Case, level: Level) -> list[_Step]:
    """What is fed, one after the other: the arguments of each `feed`."""
    if level == "bytes":
        return [(chunk,) for chunk in case.chunks]
    assert case.events is not None, f"{case.name} shows at the level of bytes only"
    return list(case.events.fed)


def run(factory: Factory, case: Case, policy: Policy, level: Level) -> list[Difference]:
    """How a client gets a case wrong; empty where it gets it right."""
    probe = _made(factory, case)
    fed = steps(case, level)
    watch = _Watch(probe, case) if policy.intermediate else None
    try:
        for step in fed:
            delta = cast("Any", probe).feed(*step)
            if watch is not None:
                watch.look(delta)
        _close(probe)
        outcome = probe.outcome()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        outcome = _after(probe, error)
    found = differences(case, outcome, policy)
    if watch is not None:
        found = [*watch.found, *watch.end(outcome), *found]
    if case.events is not None and level == "payloads" and case.events.restore():
        words = "a chunk that was handed in is another one afterwards"
        found.append(Difference("chunk", words, "input-untouched"))
    return found


def drive(probe: Probe | ByteProbe, fed: Iterable[_Step]) -> Outcome:
    """The outcome of a stream; what the client raises is an error that it reports."""
    try:
        for step in fed:
            cast("Any", probe).feed(*step)
        _close(probe)
        return probe.outcome()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return _after(probe, error)


def together(
    factory: Factory, one: Case, other: Case, policy: Policy, level: Level
) -> list[Difference]:
    """How two streams at once, and one after another that was given up, disturb each other."""
    first, second = _made(factory, one), _made(factory, other)
    left, right = iter(steps(one, level)), iter(steps(other, level))
    mine, theirs = _alternate(first, second, left, right)
    abandoned = steps(one, level)
    drive(_made(factory, one), abandoned[: len(abandoned) // 2])
    after = drive(_made(factory, one), steps(one, level))
    found = [
        *differences(one, mine, policy),
        *differences(other, theirs, policy),
        *differences(one, after, policy),
    ]
    return [
        Difference(each.field, f"streams disturb each other: {each.words}", "stage-empties")
        for each in found
    ]


def _alternate(
    first: Probe | ByteProbe,
    second: Probe | ByteProbe,
    left: Iterator[_Step],
    right: Iterator[_Step],
) -> tuple[Outcome, Outcome]:
    mine, theirs = _Guarded(first), _Guarded(second)
    over = object()
    ended = [False, False]
    while not all(ended):
        for index, (probe, fed) in enumerate(((mine, left), (theirs, right))):
            step = next(fed, over)
            if step is over:
                ended[index] = True
            else:
                probe.feed(cast("_Step", step))
    return mine.outcome(), theirs.outcome()


class _Guarded:
    """A probe whose exceptions wait until it is asked for its outcome."""

    def __init__(self, probe: Probe | ByteProbe) -> None:
        self._probe = probe
        self._error: Exception | None = None

    def feed(self, step: _Step) -> None:
        if self._error is not None:
            return
        try:
            cast("Any", self._probe).feed(*step)
        except Exception as error:  # noqa: BLE001 - it is kept and told
            self._error = error

    def outcome(self) -> Outcome:
        return drive(self._probe, ()) if self._error is None else _after(self._probe, self._error)


def _made(factory: Factory, case: Case) -> Probe | ByteProbe:
    probe = factory()
    # Asked by name: isinstance() of a protocol costs more than many a whole case.
    offer = getattr(probe, "offer", None)
    if offer is not None:
        offer(tuple(tool.name for tool in case.tools))
    return probe


def _close(probe: Probe | ByteProbe) -> None:
    close = getattr(probe, "close", None)
    if close is not None:
        close()


def _after(probe: Probe | ByteProbe, error: Exception) -> Outcome:
    """What a client that raised can still tell, with the error."""
    try:
        told = probe.outcome()
    except Exception:  # noqa: BLE001 - the first error is the one that counts
        return Outcome.of(errors=[error])
    raised = Outcome.of(errors=[error]).errors
    return Outcome(
        told.text,
        told.reasoning,
        told.refusal,
        told.tool_calls,
        told.finish,
        told.usage,
        (*told.errors, *raised),
    )


class _Watch:
    """Looks at a probe after every chunk; `found` holds the first difference of each kind."""

    def __init__(self, probe: Probe | ByteProbe, case: Case) -> None:
        self._probe = probe
        self._case = case
        self._text = {"text": "", "reasoning": ""}
        self._handed = {"text": "", "reasoning": ""}
        self._hands_on = {"text": False, "reasoning": False}
        self._calls: list[Call] = []
        self._surfaced: list[Call] = []
        self._names: set[str] = set()
        self.found: list[Difference] = []

    def look(self, delta: Delta | str | None) -> None:
        """Compares what was handed on for a chunk, and the sum so far, with what was before."""
        seen = self._probe.outcome()
        told = Delta(delta) if isinstance(delta, str) else delta
        for name in ("text", "reasoning"):
            fragment = "" if told is None else getattr(told, name)
            self._grown(name, getattr(seen, name), fragment)
        for call in () if told is None else told.tool_calls:
            self._surface(call)
        self._settled(seen.tool_calls)

    def end(self, outcome: Outcome) -> Iterator[Difference]:
        """What shows only when the stream is over."""
        for name in ("text", "reasoning"):
            final, handed = getattr(outcome, name), self._handed[name]
            if self._hands_on[name] and handed != final and not self._told("delta-is-fragment"):
                yield Difference(
                    name,
                    f"the deltas of {name} join to {handed!r:.80}, its sum is {final!r:.80}",
                    "delta-is-fragment",
                )
        pending = getattr(self._probe, "pending", None)
        if pending is not None and not outcome.errors:
            left = pending()
            if left:
                words = f"{left} calls are still waiting after the end"
                yield Difference("pending", words, "stage-empties")

    def _grown(self, name: str, now: str, fragment: str) -> None:
        before = self._text[name]
        self._text[name] = now
        if not now.startswith(before):
            self._tell(name, f"{name} was {before!r:.80}, then {now!r:.80}", "text-accumulates")
            return
        grown = now[len(before) :]
        if fragment:
            self._hands_on[name] = True
        self._handed[name] += fragment
        if not self._hands_on[name]:
            return
        if fragment != grown and fragment == now:
            words = f"{name} handed on is all of it so far, {fragment!r:.80}, not {grown!r:.80}"
            self._tell(name, words, "delta-is-fragment")
        elif len(self._handed[name]) < len(now):
            words = f"{name} {now!r:.80} shows {grown!r:.80} before it is handed on"
            self._tell(name, words, "delta-first")

    def _surface(self, call: Call) -> None:
        if any(_same(call, other) for other in self._surfaced):
            words = f"{call.name} ({call.id}) surfaces again"
            self._tell("tool_calls", words, "surface-once")
        self._surfaced.append(call)
        self._complete(call)

    def _settled(self, calls: tuple[Call, ...]) -> None:
        if list(calls) == self._calls:
            return
        for call in calls:
            self._complete(call)
            if sum(_same(call, other) for other in calls) > 1:
                self._tell("tool_calls", f"{call.name} ({call.id}) is there twice", "surface-once")
        self._calls = list(calls)

    def _complete(self, call: Call) -> None:
        """A call that has surfaced has the arguments that it will have in the end."""
        wanted = [c for c in self._case.expected.tool_calls if c.id is not None and c.id == call.id]
        if not wanted or not self._case.ids or len(wanted) > 1:
            return
        arguments = wanted[0].arguments
        early = call.arguments if isinstance(call.arguments, dict) else (call.arguments or {})
        if isinstance(arguments, dict) and isinstance(early, dict) and early != arguments:
            self._tell(
                "tool_calls",
                f"{call.name} ({call.id}) surfaces with {early}, before it is complete",
                "surface-complete",
            )

    def _told(self, invariant: str) -> bool:
        return any(each.invariant == invariant for each in self.found)

    def _tell(self, field: str, words: str, invariant: str) -> None:
        if not self._told(invariant):
            self.found.append(Difference(field, words, invariant))


def _same(one: Call, other: Call) -> bool:
    """Whether two calls are one that surfaced twice."""
    if one.id is None or other.id is None:
        return False
    return one.id == other.id and one.name == other.name
