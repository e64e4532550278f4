"""Responses: more mistakes with values of arguments, text, reasoning and refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ResponsesAccumulator
from examples.accumulators.responses import _Item
from mockllm.checking.outcome import Call, Outcome
from tests.checking.mutants.altered import (
    answer_of,
    rewriting_arguments,
    with_calls,
    with_leaves,
    with_strings,
)
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "responses",
    BigIntegersThroughFloat="Reads integers as floating-point numbers (earendil-works/pi#8943).",
    HtmlUnescaped="Unescapes HTML entities in arguments.",
    SingleQuotesReplaced=(
        "Replaces single quotes by double ones before it parses (NousResearch/atropos#478)."
    ),
    NullArgumentsDropped=(
        "Drops arguments that are null, as optional parameters that were not given."
    ),
    BooleansAsNumbers="Turns booleans into 0 and 1.",
    NestedAsText="Encodes nested objects and arrays a second time, as text.",
    NewLinesRemoved="Replaces line ends in string values by spaces.",
    RawIsEncodedAgain=(
        "Keeps the parsed arguments encoded again, with other spaces and other escapes."
    ),
    TextBeforeCallsLost="Drops the text of an answer that calls tools (vercel/ai#2568).",
    RefusalIsText="Adds a refusal to the text.",
    ReasoningIsText="Adds the reasoning to the text, before it.",
    ReasoningBeforeACallLost="Drops the reasoning of an answer that calls tools.",
)


@mutant("arguments-concatenate", api="responses", family="argument values")
class LiteralsOfPythonReplaced(ResponsesAccumulator):
    """Replaces `True`, `False` and `None` by JSON's words before it parses, also in strings."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_without_python))


def _without_python(text: str) -> str:
    return text.replace("True", "true").replace("False", "false").replace("None", "null")


@mutant("arguments-concatenate", api="responses", family="argument values")
class FractionsCutOff(ResponsesAccumulator):
    """Reads every number as an integer."""

    def outcome(self) -> Outcome:
        return with_leaves(
            super().outcome(), lambda leaf: int(leaf) if isinstance(leaf, float) else leaf
        )


@mutant("arguments-concatenate", api="responses", family="argument values")
class OnlyAsciiKept(ResponsesAccumulator):
    """Replaces characters outside ASCII by question marks."""

    def outcome(self) -> Outcome:
        return with_strings(
            super().outcome(), lambda text: text.encode("ascii", "replace").decode()
        )


@mutant("raw-arguments-kept", api="responses", family="raw arguments")
class RawIsDoubled(ResponsesAccumulator):
    """Keeps the deltas and the final arguments, joined (Soju06/codex-lb#284)."""

    def outcome(self) -> Outcome:
        texts = {call.id: call.arguments for call in self._answer._opened}

        def changed(call: Call) -> Call:
            return replace(call, raw_arguments=2 * texts.get(call.id or "", ""))

        return with_calls(super().outcome(), changed)


# Text, reasoning and refusal


@mutant("text-accumulates", api="responses", family="text")
class FirstPartOnly(ResponsesAccumulator):
    """Reads `content[0]` of each message alone."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if not value.get("content_index"):
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if not (item.type == "message" and slot[-1]):
            super()._final_part(item, slot, part)


@mutant("text-accumulates", api="responses", family="text")
class PartsOverwritten(ResponsesAccumulator):
    """Keys text by item, so that a second part replaces the first."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name == "output_text":
            value = {**value, "content_index": 0}
        super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        super()._final_part(item, (*slot[:-1], 0) if item.type == "message" else slot, part)


@mutant("text-accumulates", api="responses", family="text")
class FirstMessageOnly(ResponsesAccumulator):
    """Reads the first message of the output alone; text may also follow a call."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        slots = self._answer._texts["text"]
        first = [slot for slot in sorted(slots) if slot[:2] == min(slots)[:2]]
        text = "".join(fragment for slot in first for fragment in slots[slot])
        return replace(outcome, text=text)


@mutant("text-accumulates", api="responses", family="text")
class RefusalLost(ResponsesAccumulator):
    """Ignores refusals, and reports an empty answer (openai/openai-python#3387,
    BerriAI/litellm#39203, google/adk-go#1466)."""

    def outcome(self) -> Outcome:
        return replace(super().outcome(), refusal="")


@mutant("text-accumulates", api="responses", family="reasoning")
class FirstSummaryOnly(ResponsesAccumulator):
    """Reads `summary[0]` alone (vercel/ai#7014 restores several)."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if not value.get("summary_index"):
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if not (part.get("type") == "summary_text" and slot[-1]):
            super()._final_part(item, slot, part)


@mutant("text-accumulates", api="responses", family="reasoning")
class LastSummaryOnly(ResponsesAccumulator):
    """Starts the reasoning again with each part of the summary."""

    def outcome(self) -> Outcome:
        slots = self._answer._texts["reasoning"]
        return replace(super().outcome(), reasoning="".join(slots[max(slots)]) if slots else "")


@mutant("text-accumulates", api="responses", family="reasoning")
class SummariesOnly(ResponsesAccumulator):
    """Knows summaries, but not `reasoning_text`, which models with open weights send."""

    def _text_event(self, name: str, stage: str, value: Object) -> None:
        if name != "reasoning_text":
            super()._text_event(name, stage, value)

    def _final_part(self, item: _Item, slot: Any, part: Object) -> None:
        if part.get("type") != "reasoning_text":
            super()._final_part(item, slot, part)


@mutant("text-accumulates", api="responses", family="text")
class MessagesByArrival(ResponsesAccumulator):
    """Joins messages in the order in which they began, and not by `output_index`."""

    def outcome(self) -> Outcome:
        slots = self._answer._texts["text"]
        ordered = sorted(slots, key=lambda slot: (slot[1], slot))
        text = "".join(fragment for slot in ordered for fragment in slots[slot])
        return replace(super().outcome(), text=text)
