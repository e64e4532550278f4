"""Compares the calls that a client reports with the expected ones. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.expected import strings_in
from mockllm.checking.judging.difference import (
    Difference,
    call_key,
    canonical,
    comparable,
    comparable_value,
    format_calls,
    format_value,
)
from mockllm.checking.judging.stream_reading import served_calls
from mockllm.checking.outcome import Call, Outcome, is_kept
from mockllm.checking.policy import Policy


def call_differences(
    case: Case, expected: Sequence[Call], outcome: Outcome, policy: Policy
) -> Iterator[Difference]:
    """The differences of the calls of an outcome from the expected ones.

    Args:
        expected: the calls that the client keeps under its policy.
    """
    got = [comparable(call) for call in outcome.tool_calls]
    expected = list(expected)
    if len(got) != len(expected):
        count = _too_many if len(got) > len(expected) else _too_few
        yield count(case, expected, got, outcome, policy)
        yield from _of_same_call(case, expected, got)
        return
    if policy.order == "any" or _only_order_differs(case, expected, got):
        if policy.order != "any":
            yield Difference(
                "tool_calls",
                f"calls come in the order {_names(got)}, not {_names(expected)}",
                "order-by-index",
                conclusive=True,
            )
            return
        got = _in_expected_order(expected, got)
    names = [[call.name for call in calls] for calls in (expected, got)]
    if names[0] != names[1] and sorted(names[0]) == sorted(names[1], key=str):
        description = f"the calls are {format_calls(got)}, not {format_calls(expected)}"
        yield Difference("tool_calls", description, "arguments-concatenate")
        return
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        yield from _call(case, index, want, have, expected)
    yield from _ids(case, got, policy)


def _names(calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.name} ({call.id})" for call in calls)


def _only_order_differs(case: Case, expected: Sequence[Call], got: Sequence[Call]) -> bool:
    """Whether the calls are those expected in another order: with their ids, or ids aside."""

    def sorts(key: Callable[[Call], object]) -> bool:
        wanted, have = list(map(key, expected)), list(map(key, got))
        return wanted != have and Counter(wanted) == Counter(have)

    with_ids = case.ids and all(call.id for call in expected)
    return sorts(call_key) or (with_ids and sorts(lambda call: (call_key(call), call.id)))


def _in_expected_order(expected: Sequence[Call], got: Sequence[Call]) -> list[Call]:
    """The client's calls in the order of the expected ones, as far as they agree."""
    remaining = list(got)
    ordered = []
    for want in expected:
        same = [c for c in remaining if call_key(c) == call_key(want)] or remaining
        have = next((c for c in same if c.id == want.id), same[0])
        remaining.remove(have)
        ordered.append(have)
    return ordered


def _of_same_call(
    case: Case, expected: Sequence[Call], got: Sequence[Call]
) -> Iterator[Difference]:
    """The differences of calls that are certainly the same one, where some are lost or added."""
    keys = list(map(call_key, expected))
    for want in expected:
        by_id = [call for call in got if case.ids and want.id is not None and call.id == want.id]
        by_key = [call for call in got if call_key(call) == call_key(want)]
        if len(by_id) == 1 and by_id[0].arguments == want.arguments:
            yield from _name(0, want, by_id[0])
        elif not by_id and len(by_key) == 1 and keys.count(call_key(want)) == 1:
            yield from _id(case, 0, want, by_key[0])
        for have in by_id or by_key[:1]:
            if have.arguments == want.arguments:
                yield from _raw_arguments(0, want, have)


def _too_many(
    case: Case,
    expected: Sequence[Call],
    got: Sequence[Call],
    outcome: Outcome,
    policy: Policy,
) -> Difference:
    extra = _without(got, expected)
    repeated = any(call_key(call) in set(map(call_key, expected)) for call in extra)
    ids = [call.id for call in got if call.id]
    # The same call with its id, once more: whatever the case tests, it surfaces twice.
    certain = bool(case.ids and extra)
    certain = certain and all(call.id and ids.count(call.id) > 1 for call in extra)
    invariant = "arguments-concatenate"
    if {call.id for call in extra} & served_calls(case):
        invariant, certain = "unknown-event", True
    elif extra and {call.id for call in extra} <= _other_texts(case, expected):
        invariant = "unknown-event"
    elif repeated:
        invariant = "surface-once"
    elif len(set(ids)) < len(ids):
        early = any(call.arguments == {} for call in extra)
        invariant = "surface-complete" if early else "surface-once"
    elif any(call.name in _unoffered_names(case, policy) for call in extra):
        invariant = "unknown-tool"
    elif case.malformed:
        invariant = "malformed-contained"
    description = (
        f"{len(got)} calls, not {len(expected)}: "
        f"{format_calls(got)} instead of {format_calls(expected)}"
    )
    return Difference(
        "tool_calls",
        description,
        invariant,
        conclusive=certain,
        alternatives=("arguments-concatenate", "surface-complete"),
    )


def _other_texts(case: Case, expected: Sequence[Call]) -> set[str | None]:
    """The texts of a stream that are no ids of its calls, such as the source of a citation."""
    values = [] if case.events is None else [value for value, _ in case.events.decoded]
    ids = {call.id for call in (*expected, *case.expected.tool_calls)}
    return {text for text in strings_in(values) if text not in ids}


def _begins_twice(text: str, calls: Sequence[Call]) -> bool:
    """Whether the arguments of several calls begin so."""
    begin = [any(form.startswith(text) for form in _json_forms(call)) for call in calls]
    return sum(begin) > 1


def _too_few(
    case: Case,
    expected: Sequence[Call],
    got: Sequence[Call],
    outcome: Outcome,
    policy: Policy,
) -> Difference:
    lost, wrong = _without(expected, got), _without(got, expected)
    errors = " ".join(trouble.message for trouble in outcome.errors)
    description = f"{len(got)} calls, not {len(expected)}: lost {format_calls(lost)}"
    # An error quotes the arguments twice over: the final value was appended to the fragments.
    # Where another call begins as this one does, they may be those of two calls.
    if any(
        text + text[:9] in errors and not _begins_twice(text[:9], expected)
        for call in lost
        for text in _json_forms(call)
    ):
        others = ("arguments-concatenate",)
        return Difference("tool_calls", description, "final-replaces", alternatives=others)
    found = []
    if all(call.arguments == {} for call in lost):
        found.append("zero-arguments")
    if _unoffered_names(case, policy):
        found.append("unknown-tool")
    if case.malformed:
        found.append("malformed-contained")
    # If the others are right, and no error is reported, the call never surfaced. A client that
    # leaves out malformed calls does so, too, where it joins the arguments wrongly.
    joined_wrongly = bool(wrong or errors or (policy.malformed == "skip" and not got))
    causes = ["arguments-concatenate", "surface-once"]
    found += causes if joined_wrongly else causes[::-1]
    if errors:
        found.append("final-replaces")
    return Difference("tool_calls", description, found[0], alternatives=tuple(found[1:]))


def _without(calls: Sequence[Call], others: Sequence[Call]) -> list[Call]:
    """The calls, less one equal call for each of the others."""
    remaining = list(calls)
    for call in others:
        same = next((c for c in remaining if call_key(c) == call_key(call)), None)
        if same is not None:
            remaining.remove(same)
    return remaining


def _unoffered_names(case: Case, policy: Policy) -> set[str]:
    """The tools that were called and not offered; empty if the policy keeps such calls."""
    if not case.tools or policy.unknown_tool == "keep":
        return set()
    return {call.name for call in case.expected.tool_calls} - {tool.name for tool in case.tools}


def _json_forms(call: Call) -> list[str]:
    """Arguments as JSON text: compact, spaced and as sent, each also as in a `repr`."""
    compact = json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"), default=repr)
    texts = [compact, json.dumps(call.arguments, ensure_ascii=False, default=repr)]
    if isinstance(call.raw_arguments, str) and call.raw_arguments:
        texts.append(call.raw_arguments)
    return [*texts, *(repr(text)[1:-1] for text in texts)]


def _call(
    case: Case, index: int, want: Call, have: Call, expected: Sequence[Call]
) -> Iterator[Difference]:
    same = canonical(have.arguments) in _correct_forms(want)
    if not same:
        yield Difference(
            f"tool_calls[{index}]",
            f"the arguments of {want.name} are {format_value(have.arguments)}, "
            f"not {format_value(want.arguments)}",
            _invariant_of_arguments(want, have),
            alternatives=("surface-complete",) if have.arguments == {} else (),
        )
        # These may be the arguments of another call: then name and id are those of that call.
        if have.name != want.name or have.id in {call.id for call in expected if call != want}:
            return
    else:
        yield from _name(index, want, have)
        yield from _raw_arguments(index, want, have)
    yield from _id(case, index, want, have)


def _correct_forms(want: Call) -> set[str]:
    """The canonical forms of correct arguments. JSON that is no object may be kept as text or as
    the value."""
    accepted = {canonical(want.arguments)}
    if isinstance(want.arguments, str):
        with suppress(ValueError, RecursionError):
            accepted.add(canonical(comparable_value(json.loads(want.arguments))))
    return accepted


def _name(index: int, want: Call, have: Call) -> Iterator[Difference]:
    if have.name != want.name:
        description = f"its name is {format_value(have.name)}, not {format_value(want.name)}"
        # A part of the name: its other fragments may have gone where arguments go, too.
        part = str(have.name) in want.name
        yield Difference(
            f"tool_calls[{index}]",
            description,
            "name-kept",
            conclusive=not part,
            alternatives=("arguments-concatenate",) if part else (),
        )


def _id(case: Case, index: int, want: Call, have: Call) -> Iterator[Difference]:
    if case.ids and want.id is not None and have.id != want.id:
        description = f"its id is {format_value(have.id)}, not {format_value(want.id)}"
        conclusive = have.name == want.name
        yield Difference(
            f"tool_calls[{index}]",
            description,
            "id-kept",
            conclusive=conclusive,
            alternatives=("arguments-concatenate",),
        )


def _raw_arguments(index: int, want: Call, have: Call) -> Iterator[Difference]:
    """The arguments as text, where both the client and the protocol have them."""
    if (
        is_kept(want.raw_arguments)
        and is_kept(have.raw_arguments)
        and (want.raw_arguments != have.raw_arguments)
    ):
        description = (
            f"the raw arguments of {want.name} are {format_value(have.raw_arguments)}, "
            f"not {format_value(want.raw_arguments)}"
        )
        field = f"raw_arguments[{index}]"
        others = ("arguments-concatenate", "surface-complete", "zero-arguments", "final-replaces")
        yield Difference(field, description, "raw-arguments-kept", alternatives=others)


def _invariant_of_arguments(want: Call, have: Call) -> str:
    """The invariant that wrong arguments point to."""
    if want.arguments == {}:
        return "zero-arguments"
    if isinstance(have.arguments, str) and isinstance(want.arguments, dict):
        half = have.arguments[: len(have.arguments) // 2]
        if half and half * 2 == have.arguments:
            return "final-replaces"
    if not isinstance(want.arguments, dict):
        return "malformed-contained"
    return "arguments-concatenate"


def has_sent_ids(case: Case, calls: Sequence[Call]) -> bool:
    """Whether the ids of calls are texts of a stream that may be read as ids, or as none: the
    text "null" (`chat-placeholder-null-string`)."""
    ids = [call.id for call in calls]
    return not case.ids and any(ids == [c.id for c in o.tool_calls] for o in case.tolerated)


def _ids(case: Case, got: Sequence[Call], policy: Policy) -> Iterator[Difference]:
    """Whether the ids that the client synthesises are there and unique.

    Only for streams without ids. If the protocol has no ids at all, a client need not make any.
    """
    sent = case.ids and any(call.id for call in case.expected.tool_calls)
    if sent or policy.missing_id != "synthesise" or has_sent_ids(case, got):
        return
    ids = [call.id for call in got if call.id or not case.ids]
    if not all(ids):
        description = f"calls are left without an id: {format_calls(got)}"
        yield Difference("tool_calls", description, "missing-id", conclusive=True)
    elif len(set(ids)) < len(ids):
        description = f"calls share an id: {format_calls(got)}"
        yield Difference("tool_calls", description, "missing-id", conclusive=True)
