"""Mistakes with texts, signatures and the values of arguments in Messages."""

from __future__ import annotations

import ast
import html
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import AnthropicAccumulator
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking.outcome import Call, Outcome
from tests.checking.mutants.altered import (
    answer_of,
    rewriting_arguments,
    with_arguments,
    with_calls,
    with_leaves,
    with_strings,
)

Object = Mapping[str, Any]


class PrefixesDropped(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        text, known = string(delta.get("text")), self.outcome().text
        if not text or not known.startswith(text):
            super()._delta(index, delta)


class LongerFragmentsReplace(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        text, known = string(delta.get("text")), self.outcome().text
        if known and text.startswith(known):
            self._answer._texts["text"].clear()
        super()._delta(index, delta)


class CitedTextIsText(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        block = self._blocks.get(index)
        cited = string(mapping(delta.get("citation")).get("cited_text"))
        if block is not None and cited:
            self._answer.add("text", cited, block.slot)


class ResultsOfServerToolsAreText(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        if string(block.get("type")).endswith("_tool_result"):
            for result in map(mapping, sequence(block.get("content"))):
                self._answer.add("text", string(result.get("title")), self._blocks[index].slot)


class ThinkingAfterTextLost(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        texts = any(known.type == "text" for known in self._blocks.values())
        ignored = texts and block.get("type") == "thinking"
        super()._start(index, {**block, "type": "ignored"} if ignored else block)


class ThinkingOfTheStartLost(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, {**block, "thinking": ""})


class UnknownStopReasonIsTheEnd(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        super()._message_delta(value)
        if self._answer.finish not in (None, "tool_use", "max_tokens", "stop_sequence"):
            self._answer.finish = "end_turn"


class StopReasonOfTheFirstDelta(AnthropicAccumulator):
    def _message_delta(self, value: Object) -> None:
        if "ended" not in self.__dict__:
            super()._message_delta(value)
        self.ended = True


class _Signatures(AnthropicAccumulator):
    """Keeps opaque values by block, correctly; mutants derive from it."""

    def __init__(self) -> None:
        super().__init__()
        self.opaque: dict[int, str] = {}

    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        self._append(string(block.get("signature")) or string(block.get("data")))

    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        if delta.get("type") == "signature_delta" and index in self._blocks:
            self._append(string(delta.get("signature")), self._blocks[index].slot[1])

    def _append(self, value: str, block: int | None = None) -> None:
        if value:
            key = self._count - 1 if block is None else block
            self.opaque[key] = self.opaque.get(key, "") + value

    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values()))


class SignatureAssigned(_Signatures):
    def _append(self, value: str, block: int | None = None) -> None:
        if value and block is not None:
            self.opaque.pop(block, None)
        super()._append(value, block)


class SignaturesLost(_Signatures):
    def _append(self, value: str, block: int | None = None) -> None:
        if block is None:
            super()._append(value, block)


class LastSignatureOnly(_Signatures):
    def outcome(self) -> Outcome:
        return replace(super().outcome(), opaque=tuple(self.opaque.values())[-1:])


class SignaturesJoined(_Signatures):
    def outcome(self) -> Outcome:
        joined = "".join(self.opaque.values())
        return replace(super().outcome(), opaque=(joined,) if joined else ())


class RedactedThinkingDropped(_Signatures):
    def _append(self, value: str, block: int | None = None) -> None:
        if block is not None:
            super()._append(value, block)


class SignatureWithoutThinkingDropped(_Signatures):
    def outcome(self) -> Outcome:
        thinking = {slot[1] for slot in self._answer._texts["reasoning"] if len(slot) > 1}
        redacted = {key for key in self.opaque if self._type(key) == "redacted_thinking"}
        kept = (self.opaque[key] for key in self.opaque if key in thinking | redacted)
        return replace(super().outcome(), opaque=tuple(kept))

    def _type(self, number: int) -> str:
        return next((b.type for b in self._blocks.values() if b.slot[1] == number), "")


class SignatureStripped(_Signatures):
    def outcome(self) -> Outcome:
        values = tuple(value.rstrip("=") for value in self.opaque.values())
        return replace(super().outcome(), opaque=values)


class HtmlEscaped(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), html.escape)


class PythonLiterals(AnthropicAccumulator):
    def __init__(self) -> None:
        super().__init__()
        answer_of(self, rewriting_arguments(_python_literal))


def _python_literal(text: str) -> str:
    try:
        return json.dumps(ast.literal_eval(text)) if text else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return f"no Python literal: {text}"


class FalsyValuesDropped(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        def changed(arguments: dict[str, Any]) -> dict[str, Any]:
            return {key: value for key, value in arguments.items() if value}

        return with_arguments(super().outcome(), changed)


class NullIsTheTextNone(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), lambda leaf: "None" if leaf is None else leaf)


def _encoded(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


class StringsDecodedAgain(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), _decoded)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class StringsStripped(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), str.strip)


class BackslashesUnescapedTwice(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(
            super().outcome(), lambda text: text.replace("\\n", "\n").replace("\\\\", "\\")
        )


class OnlyAsciiKept(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.encode("ascii", "ignore").decode())


class ArgumentsStayText(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        def changed(call: Call) -> Call:
            return replace(call, arguments=json.dumps(json.dumps(call.arguments)))

        return with_calls(super().outcome(), changed)


class RawBeginsWithTheStart(AnthropicAccumulator):
    def outcome(self) -> Outcome:
        texts = {call.id: call.arguments for call in self._answer._opened}

        def changed(call: Call) -> Call:
            return replace(call, raw_arguments="{}" + texts.get(call.id or "", ""))

        return with_calls(super().outcome(), changed)


# Text and thinking


class TextAfterACallLost(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        called = any(known.call for known in self._blocks.values())
        type = "ignored" if called and block.get("type") == "text" else block.get("type")
        super()._start(index, {**block, "type": type})


class FirstTextBlockOnly(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        texts = any(known.type == "text" for known in self._blocks.values())
        type = "ignored" if texts and block.get("type") == "text" else block.get("type")
        super()._start(index, {**block, "type": type})


class LastTextBlockOnly(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        if block.get("type") == "text":
            self._answer._texts["text"].clear()
        super()._start(index, block)


class EqualFragmentsDropped(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        before = self.__dict__.get("before")
        self.before = string(delta.get("text"))
        if not self.before or before != self.before:
            super()._delta(index, delta)


class NullTextIsNone(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        null = delta.get("type") == "text_delta" and delta.get("text") is None
        super()._delta(index, {**delta, "text": "None"} if null else delta)


class FirstThinkingOnly(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        known = any(known.type == "thinking" for known in self._blocks.values())
        type = "ignored" if known and block.get("type") == "thinking" else block.get("type")
        super()._start(index, {**block, "type": type})


class RedactedThinkingIsText(AnthropicAccumulator):
    def _start(self, index: int | None, block: Object) -> None:
        super()._start(index, block)
        if block.get("type") == "redacted_thinking":
            self._answer.add("reasoning", string(block.get("data")), self._blocks[index].slot)


class SignatureIsThinking(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        super()._delta(index, delta)
        block = self._blocks.get(index)
        if block is not None and delta.get("type") == "signature_delta":
            self._answer.add("reasoning", string(mapping(delta).get("signature")), block.slot)


class TextOfEveryBlock(AnthropicAccumulator):
    def _delta(self, index: int | None, delta: Object) -> None:
        block = self._blocks.get(index)
        if block is not None and block.type != "text" and delta.get("type") == "text_delta":
            self._answer.add("text", str(delta.get("text") or ""), block.slot)
        super()._delta(index, delta)
