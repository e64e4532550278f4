"""The kit's own scenarios find one-bug accumulators that its quirks alone do not."""

from __future__ import annotations

import copy
import html
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from mockllm.checking import Case, Delta, Outcome, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import single
from mockllm.checking.material import kit_scenarios
from mockllm.checking.reference import ChatAccumulator


@cache
def kit() -> tuple[Case, ...]:
    return tuple(case(single(scenario), "chat") for scenario in kit_scenarios("chat"))


def fragments(change: Callable[[ChatAccumulator, str], str]) -> type[ChatAccumulator]:
    """An accumulator that changes each fragment of text and arguments."""

    class Changed(ChatAccumulator):
        def feed(self, payload: Any, event: str | None = None) -> Delta | None:
            payload = copy.deepcopy(payload)
            for choice in payload["choices"]:
                delta = choice["delta"]
                entries = [entry["function"] for entry in delta.get("tool_calls") or []]
                for fields, key in [(delta, "content"), *((one, "arguments") for one in entries)]:
                    if isinstance(fields.get(key), str):
                        fields[key] = change(self, fields[key])
            return super().feed(payload, event)

    return Changed


def results(change: Callable[[Outcome], Outcome]) -> type[ChatAccumulator]:
    """An accumulator that changes its outcome."""

    class Changed(ChatAccumulator):
        def outcome(self) -> Outcome:
            return change(super().outcome())

    return Changed


def arguments(change: Callable[[Any], Any]) -> type[ChatAccumulator]:
    """An accumulator that changes the arguments of all calls."""

    def changed(outcome: Outcome) -> Outcome:
        calls = (replace(c, arguments=change(c.arguments)) for c in outcome.tool_calls)
        return replace(outcome, tool_calls=tuple(calls))

    return results(changed)


def values(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def inside(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: inside(one) for key, one in value.items()}
        return [inside(one) for one in value] if isinstance(value, list) else change(value)

    return inside


def not_twice(self: Any, text: str) -> str:
    before, self.before = getattr(self, "before", None), text
    return "" if text == before else text


def once(outcome: Outcome) -> Outcome:
    calls = {json.dumps([c.name, c.arguments], sort_keys=True): c for c in outcome.tool_calls}
    return replace(outcome, tool_calls=tuple(calls.values()))


def encoded_again(outcome: Outcome) -> Outcome:
    calls = (replace(c, raw_arguments=json.dumps(c.arguments)) for c in outcome.tool_calls)
    return replace(outcome, tool_calls=tuple(calls))


WORDS = {"None": None, "null": None, "True": True, "False": False}

MUTANTS = {
    "equal fragments count once": fragments(not_twice),
    "words for null are null": fragments(lambda _, t: "" if t in WORDS else t),
    "a fragment is the end mark": fragments(lambda _, t: "" if t == "[DONE]" else t),
    "fragments are stripped": fragments(lambda _, t: t.strip()),
    "white space is no fragment": fragments(lambda _, t: t if t.strip() else ""),
    "entities are decoded": fragments(lambda _, t: html.unescape(t)),
    "apostrophes are quotes": fragments(lambda _, t: t.replace("'", '"')),
    "nine calls at most": results(lambda o: replace(o, tool_calls=o.tool_calls[:9])),
    "equal calls count once": results(once),
    "falsy values are dropped": arguments(lambda a: {k: v for k, v in a.items() if v}),
    "words in strings are values": arguments(
        values(lambda v: WORDS.get(v, v) if isinstance(v, str) else v)
    ),
    "fractions are integers": arguments(values(lambda v: int(v) if isinstance(v, float) else v)),
    "the text is stripped": results(lambda o: replace(o, text=o.text.strip())),
    "a call removes the text": results(lambda o: replace(o, text="") if o.tool_calls else o),
    "a call removes reasoning": results(lambda o: replace(o, reasoning="") if o.tool_calls else o),
    "the model is lost": results(lambda o: replace(o, model=None)),
    "one opaque value is kept": results(lambda o: replace(o, opaque=o.opaque[:1])),
    "a refusal is text": results(lambda o: replace(o, text=o.text + o.refusal, refusal="")),
    "arguments are encoded again": results(encoded_again),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_material_finds_it(name: str) -> None:
    """Without any quirk or variation, a scenario of the kit fails the accumulator."""
    assert examine(MUTANTS[name], kit()).failures


def test_the_right_accumulator_passes() -> None:
    """The same cases do not fail an accumulator without a bug."""
    assert not examine(ChatAccumulator, kit()).failures
