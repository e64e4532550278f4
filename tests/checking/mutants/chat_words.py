"""Chat Completions: mistakes with text, reasoning, roles and optional fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.values import mapping
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant

Object = Mapping[str, Any]


@mutant("text-accumulates", api="chat", family="text")
class RoleIsText(ChatAccumulator):
    """Joins every string in a delta, the role included (`chat-role-every-chunk`)."""

    def _delta(self, delta: Object) -> None:
        self._answer.add("text", delta.get("role") or "")
        super()._delta(delta)


@mutant("null-tolerant", api="chat", family="null and absent")
class NullIsAWord(ChatAccumulator):
    """Converts any content to text: "None" where it is null."""

    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if "content" in delta and delta["content"] is None:
            self._answer.add("text", str(delta["content"]))


@mutant("text-accumulates", api="chat", family="text")
class TrimsFragments(ChatAccumulator):
    """Trims the text of each chunk (`sse-trim`, a level higher)."""

    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        trimmed = content.strip() if isinstance(content, str) else content
        super()._delta({**delta, "content": trimmed})


@mutant("text-accumulates", api="chat", family="text")
class DropsRepeatedText(ChatAccumulator):
    """Drops a fragment that the text already ends with (`chat-dedupe-by-overlap`)."""

    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        if isinstance(content, str) and self.outcome().text.endswith(content):
            content = ""
        super()._delta({**delta, "content": content})


@mutant("text-accumulates", api="chat", family="text")
class PartsAsText(ChatAccumulator):
    """Converts a list of content parts to text (`chat-content-parts`)."""

    def _delta(self, delta: Object) -> None:
        content = delta.get("content")
        super()._delta({**delta, "content": str(content) if content else content})


@mutant("text-accumulates", api="chat", family="reasoning")
class SumsReasoning(ChatAccumulator):
    """Joins both fields of reasoning, which hold the same text (`chat-reasoning-fields`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if delta.get("reasoning_content"):
            self._answer.add("reasoning", delta.get("reasoning") or "")


@mutant("text-accumulates", api="chat", family="text")
class MergesChoices(ChatAccumulator):
    """Joins the texts of all choices (`chat-n-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        choices = [{**choice, "index": 0} for choice in payload.get("choices") or []]
        return super().feed({**payload, "choices": choices}, event)


@mutant("text-accumulates", api="chat", family="text")
class NewIdNewMessage(ChatAccumulator):
    """Starts again where the id of the chunk changes (`chat-chunk-id-changes`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("id") not in (None, "", self.__dict__.setdefault("id", payload.get("id"))):
            self.__dict__["id"] = payload["id"]
            self._answer.replace("text", "")
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class FirstChoice(ChatAccumulator):
    """Reads `choices[0]`, which the chunk of the usage does not have (`usage-empty-choices`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if "error" not in payload:
            payload["choices"][0]
        return super().feed(payload, event)


@mutant("null-tolerant", api="chat", family="null and absent")
class DeltaRequired(ChatAccumulator):
    """Raises where a choice has no delta (`chat-delta-null`, `chat-object-empty`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        choice["delta"].get("content")
        super()._choice(choice, failing=failing)


@mutant("null-tolerant", api="chat", family="null and absent")
class ToolCallsRequired(ChatAccumulator):
    """Iterates over `tool_calls` wherever the key is present (`chat-tool-calls-null`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "tool_calls": list(delta.get("tool_calls", ()))})


@mutant("null-tolerant", api="chat", family="null and absent")
class RoleChecked(ChatAccumulator):
    """Raises on a role other than `assistant` (`chat-role-null-empty-never`)."""

    def _delta(self, delta: Object) -> None:
        if delta.get("role", "assistant") != "assistant":
            raise ValueError(f"unknown role {delta['role']!r}")
        super()._delta(delta)


@mutant("null-tolerant", api="chat", family="null and absent")
class TypeRequired(ChatAccumulator):
    """Requires `type` in every call (`chat-type-missing`)."""

    def _fragment(self, entry: Object) -> None:
        if entry.get("id") and mapping(entry.get("function")).get("name"):
            entry["type"]
        super()._fragment(entry)


@mutant("unknown-event", api="chat", family="unknown events")
class FieldsChecked(ChatAccumulator):
    """Raises on a choice with unknown fields (`chat-object-empty`)."""

    def _choice(self, choice: Object, *, failing: bool) -> None:
        unknown = choice.keys() - {"index", "delta", "logprobs", "finish_reason"}
        if unknown:
            raise ValueError(f"unknown fields {unknown}")
        super()._choice(choice, failing=failing)


@mutant("input-untouched", api="chat", family="modified input")
class TakesApart(ChatAccumulator):
    """Removes the delta from the chunk that it is fed."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        choices = payload.get("choices") or []
        deltas = [choice.pop("delta", None) for choice in choices]
        both = zip(choices, deltas, strict=True)
        chunk = {**payload, "choices": [{**choice, "delta": delta} for choice, delta in both]}
        return super().feed(chunk, event)
