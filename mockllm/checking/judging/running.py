"""Runs one probe through one case, and watches its state after every chunk if the policy
requires it.

Whatever a client raises is caught here: an exception is an error that the client reports. A client
that cannot be run at all is a `ProbeError` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, cast

from mockllm.checking.cases.case import Case, Level
from mockllm.checking.judging.compare import Judgement, differences, judge
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.stream_reading import is_passed_over
from mockllm.checking.judging.watch import Watch
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.probes import ByteProbe, Probe, Tool
from mockllm.core.errors import ProbeError

Factory = Callable[[], Probe | ByteProbe]
"""Makes a new probe for each stream."""

_FeedArguments = tuple[Any, ...]


def feed_arguments(case: Case, level: Level) -> list[_FeedArguments]:
    """The arguments for each call of `feed`, in order."""
    if level == "bytes":
        return [(chunk,) for chunk in case.chunks]
    assert case.events is not None, f"{case.name} shows at the level of bytes only"
    return list(case.events.decoded)


def run_case(factory: Factory, case: Case, policy: Policy, level: Level) -> Judgement:
    """Runs a client through a case and judges it."""
    probe = new_probe(factory, case)
    feeds = feed_arguments(case, level)
    watch = Watch(probe, case) if policy.intermediate else None
    at: int | None = None
    try:
        for at, arguments in enumerate(feeds):  # noqa: B007 - read after an exception
            delta = cast("Any", probe).feed(*arguments)
            if watch is not None:
                watch.after_chunk(delta, checked_outcome(probe.outcome()))
        at = None
        _close(probe)
        outcome = checked_outcome(probe.outcome())
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        outcome = _outcome_with(probe, error)
    judgement = judge(case, outcome, policy)
    if at is not None:
        judgement = replace(judgement, at=at)
        if not case.quirk and is_passed_over(case, level, at):
            judgement = replace(judgement, differences=tuple(_unknown(judgement.differences)))
    found: list[Difference] = []
    if level == "payloads" and _are_modified(feeds, case):
        found.append(_MODIFIED)
    if watch is not None:
        found += [*watch.found, *watch.after_stream(outcome)]
    if not found:
        return judgement
    verdict = "wrong" if judgement.verdict in ("right", "tolerated") else judgement.verdict
    return replace(judgement, verdict=verdict, differences=(*found, *judgement.differences))


def _unknown(found: Iterable[Difference]) -> Iterator[Difference]:
    """The differences of a client that raised at an event which it may pass over."""
    for difference in found:
        if difference.field in ("crash", "errors") and not difference.conclusive:
            others = (difference.invariant, *difference.alternatives)
            difference = replace(difference, invariant="unknown-event", alternatives=others)
        yield difference


def _are_modified(feeds: list[_FeedArguments], case: Case) -> bool:
    original = feed_arguments(case, "payloads")
    # By `repr`, too: NaN, which Python reads in JSON, does not equal itself.
    return feeds != original and repr(feeds) != repr(original)


_MODIFIED = Difference(
    "chunk", "a chunk that was handed in was modified", "input-untouched", conclusive=True
)


def drive(
    probe: Probe | ByteProbe,
    feeds: Iterable[_FeedArguments],
    note: Callable[[object], None] = lambda _: None,
) -> Outcome:
    """The outcome of a stream; an exception of the client is an error that it reports.

    Args:
        note: gets what each `feed` returns.
    """
    try:
        for arguments in feeds:
            note(cast("Any", probe).feed(*arguments))
        _close(probe)
        return checked_outcome(probe.outcome())
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what it reports
        return _outcome_with(probe, error)


def checked_outcome(value: Any, method: str = "outcome()") -> Outcome:
    """The value, if it is an outcome."""
    if not isinstance(value, Outcome):
        raise ProbeError(
            f"{method} must return a mockllm.checking.Outcome, and returned {value!r:.100}; "
            "Outcome.of(...) makes one"
        )
    return value


def exception_outcome(error: Exception) -> Outcome:
    """The outcome of a client that raised: its exception is an error that it reports."""
    if isinstance(error, ProbeError):
        raise error
    if isinstance(error, ImportError):
        raise _cannot_run(error) from error
    return Outcome.of(errors=[error])


def _cannot_run(error: Exception) -> ProbeError:
    trouble = Outcome.of(errors=[error]).errors[0]
    return ProbeError(f"the client cannot be run: {trouble}; no case was judged")


def run_together(
    factory: Factory, one: Case, other: Case, policy: Policy, level: Level
) -> list[Difference]:
    """The differences when two streams run at once, or one after another that was abandoned.

    Both cases pass alone, so every difference means that streams share state.
    """
    cases = one, other
    probes = [new_probe(factory, case) for case in cases]
    outcomes = _alternate(probes, [feed_arguments(case, level) for case in cases])
    abandoned = feed_arguments(one, level)
    drive(new_probe(factory, one), abandoned[: len(abandoned) // 2])
    after = drive(new_probe(factory, one), feed_arguments(one, level))
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
    probes: Sequence[Probe | ByteProbe], feeds: Sequence[Iterable[_FeedArguments]]
) -> list[Outcome]:
    """The outcomes of probes that are fed in turns; where one raises, the others go on."""
    errors: dict[int, Exception] = {}
    for turn in zip_longest(*feeds):
        for index, arguments in enumerate(turn):
            if arguments is None or index in errors:
                continue
            try:
                cast("Any", probes[index]).feed(*arguments)
            except Exception as error:  # noqa: BLE001 - it becomes part of the outcome
                errors[index] = error
    return [
        _outcome_with(probe, errors[index]) if index in errors else drive(probe, ())
        for index, probe in enumerate(probes)
    ]


def new_probe(factory: Factory, case: Case) -> Probe | ByteProbe:
    """A new probe, which has been offered the tools of a case."""
    try:
        probe = factory()
    except Exception as error:
        raise _cannot_run(error) from error
    for method in ("feed", "outcome"):
        if not callable(getattr(probe, method, None)):
            raise ProbeError(
                f"a probe needs the methods feed and outcome; {probe!r:.100} has no {method}"
            )
    # By name: isinstance() with a runtime protocol takes longer than most cases.
    offer = getattr(probe, "offer", None)
    if offer is not None:
        try:
            offer(tuple(Tool(tool.name, tool.description, tool.parameters) for tool in case.tools))
        except Exception as error:
            raise _cannot_run(error) from error
    return probe


def _close(probe: Probe | ByteProbe) -> None:
    close = getattr(probe, "close", None)
    if close is not None:
        close()


def _outcome_with(probe: Probe | ByteProbe, error: Exception) -> Outcome:
    """The outcome of a client that raised, with its exception as one more error."""
    raised = exception_outcome(error)
    try:
        outcome: Any = probe.outcome()
    except Exception:  # noqa: BLE001 - the first error is the one that counts
        return raised
    if not isinstance(outcome, Outcome) or not isinstance(outcome.errors, tuple):
        return raised
    return replace(outcome, errors=(*raised.errors, *outcome.errors))
