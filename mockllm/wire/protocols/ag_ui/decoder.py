"""Reads the stream of a run, from agents of any version.

https://docs.ag-ui.com/concepts/events

Events are read by their JSON `type`. Messages may lack their start or their end; a `*_CHUNK` event
is a start and its content; the `THINKING_*` events of versions before 1.0 are reasoning. The runs
of one stream are one answer, with the end of the last run (an error in any of them is the answer's
error). Events without a neutral form are kept as `Raw`. Steps, state, snapshots, activities,
subagents, results of tools that the agent ran itself, and the end of a run with a result or an
interrupt are native parts (`native`); comments and messages of other roles are frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.ag_ui import API
from mockllm.wire.protocols.ag_ui.native import NATIVE
from mockllm.wire.protocols.ag_ui.objects import event_in, read_usage
from mockllm.wire.protocols.base import dumps, no_body
from mockllm.wire.protocols.native import native_event
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import string

Kind = Literal["text", "reasoning", "call"]


@dataclass(slots=True)
class Part:
    """A message or a call. `used` is whether any event with its key was returned; `open` is
    whether more may come."""

    key: int
    kind: Kind
    id: str
    used: bool = False
    open: bool = True


class Assembly:
    """The parts of an answer while its events arrive."""

    def __init__(self) -> None:
        self.complete = False
        self.called = False
        self.runs: list[tuple[object, object]] = []
        self.parts: dict[tuple[Kind, str], Part] = {}
        self.others: set[str] = set()
        self._latest: dict[Kind, Part] = {}
        self._next = 0

    def new_key(self) -> int:
        """The key of the next part; keys count up in the order in which parts open."""
        self._next += 1
        return self._next - 1

    def open(self, kind: Kind, id: str) -> Part:
        """A new part."""
        part = Part(self.new_key(), kind, id)
        self.parts[kind, id] = self._latest[kind] = part
        return part

    def find(self, kind: Kind, id: object) -> Part | None:
        """The open part with an id, or without an id the latest one of its kind; None if it is not
        open."""
        part = self.parts.get((kind, id)) if isinstance(id, str) else self._latest.get(kind)
        return part if part is not None and part.open else None

    def close(self, part: Part) -> Iterator[ev.Event]:
        """The events that end a part; one without content becomes an empty one."""
        part.open = False
        if not part.used:
            yield delta(part, "")
        yield ev.PartEnd(part.key)

    def close_all(self) -> Iterator[ev.Event]:
        """The events that end all parts that are still open."""
        for part in self.parts.values():
            if part.open:
                yield from self.close(part)


def delta(part: Part, text: str) -> ev.Event:
    """The event for a fragment of a part."""
    part.used = True
    match part.kind:
        case "text":
            return ev.TextDelta(part.key, text)
        case "reasoning":
            return ev.ReasoningDelta(part.key, text)
        case "call":
            return ev.ToolArgs(part.key, text)


class Decoder:
    """Turns the frames of one stream into events. `complete` is true once a run has finished or
    failed, and false again if another begins."""

    def __init__(self) -> None:
        self._assembly = Assembly()

    @property
    def complete(self) -> bool:
        return self._assembly.complete

    def decode(self, frame: Frame) -> list[ev.Event]:
        """The events of a frame; `Raw` for a frame without a neutral form."""
        value = event_in(frame)
        if value is None:
            return [self._raw(frame)]
        events = _HANDLERS.get(value["type"], _unknown)(self._assembly, value)
        return [self._other(frame, value) if event is None else event for event in events]

    def close(self) -> list[ev.Event]:
        """The ends of parts that are still open when the stream ends."""
        return list(self._assembly.close_all())

    def _other(self, frame: Frame, value: Json) -> ev.Raw:
        """An event that is no text, reasoning or call: a native part, if it is of a known shape."""
        key, runs = self._assembly.new_key(), self._assembly.runs
        if value["type"] == "RUN_FINISHED" and runs == [_ids(value)]:
            made = ("threadId", "runId", "usage")  # by the encoder, for the run that is asked for
            value = {name: field for name, field in value.items() if name not in made}
        return native_event(key, API, value, NATIVE) or ev.Raw(key, API, frame)

    def _raw(self, frame: Frame) -> ev.Raw:
        return ev.Raw(self._assembly.new_key(), API, frame)


def decode_body(body: Fields) -> Turn:
    """The turn of a list of events, `{"events": [...]}`, with one fragment for each part; raises
    `WireError` without one."""
    events = body.get("events")
    if not isinstance(events, list):
        raise no_body("an AG-UI body", "`events` (an array)", body)
    decoder = Decoder()
    decoded = [event for value in events for event in decoder.decode(Frame(dumps(value)))]
    return fold(ev.Timed(0, event) for event in [*decoded, *decoder.close()]).whole()


_Events = Iterable[ev.Event | None]
"""The result of a handler; None stands for the frame itself, kept as `Raw`."""

_Handler = Callable[[Assembly, Fields], _Events]


def _unknown(assembly: Assembly, value: Fields) -> _Events:
    return (None,)


def _nothing(assembly: Assembly, value: Fields) -> _Events:
    return ()


# Runs


def _run_started(assembly: Assembly, value: Fields) -> _Events:
    assembly.complete = False  # the client accepts several runs in one stream
    assembly.runs.append(_ids(value))
    yield ev.Start(string(value.get("runId")))


def _ids(value: Fields) -> tuple[object, object]:
    return value.get("threadId"), value.get("runId")


def _run_finished(assembly: Assembly, value: Fields) -> _Events:
    yield from assembly.close_all()
    if not _plain(value):
        yield None
    yield from _usage(value)
    assembly.complete = True
    yield ev.Finish("tool_calls" if assembly.called else "stop")


def _plain(value: Fields) -> bool:
    """Whether a run ended without a result, and neither interrupted nor cancelled."""
    outcome = value.get("outcome")
    kind = outcome.get("type") if isinstance(outcome, Mapping) else outcome
    return value.get("result") is None and kind in (None, "success")


def _run_error(assembly: Assembly, value: Fields) -> _Events:
    yield from assembly.close_all()
    yield from _usage(value)
    assembly.complete = True
    message = value.get("message")
    text = message if isinstance(message, str) else "the run failed"
    yield ev.StreamError(text, None, string(value.get("code")) or None)


def _usage(value: Fields) -> _Events:
    usage = read_usage(value.get("usage"))
    return () if usage is None else (usage,)


# Messages


def _message_start(assembly: Assembly, value: Fields, kind: Kind) -> _Events:
    id = string(value.get("messageId"))
    if _of_another(value):
        assembly.others.add(id)
        yield None
        return
    assembly.others.discard(id)
    before = assembly.find(kind, id)
    if before is not None:
        yield from assembly.close(before)
    assembly.open(kind, id)


def _of_another(value: Fields) -> bool:
    return value.get("role") not in (None, "assistant", "reasoning")


def _message_content(assembly: Assembly, value: Fields, kind: Kind) -> _Events:
    id, text = string(value.get("messageId")), value.get("delta")
    if not isinstance(text, str) or id in assembly.others:
        return (None,)
    return (delta(assembly.find(kind, id) or assembly.open(kind, id), text),)


def _end(assembly: Assembly, value: Fields, kind: Kind) -> _Events:
    name = "toolCallId" if kind == "call" else "messageId"
    part = assembly.find(kind, string(value.get(name)))
    return (None,) if part is None else assembly.close(part)


def _message_chunk(assembly: Assembly, value: Fields, kind: Kind) -> _Events:
    id, text = value.get("messageId"), value.get("delta")
    if _of_another(value) or string(id) in assembly.others:
        assembly.others.add(string(id))
        return (None,)
    part = assembly.find(kind, id) or assembly.open(kind, string(id))
    return (delta(part, text),) if isinstance(text, str) else ()


def _signature(assembly: Assembly, value: Fields) -> _Events:
    id, signature = string(value.get("entityId")), value.get("encryptedValue")
    kind: Kind = "call" if value.get("subtype") == "tool-call" else "reasoning"
    part = assembly.parts.get((kind, id))
    if part is None and kind == "reasoning" and ("text", id) not in assembly.parts:
        # Reasoning whose text is hidden has an encrypted value only.
        part = assembly.open(kind, id)
        part.open = False
    if part is None or not isinstance(signature, str):
        return (None,)
    part.used = True
    return (ev.Signature(part.key, signature),)


# Tool calls


def _call_start(assembly: Assembly, value: Fields) -> _Events:
    id, name = value.get("toolCallId"), value.get("toolCallName")
    # A call that is started again is replayed (after a reconnection, for example), and is no other
    # one: what follows goes to it while it is open, and is kept as it is when it has ended.
    if not isinstance(id, str) or not isinstance(name, str) or ("call", id) in assembly.parts:
        yield None
        return
    part = assembly.open("call", id)
    part.used = assembly.called = True
    yield ev.ToolStart(part.key, id, name)


def _call_args(assembly: Assembly, value: Fields) -> _Events:
    part = assembly.find("call", string(value.get("toolCallId")))
    text = value.get("delta")
    return (delta(part, text),) if part is not None and isinstance(text, str) else (None,)


def _call_chunk(assembly: Assembly, value: Fields) -> _Events:
    id, text = value.get("toolCallId"), value.get("delta")
    latest = assembly.find("call", None)
    if value.get("toolCallName") is not None and (latest is None or id not in (None, latest.id)):
        yield from _call_start(assembly, value)
    elif assembly.find("call", id) is None:
        yield None
        return
    part = assembly.find("call", id)
    if part is not None and isinstance(text, str):
        yield delta(part, text)


def _messages(stem: str, kind: Kind) -> dict[str, _Handler]:
    """The handlers of the events of messages, from the beginning of their types."""
    return {
        f"{stem}_START": partial(_message_start, kind=kind),
        f"{stem}_CONTENT": partial(_message_content, kind=kind),
        f"{stem}_END": partial(_end, kind=kind),
    }


_HANDLERS: dict[str, _Handler] = {
    "RUN_STARTED": _run_started,
    "RUN_FINISHED": _run_finished,
    "RUN_ERROR": _run_error,
    **_messages("TEXT_MESSAGE", "text"),
    "TEXT_MESSAGE_CHUNK": partial(_message_chunk, kind="text"),
    "TOOL_CALL_START": _call_start,
    "TOOL_CALL_ARGS": _call_args,
    "TOOL_CALL_END": partial(_end, kind="call"),
    "TOOL_CALL_CHUNK": _call_chunk,
    "REASONING_START": _nothing,
    "REASONING_END": _nothing,
    **_messages("REASONING_MESSAGE", "reasoning"),
    "REASONING_MESSAGE_CHUNK": partial(_message_chunk, kind="reasoning"),
    "REASONING_ENCRYPTED_VALUE": _signature,
    "THINKING_START": lambda _assembly, value: (None,) if value.get("title") else (),
    "THINKING_END": _nothing,
    **_messages("THINKING_TEXT_MESSAGE", "reasoning"),
}
