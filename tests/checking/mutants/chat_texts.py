"""Mistakes with text, reasoning and refusals in Chat Completions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from examples.accumulators import ChatAccumulator
from examples.accumulators.values import mapping
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.chat_arguments import entries

Object = Mapping[str, Any]


class RoleIsText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        self._answer.add("text", delta.get("role") or "")
        super()._delta(delta)


class NullIsAWord(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if "content" in delta and delta["content"] is None:
            self._answer.add("text", str(delta["content"]))


class TrimsFragments(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        trimmed = content.strip() if isinstance(content, str) else content
        super()._delta({**delta, "content": trimmed})


class DropsRepeatedText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        if isinstance(content, str) and self.outcome().text.endswith(content):
            content = ""
        super()._delta({**delta, "content": content})


class PartsAsText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        super()._delta({**delta, "content": str(content) if content else content})


class SumsReasoning(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if delta.get("reasoning_content"):
            self._answer.add("reasoning", delta.get("reasoning") or "")


class MergesChoices(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        choices = [{**choice, "index": 0} for choice in payload.get("choices") or []]
        return super().feed({**payload, "choices": choices}, event)


class NewIdNewMessage(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("id") not in (None, "", self.__dict__.setdefault("id", payload.get("id"))):
            self.__dict__["id"] = payload["id"]
            self._answer.replace("text", "")
        return super().feed(payload, event)


class FirstChoice(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" not in payload:
            payload["choices"][0]
        return super().feed(payload, event)


class DeltaRequired(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        choice["delta"].get("content")
        super()._choice(choice, failing=failing)


class ToolCallsRequired(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "tool_calls": list(delta.get("tool_calls", ()))})


class RoleChecked(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("role", "assistant") != "assistant":
            raise ValueError(f"unknown role {delta['role']!r}")
        super()._delta(delta)


class TypeRequired(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        if entry.get("id") and mapping(entry.get("function")).get("name"):
            entry["type"]
        super()._fragment(entry)


class FieldsChecked(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        unknown = choice.keys() - {"index", "delta", "logprobs", "finish_reason"}
        if unknown:
            raise ValueError(f"unknown fields {unknown}")
        super()._choice(choice, failing=failing)


class TakesApart(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        choices = payload.get("choices") or []
        deltas = [choice.pop("delta", None) for choice in choices]
        both = zip(choices, deltas, strict=True)
        chunk = {**payload, "choices": [{**choice, "delta": delta} for choice, delta in both]}
        return super().feed(chunk, event)


_MOST_TEXT = 4096


def _with_content(delta: Object, change: Callable[[str], str | None]) -> Object:
    """The delta with changed content, if that is text."""
    content = delta.get("content")
    return {**delta, "content": change(content)} if isinstance(content, str) else delta


# Text


class BlankTextLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: text if text.strip() else ""))


class FirstSpacesLost(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.lstrip())


class LineEndsLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: text.replace("\n", " ")))


class EqualTextLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        same = bool(content) and content == self.__dict__.get("before")
        self.__dict__["before"] = content or self.__dict__.get("before")
        super()._delta(_with_content(delta, lambda text: "" if same else text))


class OverlapsMerged(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        text = self.outcome().text

        def merged(fragment: str) -> str:
            lengths = range(min(len(text), len(fragment) - 1), 0, -1)
            overlap = next((n for n in lengths if text.endswith(fragment[:n])), 0)
            return fragment[overlap:]

        super()._delta(_with_content(delta, merged))


class LongerTextReplaces(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        text = self.outcome().text
        super()._delta(
            _with_content(delta, lambda fragment: fragment.removeprefix(text) if text else fragment)
        )


class NullWordLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: "" if text.strip() in ("null", "None") else text)
        )


class ZeroIsEmpty(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if text == "0" else text))


class DoneInTextEnds(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        ended = self.__dict__.get("ended", False)
        self.__dict__["ended"] = ended or "[DONE]" in str(payload)
        return None if self.__dict__["ended"] else super().feed(payload, event)


class EntitiesInText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: text.replace("&", "&amp;").replace("<", "&lt;"))
        )


class FirstPartOnly(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        first = content[:1] if isinstance(content, list) else content
        super()._delta({**delta, "content": first})


class TextIsAList(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        fragments = list(outcome.text) if outcome.text else ""
        return replace(outcome, text=cast("str", fragments))


class LongTextCut(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text[:_MOST_TEXT])


class AsciiOnly(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(
            _with_content(delta, lambda text: text.encode("ascii", "ignore").decode("ascii"))
        )


class TextNormalised(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=unicodedata.normalize("NFKC", outcome.text))


# Text and calls in one answer


class TextAfterCallLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if self._calls else text))


class CallHidesText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(_with_content(delta, lambda text: "" if entries(delta) else text))


class TextHidesCall(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        has_text = isinstance(delta.get("content"), str)
        super()._delta({**delta, "tool_calls": None} if has_text else delta)


# Reasoning


class ReasoningAfterTextLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        fields = ("reasoning", "reasoning_content", "reasoning_details")
        thoughtless = {key: value for key, value in delta.items() if key not in fields}
        super()._delta(thoughtless if self._answer.has("text") else delta)


class ReasoningHidesText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        fields = ("reasoning", "reasoning_content")
        thinking = any(isinstance(delta.get(name), str) for name in fields)
        super()._delta(_with_content(delta, lambda text: "" if thinking else text))


class ReasoningContentUnknown(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning_content": None})


class ReasoningUnknown(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning": None})


class ReasoningDetailsUnknown(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "reasoning_details": None})


class ReasoningOverwritten(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("reasoning") or delta.get("reasoning_content"):
            self._answer._texts["reasoning"].clear()
        super()._delta(delta)


class ReasoningTrimmed(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        trimmed = {
            name: text.strip()
            for name in ("reasoning", "reasoning_content")
            if isinstance(text := delta.get(name), str)
        }
        super()._delta({**delta, **trimmed})


# Refusals


class RefusalOverwritten(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("refusal"):
            self._answer._texts["refusal"].clear()
        super()._delta(delta)


class ReasoningAfterCallsLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if self._calls:
            delta = {key: each for key, each in delta.items() if not key.startswith("reasoning")}
        super()._delta(delta)


class SummariesAreNoReasoning(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("reasoning_details"):
            delta = {key: each for key, each in delta.items() if not key.startswith("reasoning_c")}
            details = [
                {key: each for key, each in detail.items() if key != "summary"}
                for detail in delta["reasoning_details"]
            ]
            delta = {**delta, "reasoning": None, "reasoning_details": details}
        super()._delta(delta)


class ThinkingBetweenTagsDropped(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=re.sub("<think>.*</think>", "", outcome.text))


class OpeningTagDropped(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.replace("<think>", ""))


class PartIsText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        if isinstance(content, list):
            kept = (
                part if "type" not in part or "text" in part["type"] else str(part)
                for part in content
            )
            texts = (part if isinstance(part, str) else part.get("text", "") for part in kept)
            delta = {**delta, "content": "".join(texts)}
        super()._delta(delta)


class PartNeedsAText(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if isinstance(delta.get("content"), list):
            _texts = [part["text"] for part in delta["content"] if part["type"] != "thinking"]
        super()._delta(delta)


class TextBesideImagesLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "content": None} if delta.get("images") else delta)


class SummariesLost(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        details = [one for one in delta.get("reasoning_details") or [] if "summary" not in one]
        super()._delta({**delta, "reasoning_details": details})


class TokensOfLogprobsAreText(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        super()._choice(choice, failing=failing)
        for token in mapping(choice.get("logprobs")).get("content") or []:
            self._answer.add("text", token["token"])
