"""Runs one probe through one case, and watches its state after every chunk if the policy says so.

Whatever a client raises is caught here: an exception is an error that the client reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, cast

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare import Difference, differences
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import ByteProbe, Delta, Probe

__all__ = ["Factory", "Level", "drive", "feed_arguments", "run", "run_together"]

Level = Literal["payloads", "bytes"]
Factory = Callable[[], Probe | ByteProbe]
"""Makes a new probe for each stream."""

_FeedArguments = tuple[Any, ...]


def feed_arguments(case: Case, level: Level) -> list[_FeedArguments]:
    """The arguments for each call of `feed`, in order."""
    if level == "bytes":
        return [(chunk,) for chunk in case.chunks]
    assert case.events is not None, f"{case.name} shows at the level of bytes only"
    return list(case.events.decoded)


def run(factory: Factory, case: Case, policy: Policy, level: Level) -> list[Difference]:
    """The differences between a client's outcome of a case and the correct one."""
    probe = _new_probe(factory, case)
    feeds = feed_arguments(case, level)
    watch = _Watch(probe, case) if policy.intermediate else None
    try:
        for arguments in feeds:
            delta = cast("Any", probe).feed(*arguments)
            if watch is not None:
                watch.after_chunk(delta)
        _close(probe)
        outcome = probe.outcome()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        outcome = _outcome_with(probe, error)
    found = differences(case, outcome, policy)
    if watch is not None:
        found = [*watch.found, *watch.after_stream(outcome), *found]
    if case.events is not None and level == "payloads" and case.events.restore():
        description = "a chunk that was handed in was modified"
        found.insert(0, Difference("chunk", description, "input-untouched", conclusive=True))
    return found


def drive(probe: Probe | ByteProbe, feeds: Iterable[_FeedArguments]) -> Outcome:
    """The outcome of a stream; an exception of the client is an error that it reports.

    Args:
        feeds: the arguments for each call of `feed`.
    """
    try:
        for arguments in feeds:
            cast("Any", probe).feed(*arguments)
        _close(probe)
        return probe.outcome()
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return _outcome_with(probe, error)


def run_together(
    factory: Factory, one: Case, other: Case, policy: Policy, level: Level
) -> list[Difference]:
    """The differences when two streams run at once, or one after another that was abandoned.

    Both cases pass alone, so every difference means that streams share state.
    """
    first, second = _new_probe(factory, one), _new_probe(factory, other)
    outcomes = _alternate(
        first, second, iter(feed_arguments(one, level)), iter(feed_arguments(other, level))
    )
    abandoned = feed_arguments(one, level)
    drive(_new_probe(factory, one), abandoned[: len(abandoned) // 2])
    after = drive(_new_probe(factory, one), feed_arguments(one, level))
    found = [
        *differences(one, outcomes[0], policy),
        *differences(other, outcomes[1], policy),
        *differences(one, after, policy),
    ]
    return [
        Difference(
            difference.field,
            f"streams disturb each other: {difference.description}",
            "stage-empties",
            conclusive=True,
        )
        for difference in found
    ]


def _alternate(
    first: Probe | ByteProbe,
    second: Probe | ByteProbe,
    first_feeds: Iterator[_FeedArguments],
    second_feeds: Iterator[_FeedArguments],
) -> tuple[Outcome, Outcome]:
    """The outcomes of two probes that are fed in turns."""
    probes = _DeferredErrors(first), _DeferredErrors(second)
    end = object()
    ended = [False, False]
    while not all(ended):
        for index, (probe, feeds) in enumerate(
            zip(probes, (first_feeds, second_feeds), strict=True)
        ):
            arguments = next(feeds, end)
            if arguments is end:
                ended[index] = True
            else:
                probe.feed(cast("_FeedArguments", arguments))
    return probes[0].outcome(), probes[1].outcome()


class _DeferredErrors:
    """A probe whose exception is kept for its outcome, so that the other probe goes on."""

    def __init__(self, probe: Probe | ByteProbe) -> None:
        self._probe = probe
        self._error: Exception | None = None

    def feed(self, arguments: _FeedArguments) -> None:
        if self._error is not None:
            return
        try:
            cast("Any", self._probe).feed(*arguments)
        except Exception as error:  # noqa: BLE001 - it becomes part of the outcome
            self._error = error

    def outcome(self) -> Outcome:
        if self._error is None:
            return drive(self._probe, ())
        return _outcome_with(self._probe, self._error)


def _new_probe(factory: Factory, case: Case) -> Probe | ByteProbe:
    probe = factory()
    # By name: isinstance() with a runtime protocol takes longer than most cases.
    offer = getattr(probe, "offer", None)
    if offer is not None:
        offer(tuple(tool.name for tool in case.tools))
    return probe


def _close(probe: Probe | ByteProbe) -> None:
    close = getattr(probe, "close", None)
    if close is not None:
        close()


def _outcome_with(probe: Probe | ByteProbe, error: Exception) -> Outcome:
    """The outcome of a client that raised, with its exception as one more error."""
    try:
        outcome = probe.outcome()
    except Exception:  # noqa: BLE001 - the first error is the one that counts
        return Outcome.of(errors=[error])
    return replace(outcome, errors=(*outcome.errors, *Outcome.of(errors=[error]).errors))


class _Watch:
    """Checks the state of a probe after every chunk.

    `found` holds the first difference of each invariant.
    """

    def __init__(self, probe: Probe | ByteProbe, case: Case) -> None:
        self._probe = probe
        self._case = case
        self._texts = {"text": _GrowingText(), "reasoning": _GrowingText()}
        self._calls: list[Call] = []
        self._surfaced: list[Call] = []
        self.found: list[Difference] = []

    def after_chunk(self, delta: Delta | str | None) -> None:
        """Compares the state after a chunk, and what was passed on for it, with those before."""
        outcome = self._probe.outcome()
        passed_on = Delta(delta) if isinstance(delta, str) else delta
        for name, text in self._texts.items():
            fragment = "" if passed_on is None else getattr(passed_on, name)
            violation = text.grow(getattr(outcome, name), fragment)
            if violation is not None:
                self._add(f"{name}: {violation[1]}", violation[0])
        for call in () if passed_on is None else passed_on.tool_calls:
            self._check_surfaced(call)
        self._check_calls(outcome.tool_calls)

    def after_stream(self, outcome: Outcome) -> Iterator[Difference]:
        """The differences that show only at the end of the stream."""
        for name, text in self._texts.items():
            final = getattr(outcome, name)
            if text.has_deltas and text.correct and text.passed_on != final:
                description = (
                    f"{name}: the deltas join to {text.passed_on!r:.80}, their sum is {final!r:.80}"
                )
                yield Difference("chunk", description, "delta-is-fragment", conclusive=True)
        pending = getattr(self._probe, "pending", None)
        if pending is not None and not outcome.errors:
            count = pending()
            if count:
                description = f"{count} calls are still waiting after the end"
                yield Difference("chunk", description, "stage-empties", conclusive=True)

    def _check_surfaced(self, call: Call) -> None:
        if any(_same(call, other) for other in self._surfaced):
            self._add(f"{call.name} ({call.id}) surfaces again", "surface-once")
        self._surfaced.append(call)
        self._check_complete(call)

    def _check_calls(self, calls: tuple[Call, ...]) -> None:
        if list(calls) == self._calls:
            return
        for call in calls:
            self._check_complete(call)
            if sum(_same(call, other) for other in calls) > 1:
                self._add(f"{call.name} ({call.id}) is there twice", "surface-once")
        self._calls = list(calls)

    def _check_complete(self, call: Call) -> None:
        """Checks that a call which has surfaced already has its final arguments."""
        wanted = [c for c in self._case.expected.tool_calls if c.id is not None and c.id == call.id]
        if not wanted or not self._case.ids or len(wanted) > 1:
            return
        arguments = wanted[0].arguments
        early = call.arguments if isinstance(call.arguments, dict) else (call.arguments or {})
        if isinstance(arguments, dict) and isinstance(early, dict) and early != arguments:
            description = f"{call.name} ({call.id}) surfaces with {early}, before it is complete"
            self._add(description, "surface-complete")

    def _add(self, description: str, invariant: str) -> None:
        if not any(one.invariant == invariant for one in self.found):
            self.found.append(Difference("chunk", description, invariant, conclusive=True))


class _GrowingText:
    """A text as it grows, and the fragments of it that were passed on.

    Attributes:
        passed_on: all fragments, joined.
        has_deltas: whether any fragment was passed on.
        correct: whether no chunk broke an invariant so far.
    """

    def __init__(self) -> None:
        self.passed_on = ""
        self.has_deltas = False
        self.correct = True
        self._before = ""
        self._behind = False

    def grow(self, now: str, fragment: str) -> tuple[str, str] | None:
        """The invariant that a chunk breaks, and how. After the first one, later ones are ignored.

        Args:
            now: all of the text so far.
            fragment: what was passed on for this chunk.
        """
        violation = self._violation(now, fragment) if self.correct else None
        self.correct = self.correct and violation is None
        return violation

    def _violation(self, now: str, fragment: str) -> tuple[str, str] | None:
        before, self._before = self._before, now
        if not now.startswith(before):
            return "text-accumulates", f"it was {before!r:.80}, then {now!r:.80}"
        new = now[len(before) :]
        was_behind, self._behind = self._behind, len(self.passed_on) + len(fragment) < len(now)
        self.passed_on += fragment
        self.has_deltas = self.has_deltas or bool(fragment)
        caught_up = was_behind and fragment and self.passed_on == now
        if (self.has_deltas and self._behind) or caught_up:
            return "delta-first", f"{now!r:.80} shows {new!r:.80} before it is handed on"
        if fragment not in (new, "") and fragment == now:
            return "delta-is-fragment", f"{now!r:.80} is handed on, not {new!r:.80}"
        return None


def _same(one: Call, other: Call) -> bool:
    """Whether two calls are the same call, surfaced twice: only their ids can show that."""
    if one.id is None or other.id is None:
        return False
    return one.id == other.id and one.name == other.name
