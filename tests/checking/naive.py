"""A small accumulator for Chat Completions that is correct for plain streams only.

Tests subclass it to make one mistake.
"""

from __future__ import annotations

import json
from typing import Any

from mockllm.checking import Delta, Outcome, Usage


class Naive:
    """What many clients begin with; correct for the streams of OpenAI."""

    def __init__(self) -> None:
        self.text = ""
        self.refusal = ""
        self.reasoning = ""
        self.calls: dict[Any, list[str]] = {}
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.errors: list[str] = []
        self.closed = False

    def feed(self, chunk: Any, event: str | None = None) -> Delta:
        if chunk.get("error"):
            self.errors.append(chunk["error"]["message"])
            return Delta()
        text_before, reasoning_before = self.text, self.reasoning
        if chunk.get("usage"):
            usage = chunk["usage"]
            self.usage = Usage(usage["prompt_tokens"], usage["completion_tokens"])
        for choice in chunk.get("choices") or []:
            self.delta(choice.get("delta") or {})
            self.finish = self.finish or choice.get("finish_reason")
        return Delta(self.text[len(text_before) :], self.reasoning[len(reasoning_before) :])

    def delta(self, delta: dict[str, Any]) -> None:
        self.text += delta.get("content") or ""
        self.refusal += delta.get("refusal") or ""
        self.reasoning += delta.get("reasoning_content") or ""
        for entry in delta.get("tool_calls") or []:
            self.entry(entry)

    def entry(self, entry: dict[str, Any]) -> None:
        call = self.calls.setdefault(self.key(entry), ["", "", ""])
        function = entry.get("function") or {}
        call[0] = call[0] or entry.get("id") or ""
        call[1] = call[1] or function.get("name") or ""
        call[2] += function.get("arguments") or ""

    def key(self, entry: dict[str, Any]) -> Any:
        return entry["index"]

    def close(self) -> None:
        self.closed = True

    def outcome(self) -> Outcome:
        calls, errors = [], list(self.errors)
        for _, (id, name, arguments) in sorted(self.calls.items() if self.finish else ()):
            try:
                calls.append((id, name, json.loads(arguments or "{}")))
            except ValueError:
                errors.append(f"the arguments of {name} are no JSON: {arguments!r}")
        if self.closed and not self.finish and not errors:
            errors.append("the stream was cut")
        return Outcome.of(
            self.text,
            reasoning=self.reasoning,
            refusal=self.refusal,
            tool_calls=calls,
            finish=self.finish,
            usage=self.usage,
            errors=errors,
        )
