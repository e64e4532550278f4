"""Judges what a client does with one prefix of a stream. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mockllm.checking.cases.case import Case, Cut
from mockllm.checking.judging.difference import (
    call_key,
    calls_of,
    comparable,
    complete_finishes,
    describe,
    format_calls,
    format_value,
    printable,
)
from mockllm.checking.outcome import Call, Outcome

NO_PLACE = "the client has no place for tool_calls"
"""A reason why calls are not judged, which is no mistake."""


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """The answer of a client to a prefix.

    Args:
        outcome: with values of the declared types, where it is judged (`received`).
        handed_on: the calls that it handed on before the end, as complete.
        absent: the fields of the outcome that the client has no place for.
        unusable: why the answer cannot be judged at all; "" if it can.
    """

    outcome: Outcome
    handed_on: tuple[Call, ...] = ()
    absent: frozenset[str] = frozenset()
    unusable: str = ""

    def unusable_for(self, rule: str) -> str:
        """Why the answer cannot be judged under a rule; "" if nothing in it says so."""
        no_place = rule == "cut-call-not-executed" and "tool_calls" in self.absent
        return self.unusable or (NO_PLACE if no_place else "")


def judge_cut(rule: str, cut: Cut, answer: CutAnswer, whole: CutAnswer | None = None) -> str:
    """The mistake in the answer to a prefix under a rule, as a sentence; "" if nothing is.

    A prefix with the whole content is never wrong.

    Args:
        whole: what the client does with the whole stream; what it reads differently there, such as
            reasoning as text, says nothing about cuts.
    """
    if cut.content_complete:
        return ""
    if rule == "cut-reported":
        found = _mistakes(cut, answer, "" if whole is None else whole.outcome.text)
    else:
        found = _handed_on(cut, answer)
    return printable("; ".join(found))


def why_not_judged(rule: str, whole: Case, answer: CutAnswer) -> str:
    """Why a sample cannot be judged for a client, from what the client does with the whole stream;
    "" if it can.

    A client that fails at the whole stream shows nothing by failing at a part of it.
    """
    unusable = answer.unusable_for(rule)
    if unusable:
        return unusable
    # Malformed arguments may be reported, left out or kept: that is a matter of the policy.
    malformed = whole.malformed
    failed = next((error for error in answer.outcome.errors if error.crash or not malformed), None)
    if failed is not None:
        return f"the client fails at the whole stream, too: {printable(failed.message)}"
    if malformed or rule == "cut-reported":
        return ""
    wanted = Counter(map(_key, whole.expected.tool_calls))
    if wanted != Counter(map(_key, _all_calls(answer))):
        return "the client does not hand on the calls of the whole stream as they were sent"
    return ""


# cut-reported


def _mistakes(cut: Cut, answer: CutAnswer, whole_text: Any) -> Iterator[str]:
    outcome = answer.outcome
    reported = answer.outcome.partial or any(not error.crash for error in outcome.errors)
    if not reported and not outcome.errors:
        yield f"no error is reported; the client has {describe(outcome)}"
    elif not reported:
        crash = outcome.errors[0]
        yield f"the client breaks instead of reporting the cut: {crash}"
    elif outcome.finish in complete_finishes(cut.whole.api):
        yield f"finish is {format_value(outcome.finish)}, although none was sent"
    if "text" not in answer.absent:
        yield from _invented_text(cut, outcome.text, whole_text)


def _invented_text(cut: Cut, have: Any, whole_text: Any) -> Iterator[str]:
    """Characters that the whole text does not have, such as U+FFFD for half of one."""
    texts = (cut.whole.expected.text, whole_text)
    known = {character for text in texts if isinstance(text, str) for character in text}
    if isinstance(have, str) and set(have) - known:
        strange = "".join(sorted(set(have) - known))
        yield f"the text has {format_value(strange)}, which was never sent"


# cut-call-not-executed


def _handed_on(cut: Cut, answer: CutAnswer) -> Iterator[str]:
    if "tool_calls" in answer.absent:
        return
    # Malformed arguments may be read in any way, once their call has ended.
    by_name = cut.whole.malformed
    ended = Counter(key.partition(" ")[0] if by_name else key for key in cut.ended)
    for call in _all_calls(answer):
        key = str(call.name) if by_name else _key(call)
        if ended[key] > 0:
            ended[key] -= 1
        elif call in answer.handed_on or _is_valid(call, answer):
            yield f"a call is handed on whose end was not sent: {format_calls([call])}"


def _is_valid(call: Call, answer: CutAnswer) -> bool:
    """Whether a call looks like one to run: beside an error, one whose arguments are no object
    was kept for the record."""
    reported = bool(answer.outcome.errors)
    return not answer.outcome.partial and (not reported or isinstance(call.arguments, dict))


def _all_calls(answer: CutAnswer) -> tuple[Call, ...]:
    """The calls of the outcome, and those that were handed on before and are not in it.

    A call with an id is the same as another one with this id, however often it is handed on; that
    is for other rules to judge. Without an id, name and arguments decide.
    """
    calls = list(calls_of(answer.outcome))
    ids = {call.id for call in calls if call.id}
    without_id = Counter(_key(call) for call in calls if not call.id)
    for call in answer.handed_on:
        key = _key(call)
        if call.id and call.id not in ids:
            ids.add(call.id)
            calls.append(call)
        elif not call.id and not without_id[key]:
            calls.append(call)
        elif not call.id:
            without_id[key] -= 1
    return tuple(calls)


def _key(call: Call) -> str:
    return call_key(comparable(call))
