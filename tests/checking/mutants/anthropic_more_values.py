"""Messages: more mistakes with the values of arguments, and with text and thinking."""

from __future__ import annotations

import ast
import html
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import mapping, string
from mockllm.checking.outcome import Call, Outcome
from tests.checking.mutants.altered import (
    answer_of,
    rewriting_arguments,
    with_arguments,
    with_calls,
    with_leaves,
    with_strings,
)
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]

common(
    __name__,
    "anthropic",
    BigIntegersThroughFloat=(
        """Reads integers as floating-point numbers, which are exact to 2^53 only
    (earendil-works/pi#8943, mark3labs/mcp-go#913, google/adk-python#3592)."""
    ),
    HtmlUnescaped="Unescapes HTML entities in arguments, also in code that is about HTML.",
    SingleQuotesReplaced=(
        """Replaces single quotes by double ones before it parses, which breaks every apostrophe
    (NousResearch/atropos#478)."""
    ),
    BooleansAsText="Turns booleans into text, as a form does.",
    BooleansAsNumbers="Turns booleans into 0 and 1, which Python compares as equal to them.",
    NestedAsText="Encodes nested objects and arrays a second time, as text.",
    NewLinesRemoved="Replaces line ends in string values by spaces.",
    RawIsEncodedAgain="""Keeps the parsed arguments encoded again, not the text of the fragments
    (mark3labs/mcp-go#913).""",
    TextBeforeCallsLost=(
        """Drops the text of an answer that calls tools, as content of a call message
    (vercel/ai#2568)."""
    ),
    TextFragmentsStripped="Strips white space from each fragment of text.",
    FinalTextStripped="Strips white space from the final text, and with it a last line end.",
    ThinkingBeforeACallLost=(
        "Drops the thinking of an answer that calls tools (Kuberwastaken/claurst#217 drops all)."
    ),
)


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class HtmlEscaped(AnthropicAccumulator):
    """Escapes HTML in arguments before they are shown, and runs the escaped ones."""

    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), html.escape)


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class PythonLiterals(AnthropicAccumulator):
    """Parses arguments as a Python literal, in which true, false and null do not exist
    (KeithCu/writeragent#47 removes such a parser)."""

    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_python_literal))


def _python_literal(text: str) -> str:
    try:
        return json.dumps(ast.literal_eval(text)) if text else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return f"no Python literal: {text}"


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class FalsyValuesDropped(AnthropicAccumulator):
    """Drops arguments that are false, 0, empty or null, as if they were not there."""

    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in arguments.items() if value}

        return with_arguments(super().outcome(), changed)


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class NullIsTheTextNone(AnthropicAccumulator):
    """Turns null into the text `None`."""

    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), lambda leaf: "None" if leaf is None else leaf)


def _encoded(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class StringsDecodedAgain(AnthropicAccumulator):
    """Parses string values that look like JSON, so that the text `7` becomes a number."""

    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), _decoded)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class StringsStripped(AnthropicAccumulator):
    """Strips white space from string values, and with it the indent of a line of code."""

    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), str.strip)


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class BackslashesUnescapedTwice(AnthropicAccumulator):
    """Unescapes backslashes a second time: the pattern `\\n` becomes the end of a line."""

    def outcome(self) -> Outcome:
        return with_strings(
            super().outcome(), lambda text: text.replace("\\n", "\n").replace("\\\\", "\\")
        )


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class OnlyAsciiKept(AnthropicAccumulator):
    """Drops characters outside ASCII from string values."""

    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.encode("ascii", "ignore").decode())


@mutant("arguments-concatenate", api="anthropic", family="argument values")
class ArgumentsStayText(AnthropicAccumulator):
    """Reports arguments as JSON text that is encoded twice."""

    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return replace(call, arguments=json.dumps(json.dumps(call.arguments)))

        return with_calls(super().outcome(), changed)


@mutant("raw-arguments-kept", api="anthropic", family="raw arguments")
class RawBeginsWithTheStart(AnthropicAccumulator):
    """Keeps the `{}` of the start and the fragments, joined."""

    def outcome(self) -> Outcome:
        texts = {call.id: call.arguments for call in self._answer._opened}

        def changed(call: Call) -> Call:
            return replace(call, raw_arguments="{}" + texts.get(call.id or "", ""))

        return with_calls(super().outcome(), changed)


# Text and thinking


@mutant("text-accumulates", api="anthropic", family="text")
class TextAfterACallLost(AnthropicAccumulator):
    """Ignores text after a call (pydantic/pydantic-ai#8250 is about such answers)."""

    def _start(self, index: int | None, block: Object) -> None:
        called = any(known.call for known in self._blocks.values())
        type = "ignored" if called and block.get("type") == "text" else block.get("type")
        super()._start(index, {**block, "type": type})


@mutant("text-accumulates", api="anthropic", family="text")
class FirstTextBlockOnly(AnthropicAccumulator):
    """Reads `content[0].text`: the first block of text alone."""

    def _start(self, index: int | None, block: Object) -> None:
        texts = any(known.type == "text" for known in self._blocks.values())
        type = "ignored" if texts and block.get("type") == "text" else block.get("type")
        super()._start(index, {**block, "type": type})


@mutant("text-accumulates", api="anthropic", family="text")
class LastTextBlockOnly(AnthropicAccumulator):
    """Starts the text again with every block."""

    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") == "text":
            self._answer._texts["text"].clear()
        super()._start(index, block)


@mutant("text-accumulates", api="anthropic", family="text")
class EqualFragmentsDropped(AnthropicAccumulator):
    """Drops a fragment of text that equals the one before it."""

    def _delta(self, index: int | None, delta: Object) -> None:
        before = self.__dict__.get("before")
        self.before = string(delta.get("text"))
        if not self.before or before != self.before:
            super()._delta(index, delta)


@mutant("null-tolerant", api="anthropic", family="null and absent")
class NullTextIsNone(AnthropicAccumulator):
    """Appends null as the text `None`."""

    def _delta(self, index: int | None, delta: Object) -> None:
        null = delta.get("type") == "text_delta" and delta.get("text") is None
        super()._delta(index, {**delta, "text": "None"} if null else delta)


@mutant("text-accumulates", api="anthropic", family="reasoning")
class FirstThinkingOnly(AnthropicAccumulator):
    """Reads the first block of thinking alone; tools may be called between two of them."""

    def _start(self, index: int | None, block: Object) -> None:
        known = any(known.type == "thinking" for known in self._blocks.values())
        type = "ignored" if known and block.get("type") == "thinking" else block.get("type")
        super()._start(index, {**block, "type": type})


@mutant("text-accumulates", api="anthropic", family="reasoning")
class RedactedThinkingIsText(AnthropicAccumulator):
    """Adds the data of redacted thinking to the thinking."""

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        if block.get("type") == "redacted_thinking":
            self._answer.add("reasoning", string(block.get("data")), self._blocks[index].slot)


@mutant("text-accumulates", api="anthropic", family="reasoning")
class SignatureIsThinking(AnthropicAccumulator):
    """Adds the signature to the thinking, as the only other string of the delta."""

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        block = self._blocks.get(index)
        if block is not None and delta.get("type") == "signature_delta":
            self._answer.add("reasoning", string(mapping(delta).get("signature")), block.slot)
