"""The kit's own scenarios find one-bug accumulators that its quirks alone do not."""

from __future__ import annotations

import copy
import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from examples.accumulators import ChatAccumulator
from mockllm.checking import Case, Delta, Outcome, Policy, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.scenarios import single
from mockllm.checking.material import kit_scenarios
from tests.cases import for_all


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


def as_double(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return int(float(value)) if whole else value


def first_object(text: str) -> str:
    """The first JSON value of the arguments, whatever follows it."""
    try:
        return text[: json.JSONDecoder().raw_decode(text)[1]]
    except ValueError:
        return text


class FirstObjectOnly(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = first_object(call.arguments)
        super().close()


class ReasoningFirst(ChatAccumulator):
    def _delta(self, delta: Mapping[str, Any]) -> None:
        lost = ("reasoning", "reasoning_content") if self._answer.has("text") else ()
        super()._delta({key: value for key, value in delta.items() if key not in lost})


def renamed(change: Callable[[str], str]) -> type[ChatAccumulator]:
    """An accumulator that changes the names of all calls."""

    def changed(outcome: Outcome) -> Outcome:
        calls = (replace(c, name=change(c.name)) for c in outcome.tool_calls)
        return replace(outcome, tool_calls=tuple(calls))

    return results(changed)


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
    "integers are doubles": arguments(values(as_double)),
    "fractions have seven digits": arguments(
        values(lambda v: float(f"{v:.7g}") if isinstance(v, float) else v)
    ),
    "a list of one item is the item": arguments(
        lambda a: {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in a.items()}
    ),
    "commas before brackets are removed": arguments(
        values(lambda v: re.sub(",([]}])", r"\1", v) if isinstance(v, str) else v)
    ),
    "keys are in lower case": arguments(lambda a: {k.lower(): v for k, v in a.items()}),
    "names have no hyphens": renamed(lambda name: name.replace("-", "_")),
    "names are in lower case": renamed(str.lower),
    "text has 4096 characters at most": results(lambda o: replace(o, text=o.text[:4096])),
    "values have 2048 characters at most": arguments(
        values(lambda v: v[:2048] if isinstance(v, str) else v)
    ),
    "text is normalised": results(lambda o: replace(o, text=unicodedata.normalize("NFC", o.text))),
    "marks are removed": results(lambda o: replace(o, text=o.text.replace("\ufeff", ""))),
    "markup is escaped": results(lambda o: replace(o, text=html.escape(o.text, quote=False))),
    "reasoning after text is lost": ReasoningFirst,
    "only the first object of arguments counts": FirstObjectOnly,
}


@pytest.mark.slow
@for_all("name", MUTANTS)
def test_the_material_finds_it(name: str) -> None:
    """Without any quirk or variation, a scenario of the kit fails the accumulator."""
    assert examine(MUTANTS[name], kit()).failures


def test_a_client_in_javascript_can_allow_its_rounding() -> None:
    """Large integers have a case of their own, which `allow` can name; nothing else needs them."""
    policy = Policy(allow={"chat/kit-arguments-large-integers": "JavaScript has doubles only"})
    report = examine(MUTANTS["integers are doubles"], kit(), policy)
    assert not report.failures
    assert len(report.excused) == 1


def test_the_right_accumulator_passes() -> None:
    """The same cases do not fail an accumulator without a bug."""
    assert not examine(ChatAccumulator, kit()).failures
