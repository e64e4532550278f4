"""What a client came to against what a case means: the differences, in plain words.

Each difference names the invariant that it speaks of by itself; `examine` may know better, when
it has seen that the client gets the plain form of the same answer right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.compare_calls import call_differences
from mockllm.checking.judging.difference import Difference, comparable, describe, key, listed, shown
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.scenario.model import FramePart

__all__ = ["Difference", "differences"]


def differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    """How an outcome differs from what is right for a case; empty where it is right.

    What speaks loudest comes first, and what only follows from it is left out: a client that
    breaks gets nothing else right either, and one that reports an error may do so because of
    what it made of the calls.
    """
    found = _differences(case, got, policy)
    if any(each.field == "crash" for each in found):
        return [each for each in found if each.field == "crash"]
    told = [each for each in found if each.field == "errors"]
    if not told or case.right == "error":
        return found
    rest = [each for each in found if each.field != "errors" and not _cut_off(each, case, got)]
    if any(_names_a_call(case, trouble.message) for trouble in got.errors):
        calls = [each for each in found if each.about == "tool_calls"]
        return [*calls, *(each for each in rest if each not in calls), *told]
    return told + rest


def _cut_off(found: Difference, case: Case, got: Outcome) -> bool:
    """Whether a difference is only that an error came before the rest."""
    if found.field in ("finish", "usage"):
        return True
    if found.field == "tool_calls":
        return len(got.tool_calls) < len(case.expected.tool_calls)
    if found.field in ("text", "reasoning", "refusal"):
        return str(getattr(case.expected, found.field)).startswith(getattr(got, found.field))
    return False


def _names_a_call(case: Case, message: str) -> bool:
    names = {name for call in case.expected.tool_calls for name in (call.name, call.id) if name}
    return any(name in message for name in names)


def _differences(case: Case, got: Outcome, policy: Policy) -> list[Difference]:
    right, due = case.right, None
    if not case.ids and policy.missing_id == "error" and case.expected.tool_calls:
        right, due = "error", "missing-id"
    if right == "same":
        return list(_same(case, got, policy))
    wrong = list(_reported(case, got, due))
    if right == "error" or (not wrong and got.errors):
        return wrong
    same = list(_same(case, got, policy))
    ends = bool(case.finishes) and "finish" not in policy.ignore
    if same and ends and not got.errors and got.finish is None:
        words = f"neither an error nor an end of the answer is told; got {describe(got)}"
        same.insert(0, Difference("finish", words, "truncated-is-not-complete", sure=True))
    return same


# An error is right


def _reported(case: Case, got: Outcome, due: str | None = None) -> Iterator[Difference]:
    """What is wrong with an outcome that has to be an error; `due` is what demands it."""
    invariant = due or "error-ends"
    if due is None and case.expected.finish is None and not case.expected.errors:
        invariant = "truncated-is-not-complete"
    if not got.errors:
        what = "; ".join(e.message for e in case.expected.errors) or "the stream is not complete"
        if due is not None:
            what = "calls have no id"
        words = f"no error is reported, although {what}; got {describe(got)}"
        yield Difference("errors", words, invariant, sure=due is not None)
        return
    for trouble in got.errors:
        if trouble.crash:
            words = f"breaks instead of reporting an error: {trouble.message}"
            yield Difference("crash", words, "null-tolerant")
    meant = [*case.expected.tool_calls, *(case.plain.expected.tool_calls if case.plain else ())]
    known = set(map(key, meant))
    names = {call.name for call in meant}
    for call in map(comparable, got.tool_calls):
        if isinstance(call.arguments, dict) and key(call) not in known:
            words = f"a call that is not complete comes out: {listed([call])}"
            or_else = ("arguments-concatenate",) if call.name in names else ()
            yield Difference("tool_calls", words, invariant, or_else=or_else)


# The same is right


def _same(case: Case, got: Outcome, policy: Policy) -> Iterator[Difference]:
    expected = case.expected
    wanted, excused = _under(policy, case)
    yield from _errors(case, got, policy, excused)
    for name in ("text", "reasoning", "refusal"):
        if name not in policy.ignore:
            yield from _text(name, getattr(expected, name), getattr(got, name))
    if "tool_calls" not in policy.ignore:
        yield from call_differences(case, wanted, got, policy)
    yield from _unreported(case, got, policy, excused)
    if "finish" not in policy.ignore and case.finishes and got.finish not in case.finishes:
        yield Difference(
            "finish",
            f"finish is {shown(got.finish)}, not {shown(expected.finish)}",
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
    """Errors where none belong."""
    demanded = _demanded(policy, excused)
    for trouble in got.errors:
        words = f"reports an error: {trouble.message}"
        if trouble.crash:
            sure = _NULL.search(trouble.message) is not None
            yield Difference("crash", words, "null-tolerant", sure=sure)
        elif not demanded or (trouble.tool is None and not _names_a_call(case, trouble.message)):
            first, *others = _speaks_of(case, excused)
            yield Difference("errors", words, first, or_else=tuple(others))


def _unreported(
    case: Case, got: Outcome, policy: Policy, excused: Sequence[tuple[int, Call, str]]
) -> Iterator[Difference]:
    """Calls of which the policy wants an error, and none is told."""
    if any(trouble.tool is not None for trouble in got.errors):
        return
    if got.errors and not any(_names_a_call(case, trouble.message) for trouble in got.errors):
        return  # told by `_errors`: it is of the stream
    for index, call, invariant in _demanded(policy, excused):
        if not any(call.name in e.message or (call.id or "\0") in e.message for e in got.errors):
            yield Difference(
                f"tool_calls[{index}]",
                f"no error names the call {call.name} ({call.id}), whose arguments are "
                f"{shown(call.arguments)}",
                invariant,
            )


def _demanded(
    policy: Policy, excused: Sequence[tuple[int, Call, str]]
) -> list[tuple[int, Call, str]]:
    """The calls that have to be reported."""
    wants = {"malformed-contained": policy.malformed, "unknown-tool": policy.unknown_tool}
    return [each for each in excused if wants[each[2]] == "error"]


_NULL = re.compile("NoneType|^KeyError")
"""What a client says that breaks on what is null or not there."""


def _speaks_of(case: Case, excused: Sequence[tuple[int, Call, str]]) -> list[str]:
    """What an error in a stream that is fine may speak of."""
    turn = case.scenario.turns[0].for_api(case.api)
    found = [invariant for _, _, invariant in excused[:1]]
    comments = turn.wire is not None and turn.wire.comments is not None
    if comments or any(isinstance(part, FramePart) for part in turn.reply):
        found.append("unknown-event")
    calls = case.expected.tool_calls
    if calls and all(call.arguments == {} for call in calls):
        found.append("zero-arguments")
    if calls:
        found.append("arguments-concatenate")
    if case.finishes & {"length", "content_filter"}:
        found.append("finish-and-usage")
    return found or ["null-tolerant"]


_NOTHING = re.compile(r"None|null|undefined|\[object Object\]")


def _text(name: str, expected: str, got: str) -> Iterator[Difference]:
    if expected == got:
        return
    invariant = "text-accumulates"
    if _times(expected, got):
        invariant = "final-replaces"
    elif _NOTHING.search(got) and not _NOTHING.search(expected):
        invariant = "null-tolerant"
    words = f"{name} is {shown(got)}, not {shown(expected)}"
    yield Difference(name, words, invariant)


def _times(expected: str, got: str) -> bool:
    """Whether one text has all of the other several times, in whatever order."""
    times, rest = divmod(len(got), len(expected) or 1)
    if not expected or times < 2 or rest:
        return False
    return Counter(got) == {char: n * times for char, n in Counter(expected).items()}


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
