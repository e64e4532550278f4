"""How to put together a stream of OpenAI's legacy Completions.

https://platform.openai.com/docs/api-reference/completions

The API has texts only: no calls, no reasoning, no roles. A name in backquotes is the quirk that a
rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from examples.accumulators.base import Accumulator
from examples.accumulators.values import count, error_message, mapping, sequence, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["CompletionsAccumulator"]


class CompletionsAccumulator(Accumulator):
    """Puts the chunks of one stream together (a `Probe`).

    Without a finish reason the stream was cut (`compl-finish-never`); a missing `[DONE]` is
    accepted (`compl-no-done`). There are no calls.
    """

    end = "a finish_reason"

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one chunk adds: text."""
        if self._answer.failed:
            return None
        chunk = mapping(payload)
        # The first id counts: some servers make one for each chunk (`compl-id-changes`).
        self._answer.identify(string(chunk.get("id")), string(chunk.get("model")))
        bare = event == "error" or chunk.get("object") == "error"
        error = chunk.get("error") or (payload if bare else None)
        # The chunk with usage has an empty list; others have one, too, or null
        # (`compl-no-choices`).
        for choice in map(mapping, sequence(chunk.get("choices"))):
            # Only the first choice (`compl-n-choices`). Several choices need one accumulator each.
            if not choice.get("index"):
                self._choice(choice, failing=error is not None)
        self._usage(mapping(chunk.get("usage")))
        if error is not None:
            self._answer.fail(error_message(error))
        return self._answer.delta()

    def _choice(self, choice: Mapping[str, Any], *, failing: bool) -> None:
        # The text of the last chunk may be missing or null (`compl-text-absent`), and other servers
        # send the last words with the finish reason (`compl-finish-with-text`).
        self._answer.add("text", string(choice.get("text")))
        # Null and "" mean that the answer goes on (`compl-finish-empty`); the first other value
        # counts (`compl-finish-twice`).
        finish = string(choice.get("finish_reason"))
        if finish and not failing:
            self._answer.finish = self._answer.finish or finish
            self._answer.complete = True

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Takes usage from any chunk; the last one counts, since each is a total
        (`compl-usage-every-chunk`)."""
        prompt, completion = (
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
        )
        if prompt is None and completion is None:
            return
        reasoning = mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")
        cached = mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
        self._answer.usage = Usage(prompt, completion, count(reasoning), count(cached))
