"""What a client came to against what a case means: the differences, in plain words.

Each difference names the invariant that it speaks of by itself; `examine` may know better, when
it has seen that the client gets the plain form of the same answer right.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mockllm.checking.case import Case
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.scenario.model import FramePart

__all__ = ["Difference", "differences"]

_MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an outcome is not right, and the invariant that it speaks of."""

    field: str
    words: str
    invariant: str


def differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """How an outcome differs from what is right for a case; empty where it is right.

    What speaks loudest comes first: a client that breaks gets nothing else right either, and
    one that reports an error does so because of what it made of the calls.
    """
    found = _differences(case, got, policy)
    crashed = any(trouble.crash for trouble in got.errors)
    return sorted(found, key=lambda each: (each.field == "errors") != crashed)


def _differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    right = case.right
    if not case.ids and policy.missing_id == "error" and case.expected.tool_calls:
        right = "error"
    if right != "same":
        wrong = list(_reported(case, got))
        if right == "error" or (not wrong and got.errors):
            return wrong
    return list(_same(case, got, policy))


# An error is right


def _reported(case: Case, got: Outcome) -> Iterator[Difference]:
    """What is wrong with an outcome that has to be an error."""
    invariant = "error-ends"
    if case.expected.finish is None and not case.expected.errors:
        invariant = "truncated-is-not-complete"
    if not got.errors:
        what = "; ".join(e.message for e in case.expected.errors) or "the stream is not complete"
        yield Difference(
            "errors", f"no error is reported, although {what}; got {describe(got)}", invariant
        )
        return
    for trouble in got.errors:
        if trouble.crash:
            words = f"breaks instead of reporting an error: {trouble.message}"
            yield Difference("errors", words, "null-tolerant")
    meant = [*case.expected.tool_calls, *(case.plain.expected.tool_calls if case.plain else ())]
    known = set(map(_key, meant))
    for call in map(_comparable, got.tool_calls):
        if isinstance(call.arguments, dict) and _key(call) not in known:
            words = f"a call that is not complete comes out: {_listed([call])}"
            yield Difference("tool_calls", words, invariant)


# The same is right


def _same(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    expected = case.expected
    wanted, excused = _under(policy, case)
    yield from _errors(case, got, policy, excused)
    for name in ("text", "reasoning", "refusal"):
        if name not in policy.ignore:
            yield from _text(name, getattr(expected, name), getattr(got, name))
    if "tool_calls" not in policy.ignore:
        yield from _calls(case, wanted, got.tool_calls, policy)
    if "finish" not in policy.ignore and case.finishes and got.finish not in case.finishes:
        yield Difference(
            "finish",
            f"finish is {_shown(got.finish)}, not {_shown(expected.finish)}",
            "finish-and-usage",
        )
    if "usage" not in policy.ignore:
        yield from _usage(expected.usage, got.usage)


def _under(policy: Policy, case: Case) -> tuple[list[Call], list[tuple[int, Call, str]]]:
    """The calls that a client keeps under its policy, and those that it leaves out or reports:
    index, call, and why."""
    offered = {tool.name for tool in case.tools}
    kept: list[Call] = []
    excused: list[tuple[int, Call, str]] = []
    for index, call in enumerate(case.expected.tool_calls):
        if not isinstance(call.arguments, dict) and policy.malformed != "keep":
            excused.append((index, call, "malformed-contained"))
        elif offered and call.name not in offered and policy.unknown_tool != "keep":
            excused.append((index, call, "unknown-tool"))
        else:
            kept.append(call)
    return kept, excused


def _errors(
    case: Case, got: Outcome, policy: Policy, excused: Sequence[tuple[int, Call, str]]
) -> Iterator[Difference]:
    """Errors where none belong, and none where the policy wants one."""
    demanded = [
        (call, invariant)
        for _, call, invariant in excused
        if (policy.malformed if invariant == "malformed-contained" else policy.unknown_tool)
        == "error"
    ]
    for trouble in got.errors:
        if trouble.crash or not demanded:
            invariant = "null-tolerant" if trouble.crash else _blamed(case, excused)
            yield Difference("errors", f"reports an error: {trouble.message}", invariant)
    for call, invariant in demanded:
        named = [e for e in got.errors if call.name in e.message or (call.id or "\0") in e.message]
        if not named and not any(e.tool is not None for e in got.errors):
            yield Difference(
                "errors",
                f"no error names the call {call.name} ({call.id}), whose arguments are "
                f"{_shown(call.arguments)}",
                invariant,
            )


def _blamed(case: Case, excused: Sequence[tuple[int, Call, str]]) -> str:
    """What an error in a stream that is fine speaks of."""
    if excused:
        return excused[0][2]
    if any(call.arguments == {} for call in case.expected.tool_calls):
        return "zero-arguments"
    if any(isinstance(part, FramePart) for part in case.scenario.turns[0].reply):
        return "unknown-event"
    return "arguments-concatenate" if case.expected.tool_calls else "null-tolerant"


def _text(name: str, expected: str, got: str) -> Iterator[Difference]:
    if expected == got:
        return
    invariant = "text-accumulates"
    if expected and got.replace(expected, "") != got and len(got) > len(expected):
        invariant = "final-replaces"
    words = f"{name} is {_shown(got)}, not {_shown(expected)}"
    yield Difference(name, words, invariant)


def _usage(expected: Usage | None, got: Usage | None) -> Iterator[Difference]:
    if expected is None:
        return
    if got is None:
        yield Difference("usage", "usage is lost", "finish-and-usage")
        return
    for name in ("input", "output", "reasoning", "cached"):
        told, sent = getattr(got, name), getattr(expected, name)
        if told is not None and told != sent:
            words = f"usage: {name} is {told} tokens, not {sent}"
            yield Difference("usage", words, "finish-and-usage")


# Calls


def _calls(
    case: Case, expected: Sequence[Call], got: Sequence[Call], policy: Policy
) -> Iterator[Difference]:
    got = [_comparable(call) for call in got]
    expected = list(expected)
    if len(got) > len(expected):
        yield _too_many(expected, got)
        return
    if len(got) < len(expected):
        yield _too_few(expected, got)
        return
    if policy.order == "any" or not _sorted_alike(case, expected, got, policy):
        if policy.order != "any":
            yield Difference(
                "tool_calls",
                f"calls come in the order {_names(got)}, not {_names(expected)}",
                "order-by-index",
            )
            return
        got = _as_expected(expected, got)
    names = [[call.name for call in calls] for calls in (expected, got)]
    if names[0] != names[1] and sorted(names[0]) == sorted(names[1]):
        words = f"the calls are {_listed(got)}, not {_listed(expected)}"
        yield Difference("tool_calls", words, "arguments-concatenate")
        return
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        yield from _call(case, index, want, have, policy)
    yield from _ids(case, got, policy)


def _comparable(call: Call) -> Call:
    """Arguments that a client keeps as text, or leaves away where there are none, as a value."""
    if call.arguments is None or call.arguments == "":
        return replace(call, arguments={})
    if isinstance(call.arguments, str):
        try:
            value = json.loads(call.arguments)
        except ValueError:
            return call
        return replace(call, arguments=value) if isinstance(value, dict) else call
    return call


def _key(call: Call) -> str:
    return f"{call.name} {json.dumps(call.arguments, sort_keys=True)}"


def _names(calls: Sequence[Call]) -> str:
    return ", ".join(f"{call.name} ({call.id})" for call in calls)


def _sorted_alike(
    case: Case, expected: Sequence[Call], got: Sequence[Call], policy: Policy
) -> bool:
    """Whether the calls are those expected but for their order; True also where more differs."""
    if expected == got or list(map(_key, expected)) == list(map(_key, got)):
        return True
    return Counter(map(_key, expected)) != Counter(map(_key, got))


def _as_expected(expected: Sequence[Call], got: Sequence[Call]) -> list[Call]:
    """The calls that a client came to in the order of those expected, as far as they agree."""
    left = list(got)
    found = []
    for want in expected:
        have = next((c for c in left if _key(c) == _key(want)), left[0])
        left.remove(have)
        found.append(have)
    return found


def _too_many(expected: Sequence[Call], got: Sequence[Call]) -> Difference:
    extra = got[:]
    for call in expected:
        same = next((c for c in extra if _key(c) == _key(call)), None)
        if same is not None:
            extra = [c for c in extra if c is not same]
    again = any(_key(call) in set(map(_key, expected)) for call in extra)
    ids = [call.id for call in got if call.id]
    early = any(call.arguments == {} for call in extra)
    invariant = "arguments-concatenate"
    if again or len(set(ids)) < len(ids):
        invariant = "surface-complete" if early and not again else "surface-once"
    words = f"{len(got)} calls, not {len(expected)}: {_listed(got)} instead of {_listed(expected)}"
    return Difference("tool_calls", words, invariant)


def _too_few(expected: Sequence[Call], got: Sequence[Call]) -> Difference:
    lost = list(expected)
    for call in got:
        same = next((c for c in lost if _key(c) == _key(call)), None)
        if same is not None:
            lost.remove(same)
    invariant = "arguments-concatenate"
    if lost and all(call.arguments == {} for call in lost):
        invariant = "zero-arguments"
    elif any(not isinstance(call.arguments, dict) for call in lost):
        invariant = "malformed-contained"
    words = f"{len(got)} calls, not {len(expected)}: lost {_listed(lost)}"
    return Difference("tool_calls", words, invariant)


def _call(case: Case, index: int, want: Call, have: Call, policy: Policy) -> Iterator[Difference]:
    where = f"tool_calls[{index}]"
    if have.name != want.name:
        yield Difference(
            where, f"its name is {_shown(have.name)}, not {_shown(want.name)}", "name-kept"
        )
    if have.arguments != want.arguments:
        yield Difference(
            where,
            f"the arguments of {want.name} are {_shown(have.arguments)}, "
            f"not {_shown(want.arguments)}",
            _arguments_blamed(want, have),
        )
    if case.ids and want.id is not None and have.id != want.id:
        yield Difference(where, f"its id is {_shown(have.id)}, not {_shown(want.id)}", "id-kept")


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
    """Where no ids are sent: those that the client made up are there and differ."""
    if case.ids or policy.missing_id != "synthesise":
        return
    ids = [call.id for call in got]
    if not all(ids):
        yield Difference(
            "tool_calls", f"calls are left without an id: {_listed(got)}", "missing-id"
        )
    elif len(set(ids)) < len(ids):
        yield Difference("tool_calls", f"calls share an id: {_listed(got)}", "missing-id")


# Words


def _listed(calls: Sequence[Call]) -> str:
    return "; ".join(f"{c.name}({_shown(c.arguments)}) id {_shown(c.id)}" for c in calls) or "none"


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 20]}…{text[-15:]}"


def describe(outcome: Outcome) -> str:
    """An outcome in one line."""
    told = [
        f"{name} {_shown(getattr(outcome, name))}"
        for name in ("text", "reasoning", "refusal")
        if getattr(outcome, name)
    ]
    if outcome.tool_calls:
        told.append(f"calls {_listed(outcome.tool_calls)}")
    told.append(f"finish {_shown(outcome.finish)}")
    told += [f"error {_shown(trouble.message)}" for trouble in outcome.errors]
    return ", ".join(told)
