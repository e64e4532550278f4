"""How to put together a stream of AG-UI.

https://docs.ag-ui.com/concepts/events

Unlike the other protocols, AG-UI says what a client must refuse: events for calls that are not
open, and a run that finishes while anything is open. A name in backquotes is the quirk that a rule
is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from examples.accumulators.answer import StagedCall
from examples.accumulators.base import Accumulator, Options
from examples.accumulators.values import count, error_message, mapping, sequence, string
from mockllm.checking.outcome import Usage
from mockllm.checking.probes import Delta

__all__ = ["AGUIAccumulator"]

_TextKind = Literal["text", "reasoning"]

_MESSAGES: dict[str, _TextKind] = {
    "TEXT": "text",
    "REASONING": "reasoning",
    # Before version 1.0, without an id. The client of the protocol reads it as reasoning.
    "THINKING_TEXT": "reasoning",
}
"""By the beginning of the types of its events: the kind of a message."""

_ANSWER_ROLES = (None, "assistant", "reasoning")

_SPANS = {
    "STEP_STARTED": ("step", "stepName", True),
    "STEP_FINISHED": ("step", "stepName", False),
    "REASONING_START": ("reasoning", "messageId", True),
    "REASONING_END": ("reasoning", "messageId", False),
}
"""Events without content of a span that must end before its run: the kind of span, the field that
identifies it, and whether the event begins it."""


class AGUIAccumulator(Accumulator):
    """Puts the events of one stream together (a `Probe`).

    A stream may have several runs: their texts and calls are joined, and the last end counts.

    Without the end of the run the stream was cut (`agui-no-run-finished`).
    """

    end = "RUN_FINISHED or RUN_ERROR"

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self._messages: dict[str, int] = {}
        self._count = 0
        self._other_messages: set[str] = set()
        self._calls: dict[str, StagedCall] = {}
        self._called: set[str] = set()
        # Spans and messages that have begun and not ended: kind and id.
        self._open_spans: set[tuple[str, str]] = set()
        # Calls that began with a chunk have no end event. An ordered set.
        self._chunked: dict[str, None] = {}
        # The ids that a chunk without an id continues.
        self._latest = {"call": "", "text": "", "reasoning": ""}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: text, reasoning, and the calls that surface."""
        if self._answer.failed:
            return None
        value = mapping(payload)
        type = string(value.get("type"))
        kind, _, stage = type.partition("_MESSAGE_")
        if stage and kind in _MESSAGES:
            self._message(_MESSAGES[kind], stage, value)
        elif type in _SPANS:
            self._span(*_SPANS[type], value)
        elif type.startswith("TOOL_CALL_"):
            self._call(type.removeprefix("TOOL_CALL_"), value)
        elif type == "REASONING_ENCRYPTED_VALUE":
            # Of a message or of a call. It has to be sent back unchanged.
            self._answer.keep(string(value.get("encryptedValue")))
        elif type == "RUN_STARTED":
            self._answer.complete = False
            self._answer.finish = None
        elif type == "RUN_FINISHED":
            self._finished(value)
        elif type == "RUN_ERROR":
            self._usage(value)
            self._answer.fail(error_message(value))
        elif not type and value.get("error"):
            # An error of a proxy in front of the agent.
            self._answer.fail(error_message(value))
        # Other events are state, content for the user interface, or unknown
        # (`agui-unknown-event`).
        return self._answer.delta()

    # Runs

    def _finished(self, value: Mapping[str, Any]) -> None:
        for id in list(self._chunked):
            self._end(id)
        if self._answer.failed:
            return
        open = [str(call) for call in self._calls.values()]
        open += sorted(" ".join(span) for span in self._open_spans)
        if open:
            # The call may be incomplete (`agui-open-call-at-finish`).
            self._answer.fail(f"RUN_FINISHED came while these were open: {', '.join(open)}")
            return
        # The client runs the calls, whether or not the outcome says that they are pending
        # (`agui-success-pending`).
        self._usage(value)
        self._answer.finish = "RUN_FINISHED"
        self._answer.complete = True

    def _span(self, kind: str, key: str, begins: bool, value: Mapping[str, Any]) -> None:
        span = kind, string(value.get(key))
        (self._open_spans.add if begins else self._open_spans.discard)(span)

    def _usage(self, value: Mapping[str, Any]) -> None:
        """Adds up the entries, one for each model."""
        entries = list(map(mapping, sequence(value.get("usage"))))
        names = ("inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens")
        if entries:
            counts = [[count(entry.get(name)) for entry in entries] for name in names]
            self._answer.usage = Usage(*map(_sum, counts))

    # Messages

    def _message(self, kind: _TextKind, stage: str, value: Mapping[str, Any]) -> None:
        """One event of a message.

        Args:
            stage: START, CONTENT or END; or CHUNK, which combines the first two.
        """
        id = string(value.get("messageId"))
        if stage == "CHUNK":
            id = self._latest[kind] = id or self._latest[kind]
        if stage == "START" or (stage == "CHUNK" and id not in self._messages):
            self._open_message(id, value.get("role"))
        if stage == "START":
            self._open_spans.add((f"{kind} message", id))
        elif stage == "END":
            self._open_spans.discard((f"{kind} message", id))
        elif stage in ("CONTENT", "CHUNK") and id not in self._other_messages:
            slot = self._messages.setdefault(id, self._count)
            # A delta may be empty (`agui-empty-delta`) or null, and come after the end of its
            # message (`agui-after-message-end`).
            self._answer.add(kind, string(value.get("delta")), (slot,))

    def _open_message(self, id: str, role: object) -> None:
        self._messages[id] = self._count
        self._count += 1
        # Messages of other roles are not part of the answer.
        (self._other_messages.discard if role in _ANSWER_ROLES else self._other_messages.add)(id)

    # Calls

    def _call(self, stage: str, value: Mapping[str, Any]) -> None:
        id = string(value.get("toolCallId"))
        match stage:
            case "START":
                self._start(id, value)
            case "ARGS":
                self._arguments(id, value)
            case "END":
                self._end(id)
            case "CHUNK":
                self._chunk(id, value)
            case _:
                pass  # TOOL_CALL_RESULT: the agent ran the tool itself

    def _start(self, id: str, value: Mapping[str, Any]) -> None:
        # The parent message is ignored, since it need not exist (`agui-phantom-parent`,
        # `agui-parent-null`). Several calls may be open at once (`agui-parallel-calls`). A call
        # that begins again would run twice, or with half of its arguments (`agui-start-replayed`).
        if id in self._called:
            self._answer.fail(f"TOOL_CALL_START of {id!r}, which has begun already")
            return
        self._called.add(id)
        name = string(value.get("toolCallName"))
        self._calls[id] = self._answer.open(id=id, name=name)

    def _arguments(self, id: str, value: Mapping[str, Any]) -> None:
        call = self._calls.get(id)
        if call is None:
            # Another call would run with the wrong arguments (`agui-args-wrong-id`).
            self._answer.fail(f"TOOL_CALL_ARGS for {id!r}, which is not open")
            return
        call.argue(string(value.get("delta")))

    def _end(self, id: str) -> None:
        call = self._calls.pop(id, None)
        self._chunked.pop(id, None)
        if call is None:
            self._answer.fail(f"TOOL_CALL_END of {id!r}, which is not open")
            return
        # A call without ARGS events has no arguments (`agui-zero-arg`).
        self._answer.surface(call)

    def _chunk(self, id: str, value: Mapping[str, Any]) -> None:
        """Start and arguments in one event.

        Chunks of several calls may alternate, against the specification
        (`agui-chunk-interleave`). So these calls end with the run, not with the next call.
        """
        id = self._latest["call"] = id or self._latest["call"]
        if id not in self._calls:
            if not string(value.get("toolCallName")):
                self._answer.fail(f"the first TOOL_CALL_CHUNK of {id!r} has no toolCallName")
                return
            self._start(id, value)
            self._chunked[id] = None
        self._arguments(id, value)


def _sum(counts: list[int | None]) -> int | None:
    known = [number for number in counts if number is not None]
    return sum(known) if known else None
