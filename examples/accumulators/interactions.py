"""How to put together a stream of Gemini Interactions.

https://ai.google.dev/gemini-api/docs/interactions/streaming

An interaction is a list of steps, each with a start, deltas and a stop; the last event repeats none
of them. A name in backquotes is the quirk that a rule is there for; `mockllm list quirks NAME`
shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from examples.accumulators.answer import Slot, StagedCall, parsed
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import (
    count,
    error_message,
    json_text,
    mapping,
    sequence,
    string,
)
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["InteractionsAccumulator"]

_COUNTS = ("input", "output", "thought", "cached")


@dataclass(slots=True)
class _Step:
    """A step that has begun.

    Args:
        slot: its sort key: its index, then the order of arrival.
        call: the staged call, if the step is a call of a function.
        initial_arguments: the arguments in its start.
        signature: the last one that is not empty.
    """

    type: str
    slot: Slot
    call: StagedCall | None = None
    initial_arguments: str = ""
    signature: str = ""


class InteractionsAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    A stream that ends early looks like one that is complete, but for its last event (`ia-cut`); the
    marker behind that may be missing (`ia-no-done`).
    """

    end = "interaction.completed"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._steps: dict[int | None, _Step] = {}
        self._count = 0
        self._stopped = False

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, thoughts, and the call that surfaces."""
        if self._answer.failed or self._stopped:
            return None
        value = mapping(payload)
        index = count(value.get("index"))
        # The event line only repeats the type in the JSON, and may be missing
        # (`ia-no-event-lines`); events, steps and deltas of new types change nothing
        # (`ia-unknown-types`).
        match string(value.get("event_type")):
            case "interaction.created":
                self._identify(mapping(value.get("interaction")))
            case "step.start":
                self._start(index, mapping(value.get("step")))
            case "step.delta":
                self._delta(index, mapping(value.get("delta")))
            case "step.stop" if index in self._steps:
                self._end(self._steps[index])
            case "interaction.completed":
                self._completed(mapping(value.get("interaction")))
            case _ if value.get("error"):
                # As an event (`ia-error-event`), or without a type, from a server before the
                # service (`ia-front-end-error`).
                self._answer.fail(error_message(value.get("error")))
        return self._answer.delta()

    # The interaction

    def _identify(self, interaction: Mapping[str, Any]) -> None:
        model = string(interaction.get("model")) or string(interaction.get("agent"))
        self._answer.identify(string(interaction.get("id")), model)

    def _completed(self, interaction: Mapping[str, Any]) -> None:
        self._identify(interaction)
        self._usage(mapping(interaction.get("usage")))
        status = string(interaction.get("status"))
        self._answer.finish = status or None
        self._answer.complete = self._stopped = True
        for step in self._steps.values():
            call = None if step.call is None or step.call.closed else step.call
            if call and status == "incomplete" and parsed(call.arguments or "-") is None:
                self._answer.reject(call, f"was cut off: {status}")
            else:
                self._end(step)

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """The thoughts are no part of `total_output_tokens`. The usage in `metadata` is that of the
        stream so far (`ia-metadata-usage`)."""
        counts = [count(usage.get(f"total_{name}_tokens")) for name in _COUNTS]
        if counts != [None] * len(counts):
            sent, output, thoughts, cached = counts
            tools = count(usage.get("total_tool_use_tokens")) or 0
            self._answer.usage = Usage(
                None if sent is None else sent + tools,
                None if output is None else output + (thoughts or 0),
                thoughts,
                cached,
            )

    # Steps

    def _start(self, index: int | None, step: Mapping[str, Any]) -> None:
        type, slot = string(step.get("type")), (index or 0, self._count)
        self._count += 1
        previous = self._steps.get(index)
        if previous is not None:
            self._end(previous)
        begun = self._steps[index] = _Step(type, slot)
        if type == "function_call":
            id, name = string(step.get("id")), string(step.get("name"))
            begun.call = self._answer.open(slot[0], key=index, id=id, name=name)
            begun.initial_arguments = _initial_arguments(step.get("arguments"))
        # A sample of the documentation has the content here (`ia-content-in-start`).
        for content in sequence(step.get("content")):
            self._content(begun, mapping(content))
        begun.signature = string(step.get("signature"))

    def _delta(self, index: int | None, delta: Mapping[str, Any]) -> None:
        # Deltas of several steps may alternate (`ia-interleaved`).
        step = self._steps.get(index)
        if step is None:
            self._answer.fail(f"a delta came for step {index}, which has not started")
            return
        match step.type, delta.get("type"):
            case "function_call", "arguments_delta" if step.call and not step.call.closed:
                step.call.argue(string(delta.get("arguments")))
            case "thought", "thought_summary":
                content = mapping(delta.get("content"))
                self._answer.add("reasoning", string(content.get("text")), step.slot)
            case "thought", "thought_signature":
                # Empty ones come between the summaries (`ia-empty-signatures`).
                step.signature = string(delta.get("signature")) or step.signature
            case _:
                self._content(step, delta)

    def _content(self, step: _Step, content: Mapping[str, Any]) -> None:
        if step.type == "model_output" and content.get("type") == "text":
            self._answer.add("text", string(content.get("text")), step.slot)

    def _end(self, step: _Step) -> None:
        self._answer.keep(step.signature)
        if step.call is not None and not step.call.closed:
            # Arguments in deltas take precedence over those in the start
            # (`ia-arguments-in-start`). A call without either has no arguments, and neither has
            # one with a delta of `{}` (`ia-zero-arg`).
            step.call.replace_arguments(step.call.arguments or step.initial_arguments)
            self._answer.surface(step.call)


def _initial_arguments(value: object) -> str:
    """The arguments in a start as text. The service sends `{}` if they follow in deltas."""
    if isinstance(value, str):
        return value
    return json_text(value) if value else ""
