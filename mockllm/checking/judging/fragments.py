"""Judges the fragments of arguments that a client passes on (`Delta.tool`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mockllm.checking.cases.case import Case
from mockllm.checking.judging.difference import Difference, comparable, format_value
from mockllm.checking.judging.values import canonical
from mockllm.checking.outcome import Call
from mockllm.checking.probes import Fragment


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
    if not fragments or takes_back(case):
        return
    for index, call in enumerate(case.expected.tool_calls):
        if not isinstance(call.arguments, dict):
            continue
        joined = "".join(one.arguments for one in fragments if _belongs(case, one, index, call))
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
    names = [one.name for one in case.expected.tool_calls]
    return len(names) == 1 or (fragment.name == call.name and names.count(call.name) == 1)
