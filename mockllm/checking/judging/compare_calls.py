"""The calls that a client came to against those that a case means."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import Difference, comparable, key, listed, shown
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.policy import Policy

__all__ = ["call_differences"]


def call_differences(
    case: Case, expected: Sequence[Call], outcome: Outcome, policy: Policy
) -> Iterator[Difference]:
    """How the calls of an outcome differ; `expected` are those that the policy keeps."""
    got = [comparable(call) for call in outcome.tool_calls]
    expected = list(expected)
    if len(got) > len(expected):
        yield _too_many(case, expected, got, policy)
        return
    if len(got) < len(expected):
        yield _too_few(case, expected, got, outcome, policy)
        return
    if policy.order == "any" or not _sorted_alike(case, expected, got, policy):
        if policy.order != "any":
            yield Difference(
                "tool_calls",
                f"calls come in the order {_names(got)}, not {_names(expected)}",
                "order-by-index",
                sure=True,
            )
            return
        got = _as_expected(expected, got)
    names = [[call.name for call in calls] for calls in (expected, got)]
    if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
        words = f"the calls are {listed(got)}, not {listed(expected)}"
        yield Difference("tool_calls", words, "arguments-concatenate")
        return
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        yield from _call(case, index, want, have, policy)
    yield from _ids(case, got, policy)


def _names(calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.name} ({call.id})" for call in calls)


def _sorted_alike(
    case: Case, expected: Sequence[Call], got: Sequence[Call], policy: Policy
) -> bool:
    """Whether the calls are those expected but for their order; True also where more differs."""
    if expected == got or list(map(key, expected)) == list(map(key, got)):
        return True
    return Counter(map(key, expected)) != Counter(map(key, got))


def _as_expected(expected: Sequence[Call], got: Sequence[Call]) -> list[Call]:
    """The calls that a client came to in the order of those expected, as far as they agree."""
    left = list(got)
    found = []
    for want in expected:
        have = next((c for c in left if key(c) == key(want)), left[0])
        left.remove(have)
        found.append(have)
    return found


def _too_many(
    case: Case, expected: Sequence[Call], got: Sequence[Call], policy: Policy
) -> Difference:
    extra = _without(got, expected)
    again = any(key(call) in set(map(key, expected)) for call in extra)
    ids = [call.id for call in got if call.id]
    invariant = "arguments-concatenate"
    if again:
        invariant = "surface-once"
    elif len(set(ids)) < len(ids):
        early = any(call.arguments == {} for call in extra)
        invariant = "surface-complete" if early else "surface-once"
    elif any(call.name in _unoffered(case, policy) for call in extra):
        invariant = "unknown-tool"
    elif _malformed(case) and any(isinstance(call.arguments, dict) for call in extra):
        invariant = "surface-complete"
    words = f"{len(got)} calls, not {len(expected)}: {listed(got)} instead of {listed(expected)}"
    return Difference("tool_calls", words, invariant, or_else=("arguments-concatenate",))


def _too_few(
    case: Case,
    expected: Sequence[Call],
    got: Sequence[Call],
    outcome: Outcome,
    policy: Policy,
) -> Difference:
    lost, wrong = _without(expected, got), _without(got, expected)
    told = " ".join(trouble.message for trouble in outcome.errors)
    words = f"{len(got)} calls, not {len(expected)}: lost {listed(lost)}"
    if any(text + text[:9] in told for call in lost for text in _spelled(call.arguments)):
        return Difference("tool_calls", words, "final-replaces")
    found = []
    if all(call.arguments == {} for call in lost):
        found.append("zero-arguments")
    if _unoffered(case, policy):
        found.append("unknown-tool")
    if _malformed(case):
        found.append("malformed-contained")
    # Where the others are right, and nothing is said of it, a call never surfaced.
    found.append("arguments-concatenate" if wrong or told else "surface-once")
    return Difference("tool_calls", words, found[0], or_else=tuple(found[1:]))


def _without(calls: Sequence[Call], others: Sequence[Call]) -> list[Call]:
    """The calls less one like each of the others."""
    left = list(calls)
    for call in others:
        same = next((c for c in left if key(c) == key(call)), None)
        if same is not None:
            left.remove(same)
    return left


def _unoffered(case: Case, policy: Policy) -> set[str]:
    """The tools that were called and not offered, where the policy minds."""
    if not case.tools or policy.unknown_tool == "keep":
        return set()
    return {call.name for call in case.expected.tool_calls} - {tool.name for tool in case.tools}


def _malformed(case: Case) -> bool:
    return any(not isinstance(call.arguments, dict) for call in case.expected.tool_calls)


def _spelled(arguments: object) -> list[str]:
    """Arguments as text, in the ways in which they are written mostly, also inside of quotes."""
    dense = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    texts = (dense, json.dumps(arguments, ensure_ascii=False))
    return [*texts, *(repr(text)[1:-1] for text in texts)]


def _call(case: Case, index: int, want: Call, have: Call, policy: Policy) -> Iterator[Difference]:
    where = f"tool_calls[{index}]"
    if have.arguments != want.arguments:
        # Whatever else is wrong with it, these may be another call's.
        yield Difference(
            where,
            f"the arguments of {want.name} are {shown(have.arguments)}, "
            f"not {shown(want.arguments)}",
            _arguments_blamed(want, have),
        )
        return
    if have.name != want.name:
        words = f"its name is {shown(have.name)}, not {shown(want.name)}"
        yield Difference(where, words, "name-kept", sure=True)
    if case.ids and want.id is not None and have.id != want.id:
        words = f"its id is {shown(have.id)}, not {shown(want.id)}"
        yield Difference(where, words, "id-kept", sure=have.name == want.name)


def _arguments_blamed(want: Call, have: Call) -> str:
    if want.arguments == {}:
        return "zero-arguments"
    if isinstance(have.arguments, str) and isinstance(want.arguments, dict):
        half = have.arguments[: len(have.arguments) // 2]
        if half and half * 2 == have.arguments:
            return "final-replaces"
    if not isinstance(want.arguments, dict):
        return "malformed-contained"
    return "arguments-concatenate"


def _ids(case: Case, got: Sequence[Call], policy: Policy) -> Iterator[Difference]:
    """Where no ids are sent: those that the client made up are there and differ. Where the
    protocol knows none, a client need not make up any."""
    sent = case.ids and any(call.id for call in case.expected.tool_calls)
    if sent or policy.missing_id != "synthesise":
        return
    ids = [call.id for call in got if call.id or not case.ids]
    if not all(ids):
        words = f"calls are left without an id: {listed(got)}"
        yield Difference("tool_calls", words, "missing-id", sure=True)
    elif len(set(ids)) < len(ids):
        words = f"calls share an id: {listed(got)}"
        yield Difference("tool_calls", words, "missing-id", sure=True)
