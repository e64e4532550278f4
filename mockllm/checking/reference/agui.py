"""How a stream of AG-UI is put together.

https://docs.ag-ui.com/concepts/events

Unlike the others this protocol is made for clients, and tells them what to refuse: events for
calls that are not open, and a run that finishes while something is. A name in backquotes is that
of the quirk that a rule comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from mockllm.checking.outcome import Outcome, TroubleKind, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference.answer import Answer, Malformed, MissingId, StagedCall
from mockllm.checking.reference.values import count, error_words, mapping, sequence, string

__all__ = ["AGUIAccumulator"]

_Words = Literal["text", "reasoning"]

_OURS = (None, "assistant", "reasoning")

_SPANS = {
    "STEP_STARTED": ("step", "stepName", True),
    "STEP_FINISHED": ("step", "stepName", False),
    "REASONING_START": ("reasoning", "messageId", True),
    "REASONING_END": ("reasoning", "messageId", False),
}
"""What says nothing but has to have ended before the run: its kind, what it is told by, and
whether it begins."""


class AGUIAccumulator:
    """Puts the events of one stream together (`Probe`).

    A stream may hold several runs; they add up, and the last one's end counts.

    Args:
        tools: the names of the tools that were offered; None: a call of any tool will do.
        malformed: what becomes of a call whose arguments never parse.
        missing_id: what becomes of a call that never gets an id.
    """

    def __init__(
        self,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._answer = Answer(tools, malformed, missing_id, "RUN_FINISHED or RUN_ERROR")
        self._messages: dict[str, int] = {}
        self._count = 0
        self._foreign: set[str] = set()
        self._calls: dict[str, StagedCall] = {}
        # What has begun and not ended, besides calls: kind and id.
        self._open: set[tuple[str, str]] = set()
        # What chunks began has no end of its own: the calls, the latest of them, and the message.
        self._chunked: dict[str, None] = {}
        self._latest = {"call": "", "message": ""}

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        """What one event adds: its text and reasoning, and the call that surfaces with it."""
        if self._answer.failed:
            return None
        value = mapping(payload)
        type = string(value.get("type"))
        if type.startswith(("TEXT_MESSAGE_", "REASONING_MESSAGE_")):
            kind, _, stage = type.partition("_MESSAGE_")
            self._message("text" if kind == "TEXT" else "reasoning", stage, value)
        elif type in _SPANS:
            self._span(*_SPANS[type], value)
        elif type.startswith("TOOL_CALL_"):
            self._call(type.removeprefix("TOOL_CALL_"), value)
        elif type == "RUN_STARTED":
            self._answer.complete = False
            self._answer.finish = None
        elif type == "RUN_FINISHED":
            self._finished(value)
        elif type == "RUN_ERROR":
            self._usage(value)
            self._answer.fail(error_words(value))
        elif not type and value.get("error"):
            # What a proxy in front puts into the stream.
            self._answer.fail(error_words(value))
        # All else is state, other things to show, or not known (`agui-unknown-event`).
        return self._answer.delta()

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._answer.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return len(self._answer.staged())

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """The stream broke underneath, below what an event can tell."""
        self._answer.fail(message, kind)

    def close(self) -> None:
        """Nothing more comes; without the end of the run it was cut (`agui-no-run-finished`)."""
        self._answer.close()

    # Runs

    def _finished(self, value: Mapping[str, Any]) -> None:
        for id in list(self._chunked):
            self._end(id)
        open = [str(call) for call in self._calls.values()]
        open += sorted(" ".join(each) for each in self._open)
        if open:
            # `agui-open-call-at-finish`: whether that is all of it, nobody knows.
            self._answer.fail(f"RUN_FINISHED came while these were open: {', '.join(open)}")
            return
        # Calls are for the client to run, whether the end says that they wait for it or not
        # (`agui-success-pending`).
        self._usage(value)
        self._answer.finish = "RUN_FINISHED"
        self._answer.complete = True

    def _span(self, kind: str, key: str, begins: bool, value: Mapping[str, Any]) -> None:
        span = kind, string(value.get(key))
        (self._open.add if begins else self._open.discard)(span)

    def _usage(self, value: Mapping[str, Any]) -> None:
        """Adds up the entries: one for each model."""
        entries = list(map(mapping, sequence(value.get("usage"))))
        names = ("inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens")
        if entries:
            told = [[count(entry.get(name)) for entry in entries] for name in names]
            self._answer.usage = Usage(*map(_sum, told))

    # Messages

    def _message(self, kind: _Words, stage: str, value: Mapping[str, Any]) -> None:
        """One event of a message; `stage` is START, CONTENT, END or CHUNK, which is the first
        two in one."""
        id = string(value.get("messageId"))
        if stage == "CHUNK":
            id = self._latest["message"] = id or self._latest["message"]
        if stage == "START" or (stage == "CHUNK" and id not in self._messages):
            self._open_message(id, value.get("role"))
        if stage == "START":
            self._open.add((f"{kind} message", id))
        elif stage == "END":
            self._open.discard((f"{kind} message", id))
        elif stage in ("CONTENT", "CHUNK") and id not in self._foreign:
            slot = self._messages.setdefault(id, self._count)
            # Empty is fine (`agui-empty-delta`), and so is null.
            self._answer.add(kind, string(value.get("delta")), (slot,))

    def _open_message(self, id: str, role: object) -> None:
        self._messages[id] = self._count
        self._count += 1
        # Agents may send messages of others, too: they are no part of the answer.
        (self._foreign.discard if role in _OURS else self._foreign.add)(id)

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
                pass  # the result of a tool that the agent ran itself

    def _start(self, id: str, value: Mapping[str, Any]) -> None:
        # Whose message a call is part of changes nothing here (`agui-phantom-parent`), and
        # several may be open (`agui-parallel-calls`).
        if id in self._calls:
            self._answer.fail(f"TOOL_CALL_START of {id!r}, which is open already")
            return
        name = string(value.get("toolCallName"))
        self._calls[id] = self._answer.open(id=id, name=name)

    def _arguments(self, id: str, value: Mapping[str, Any]) -> None:
        call = self._calls.get(id)
        if call is None:
            # `agui-args-wrong-id`: putting them to another call would run that one wrongly.
            self._answer.fail(f"TOOL_CALL_ARGS for {id!r}, which is not open")
            return
        call.arguments += string(value.get("delta"))

    def _end(self, id: str) -> None:
        call = self._calls.pop(id, None)
        self._chunked.pop(id, None)
        if call is None:
            self._answer.fail(f"TOOL_CALL_END of {id!r}, which is not open")
            return
        # Without any arguments on the way, they are `{}` (`agui-zero-arg`).
        self._answer.surface(call)

    def _chunk(self, id: str, value: Mapping[str, Any]) -> None:
        """Start and arguments in one. Chunks of several calls may alternate, although they
        should not (`agui-chunk-interleave`), so a call is only complete with the run."""
        id = self._latest["call"] = id or self._latest["call"]
        if id not in self._calls:
            if not string(value.get("toolCallName")):
                self._answer.fail(f"the first TOOL_CALL_CHUNK of {id!r} has no toolCallName")
                return
            self._start(id, value)
            self._chunked[id] = None
        self._arguments(id, value)


def _sum(counts: list[int | None]) -> int | None:
    told = [number for number in counts if number is not None]
    return sum(told) if told else None
