"""Takes one client through one case, and looks at it on the way where it may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Difference, differences
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
        found.insert(0, Difference("chunk", words, "input-untouched", sure=True))
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
        Difference(
            each.field, f"streams disturb each other: {each.words}", "stage-empties", sure=True
        )
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
        self._words = {"text": _Words(), "reasoning": _Words()}
        self._calls: list[Call] = []
        self._surfaced: list[Call] = []
        self.found: list[Difference] = []

    def look(self, delta: Delta | str | None) -> None:
        """Compares what was handed on for a chunk, and the sum so far, with what was before."""
        seen = self._probe.outcome()
        told = Delta(delta) if isinstance(delta, str) else delta
        for name, words in self._words.items():
            fragment = "" if told is None else getattr(told, name)
            wrong = words.look(getattr(seen, name), fragment)
            if wrong is not None:
                self._tell(f"{name}: {wrong[1]}", wrong[0])
        for call in () if told is None else told.tool_calls:
            self._surface(call)
        self._settled(seen.tool_calls)

    def end(self, outcome: Outcome) -> Iterator[Difference]:
        """What shows only when the stream is over."""
        for name, words in self._words.items():
            final = getattr(outcome, name)
            if words.hands_on and words.right and words.handed != final:
                said = (
                    f"{name}: the deltas join to {words.handed!r:.80}, their sum is {final!r:.80}"
                )
                yield Difference("chunk", said, "delta-is-fragment", sure=True)
        pending = getattr(self._probe, "pending", None)
        if pending is not None and not outcome.errors:
            left = pending()
            if left:
                said = f"{left} calls are still waiting after the end"
                yield Difference("chunk", said, "stage-empties", sure=True)

    def _surface(self, call: Call) -> None:
        if any(_same(call, other) for other in self._surfaced):
            self._tell(f"{call.name} ({call.id}) surfaces again", "surface-once")
        self._surfaced.append(call)
        self._complete(call)

    def _settled(self, calls: tuple[Call, ...]) -> None:
        if list(calls) == self._calls:
            return
        for call in calls:
            self._complete(call)
            if sum(_same(call, other) for other in calls) > 1:
                self._tell(f"{call.name} ({call.id}) is there twice", "surface-once")
        self._calls = list(calls)

    def _complete(self, call: Call) -> None:
        """A call that has surfaced has the arguments that it will have in the end."""
        wanted = [c for c in self._case.expected.tool_calls if c.id is not None and c.id == call.id]
        if not wanted or not self._case.ids or len(wanted) > 1:
            return
        arguments = wanted[0].arguments
        early = call.arguments if isinstance(call.arguments, dict) else (call.arguments or {})
        if isinstance(arguments, dict) and isinstance(early, dict) and early != arguments:
            words = f"{call.name} ({call.id}) surfaces with {early}, before it is complete"
            self._tell(words, "surface-complete")

    def _tell(self, words: str, invariant: str) -> None:
        if not any(each.invariant == invariant for each in self.found):
            self.found.append(Difference("chunk", words, invariant, sure=True))


class _Words:
    """Text as it grows, and what of it was handed on."""

    def __init__(self) -> None:
        self.handed = ""
        self.hands_on = False
        self.right = True
        self._before = ""
        self._behind = False

    def look(self, now: str, fragment: str) -> tuple[str, str] | None:
        """The invariant that a chunk breaks, and how; after the first one nothing is looked at.

        Args:
            now: all of the text so far.
            fragment: what was handed on for this chunk.
        """
        wrong = self._wrong(now, fragment) if self.right else None
        self.right = self.right and wrong is None
        return wrong

    def _wrong(self, now: str, fragment: str) -> tuple[str, str] | None:
        before, self._before = self._before, now
        if not now.startswith(before):
            return "text-accumulates", f"it was {before!r:.80}, then {now!r:.80}"
        grown = now[len(before) :]
        late, self._behind = self._behind, len(self.handed) + len(fragment) < len(now)
        self.handed += fragment
        self.hands_on = self.hands_on or bool(fragment)
        if (self.hands_on and self._behind) or (late and fragment and self.handed == now):
            return "delta-first", f"{now!r:.80} shows {grown!r:.80} before it is handed on"
        if fragment not in (grown, "") and fragment == now:
            return "delta-is-fragment", f"{now!r:.80} is handed on, not {grown!r:.80}"
        return None


def _same(one: Call, other: Call) -> bool:
    """Whether two calls are one that surfaced twice."""
    if one.id is None or other.id is None:
        return False
    return one.id == other.id and one.name == other.name
