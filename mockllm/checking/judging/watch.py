"""Watches the state of a probe after every chunk, and what it passes on for the chunk. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import (
    Difference,
    calls_of,
    canonical,
    comparable,
    comparable_value,
    format_value,
)
from mockllm.checking.judging.received import running_parts, with_declared_types
from mockllm.checking.judging.stream_reading import is_in_order_of_arrival
from mockllm.checking.outcome import Call, Outcome, is_kept
from mockllm.checking.probes import ByteProbe, Delta, Fragment, Probe
from mockllm.core.errors import ProbeError


class Watch:
    """Checks the state of a probe after every chunk.

    `found` holds the first difference of each invariant.
    """

    def __init__(self, probe: Probe | ByteProbe, case: Case) -> None:
        self._probe = probe
        self._case = case
        self._texts = {"text": _GrowingText(), "reasoning": _GrowingText()}
        self._calls: tuple[Call, ...] = ()
        self._surfaced: list[Call] = []
        self._fragments: list[Fragment] = []
        self._takes_back = takes_back(case)
        # Under an id that is no one's, such as the text "null", calls do not surface twice.
        self._identified = case.ids or not case.tolerated
        self.found: list[Difference] = []

    def after_chunk(self, delta: object, outcome: Outcome) -> None:
        """Compares the state after a chunk, and what was passed on for it, with those before."""
        text, reasoning, calls = running_parts(outcome)
        passed_on = as_delta(delta)
        self._check_text("text", text, passed_on.text)
        self._check_text("reasoning", reasoning, passed_on.reasoning)
        for call in passed_on.tool_calls:
            self._check_surfaced(call)
        self._fragments += passed_on.tool
        if isinstance(calls, tuple):
            self._check_calls(calls)

    def after_stream(self, outcome: Outcome) -> Iterator[Difference]:
        """The differences that show only at the end of the stream."""
        outcome, _ = with_declared_types(outcome)
        for name, text in self._texts.items():
            final = getattr(outcome, name)
            joined = text.passed_on
            wrong = joined != final and not is_in_order_of_arrival(self._case, name, joined)
            if text.has_deltas and text.correct and wrong:
                description = (
                    f"{name}: the deltas join to {joined!r:.80}, their sum is {final!r:.80}"
                )
                yield self._of_text(description, "delta-is-fragment")
        if not outcome.errors:
            yield from fragment_differences(self._case, self._fragments)
            yield from self._surfaced_under_other_ids(outcome)
        pending = getattr(self._probe, "pending", None)
        if pending is not None and not outcome.errors:
            count = pending()
            if count:
                description = f"{count} calls are still waiting after the end"
                yield Difference("chunk", description, "stage-empties", conclusive=True)

    def _surfaced_under_other_ids(self, outcome: Outcome) -> Iterator[Difference]:
        """A call keeps the id under which it was passed on: its result is sent back by it."""
        calls = calls_of(outcome)
        ids = {call.id for call in calls}
        for call in self._surfaced:
            names = [other.name for other in calls]
            if call.id is not None and call.id not in ids and call.name in names:
                final = calls[names.index(call.name)].id
                description = f"{call.name} is passed on as {call.id}, and is {final} in the end"
                yield Difference("chunk", description, "id-kept", conclusive=True)

    def _check_text(self, name: str, now: Any, fragment: str) -> None:
        if not is_kept(now):
            return
        violation = self._texts[name].grow(now, fragment)
        if violation is not None and not self._takes_back:
            self._add(f"{name}: {violation[1]}", violation[0])

    def _check_surfaced(self, call: Call) -> None:
        if self._identified and any(_same(call, other) for other in self._surfaced):
            self._add(f"{call.name} ({call.id}) surfaces again", "surface-once")
        self._surfaced.append(call)
        self._check_complete(call)

    def _check_calls(self, calls: tuple[Call, ...]) -> None:
        if calls == self._calls:
            return
        for number, call in enumerate(calls):
            if number < len(self._calls) and call == self._calls[number]:
                continue  # as it was after the chunk before
            self._check_complete(call)
            if self._identified and sum(_same(call, other) for other in calls) > 1:
                self._add(f"{call.name} ({call.id}) is there twice", "surface-once")
        self._calls = calls

    def _check_complete(self, call: Call) -> None:
        """Checks that a call which has surfaced already has its final arguments."""
        wanted = [c for c in self._case.expected.tool_calls if c.id is not None and c.id == call.id]
        if not wanted or not self._case.ids or len(wanted) > 1:
            return
        arguments, early = wanted[0].arguments, comparable(call).arguments
        if isinstance(arguments, dict) and isinstance(early, dict) and early != arguments:
            description = (
                f"{call.name} ({call.id}) surfaces with {format_value(early)}, "
                "before it is complete"
            )
            self._add(description, "surface-complete")

    def _add(self, description: str, invariant: str) -> None:
        if not any(difference.invariant == invariant for difference in self.found):
            self.found.append(self._of_text(description, invariant))

    @staticmethod
    def _of_text(description: str, invariant: str) -> Difference:
        """A difference in the middle of the stream; those of text look alike in short streams."""
        alternatives = tuple(name for name in _OF_TEXT if name != invariant)
        if invariant not in _OF_TEXT:
            return Difference("chunk", description, invariant, conclusive=True)
        return Difference("chunk", description, invariant, alternatives=alternatives)


_NOTHING = Delta()

_OF_TEXT = ("text-accumulates", "delta-is-fragment", "delta-first")


def as_delta(delta: object) -> Delta:
    """The value that `feed` returned, as a `Delta`."""
    if delta is None:
        return _NOTHING
    if isinstance(delta, str):
        return Delta(delta)
    if not isinstance(delta, Delta) or not _is_declared(delta):
        raise ProbeError(
            "feed must return a mockllm.checking.Delta, the new text or None; it returned "
            f"{comparable_value(delta)!r:.200}"
        )
    return delta


def _is_declared(delta: Any) -> bool:
    """Whether the values of a delta have the declared types."""
    return (
        isinstance(delta.text, str)
        and isinstance(delta.reasoning, str)
        and isinstance(delta.tool_calls, tuple | list)
        and all(isinstance(call, Call) for call in delta.tool_calls)
        and isinstance(delta.tool, tuple | list)
        and all(
            isinstance(fragment, Fragment) and isinstance(fragment.arguments, str)
            for fragment in delta.tool
        )
    )


class _GrowingText:
    """A text as it grows, and the fragments of it that were passed on."""

    def __init__(self) -> None:
        self.passed_on = ""
        self.has_deltas = False
        self.correct = True
        self._before = ""
        self._behind = False

    def grow(self, now: str, fragment: str) -> tuple[str, str] | None:
        """The invariant that a chunk breaks first, and how; later ones are ignored."""
        if not fragment and now == self._before:  # as after most chunks
            return None
        violation = self._violation(now, fragment) if self.correct else None
        self.correct = self.correct and violation is None
        return violation

    def _violation(self, now: str, fragment: str) -> tuple[str, str] | None:
        before, self._before = self._before, now
        if _is_inserted(before, now):
            # Two texts grow at once: the first one is continued, and no delta can be compared.
            self.correct = False
            return None
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


def _is_inserted(before: str, now: str) -> bool:
    """Whether a text became longer inside, and not at its end."""
    added = len(now) - len(before)
    if added <= 0 or now.startswith(before):
        return False
    start = next(index for index, char in enumerate(before) if char != now[index])
    return now[start + added :] == before[start:]


def _same(one: Call, other: Call) -> bool:
    """Whether two calls are the same call, surfaced twice: only their ids can show that, and an
    empty one shows nothing."""
    return bool(one.id) and one.id == other.id and one.name == other.name


def takes_back(case: Case) -> bool:
    """Whether a stream takes back what it has sent, or offers to: then only its end can be
    judged."""
    forms = (case,) if case.plain is None else (case, case.plain)
    return case.reaction == "either" or any(form.invariant == "final-replaces" for form in forms)


def fragment_differences(case: Case, fragments: Sequence[Fragment]) -> Iterator[Difference]:
    """The calls whose fragments do not join to their arguments.

    Args:
        fragments: all that the client has passed on; if there are none, nothing is judged.
    """
    if not fragments or takes_back(case) or case.custom:
        return
    for index, call in enumerate(case.expected.tool_calls):
        if not isinstance(call.arguments, dict):
            continue
        joined = "".join(
            fragment.arguments for fragment in fragments if _belongs(case, fragment, index, call)
        )
        read = comparable(Call(call.name, joined)).arguments
        if canonical(read) != canonical(call.arguments):
            description = (
                f"the fragments of the arguments of {call.name} join to "
                f"{format_value(joined)}, not {format_value(call.arguments)}"
            )
            others = ("arguments-concatenate", "surface-complete")
            yield Difference("chunk", description, "delta-is-fragment", alternatives=others)


def _belongs(case: Case, fragment: Fragment, index: int, call: Call) -> bool:
    """Whether a fragment is of a call: by id, else by index, else by name."""
    if fragment.id is not None and case.ids and call.id is not None:
        return fragment.id == call.id
    if fragment.index is not None:
        return fragment.index == index
    names = [expected.name for expected in case.expected.tool_calls]
    return len(names) == 1 or (fragment.name == call.name and names.count(call.name) == 1)
