"""Chat Completions streams back to events, as any server sends them.

https://platform.openai.com/docs/api-reference/chat-streaming

The decoder never fails. A frame without any known content (a comment, malformed JSON, a
provider's own chunk, a second choice that does not repeat the first) is kept as `Raw`, and so is
everything after `[DONE]`. The fields of other frames that have no neutral event (fields of
providers, log probabilities, spans of citations) are left out.
"""

from __future__ import annotations

from mockllm.core import events as ev
from mockllm.core.errors import WireError
from mockllm.core.seeded import derive
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.openai_chat import fields
from mockllm.wire.protocols.openai_choices import ChoicesDecoder
from mockllm.wire.protocols.openai_common import error_of, usage_of
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, kind, mapping, objects, string

_STANDARD = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "annotations", "audio"}
)
_OPENING = (ev.ReasoningDelta, ev.TextDelta, ev.RefusalDelta, ev.MediaDelta, ev.ToolStart)


class Decoder(ChoicesDecoder):
    """Frames of one stream to events. Part keys: reasoning 0, text 1, refusal 2, sound 3, calls
    from 4 by their index, then the frames kept as `Raw` in order of arrival."""

    def __init__(self) -> None:
        super().__init__("chat", fields.RAWS)
        self._refused = False
        self._calls = _Calls(fields.CALLS)
        self._open: dict[int, None] = {}
        self._cites: list[ev.Cite] = []
        self._texted = False

    def close(self) -> list[ev.Event]:
        """The starts of calls that still wait for a name or an id, and citations without text."""
        events = self._end_parts()
        if self._cites:
            events += [ev.TextDelta(fields.TEXT, ""), *self._cites, ev.PartEnd(fields.TEXT)]
            self._cites = []
        return events

    def _chunk(self, chunk: Json) -> list[ev.Event]:
        # The first id counts: some servers make one for each chunk (`chat-chunk-id-changes`).
        self._id = self._id or string(chunk.get("id"))
        events: list[ev.Event] = []
        finish = ""
        usage = fields.chunk_usage(chunk)
        for choice in array(chunk.get("choices")):
            if not isinstance(choice, dict) or self._is_another(choice):
                continue
            delta, reason = choice.get("delta"), choice.get("finish_reason")
            if type(choice.get("index")) is not int or not choice["index"]:
                # The delta comes before the finish reason of the same chunk, as vLLM and
                # Mistral send the last fragment (`chat-finish-with-last-delta`).
                read = self._delta(delta, choice) if isinstance(delta, dict) else []
                events += read
                finish = string(reason) or finish
                usage = usage or usage_of(choice.get("usage"))
                # A later choice repeats this one only if this one has content.
                has_content = bool(read or string(reason) or self._known)
                self._first_choice = (delta, reason) if has_content else None
        return events + self._ending(chunk, usage, finish)

    def _is_another(self, choice: Json) -> bool:
        content = choice.get("delta"), choice.get("finish_reason")
        index = choice.get("index")
        if type(index) is int and index:
            repeats = content == self._first_choice
            self._known |= repeats
            return not repeats
        return False

    def _delta(self, delta: Json, choice: Json) -> list[ev.Event]:
        events: list[ev.Event] = []
        content = delta.get("content")
        thought, text = fields.split_content(content)
        thought = thought or fields.reasoning_of(delta)
        refusal = string(delta.get("refusal"))
        if not (thought or text or refusal):
            bare = _bare(delta, choice)
            if bare == "content" and content == "":
                events += self._text("", choice)
            elif bare == "content" and fields.is_empty_thinking(content):
                events.append(self._seen(ev.ReasoningDelta(fields.REASONING, "")))
            elif bare == "refusal" and delta["refusal"] == "":
                events.append(self._seen(ev.RefusalDelta(fields.REFUSAL, "")))
            elif bare == "reasoning_content" and delta["reasoning_content"] == "":
                events.append(self._seen(ev.ReasoningDelta(fields.REASONING, "")))
        if thought:
            events.append(self._seen(ev.ReasoningDelta(fields.REASONING, thought)))
        if text:
            events += self._text(text, choice)
        if refusal:
            self._refused = True
            events.append(self._seen(ev.RefusalDelta(fields.REFUSAL, refusal)))
        sound = mapping(delta.get("audio"))
        if sound:
            self._known |= fields.is_known_sound(sound)
            events += map(self._seen, fields.read_sound(sound))
        if events and self._calls:
            events = [*map(self._seen, self._calls.flush(self._id)), *events]
        for entry in fields.entries_of(delta):
            self._known = True
            events += map(self._seen, self._calls.add(entry, self._id))
        events += self._annotations(delta.get("annotations"))
        return events or self._without_content(delta, choice)

    def _without_content(self, delta: Json, choice: Json) -> list[ev.Event]:
        """The events of a delta that has no text and no new call."""
        # A field of the provider with content makes a chunk unknown that has nothing else.
        plain = _STANDARD.issuperset(key for key, value in delta.items() if value)
        events: list[ev.Event] = []
        if plain and delta.get("content") == "" and not choice.get("finish_reason"):
            # OpenRouter and Snowflake send chunks without text between others.
            events = self._empty(choice)
        if not events and string(delta.get("role")):
            self._known |= plain or not self._begun
        return events

    def _empty(self, choice: Json) -> list[ev.Event]:
        """An empty fragment of the text or reasoning that is streamed; none after calls or the
        finish, and before the first text."""
        if self._calls or self._finished or not self._open:
            return []
        if fields.TEXT in self._open:
            return self._text("", choice)
        return [ev.ReasoningDelta(fields.REASONING, "")] if fields.REASONING in self._open else []

    def _seen(self, event: ev.Event) -> ev.Event:
        if isinstance(event, _OPENING):
            self._open[event.part] = None
        return event

    def _text(self, text: str, choice: Json) -> list[ev.Event]:
        logprobs = choice.get("logprobs")
        with_logprobs = isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list)
        self._texted = True
        events: list[ev.Event] = [self._seen(ev.TextDelta(fields.TEXT, text, with_logprobs))]
        if self._cites:
            events += self._cites
            self._cites = []
        return events

    def _annotations(self, annotations: object) -> list[ev.Event]:
        """Citations; they are held until there is text that they can belong to."""
        cites = list(fields.cites_of(annotations))
        if not cites:
            return []
        if self._texted:
            return list(cites)
        self._cites += cites
        self._known = True
        return []

    def _read_finish(self, reason: str) -> ev.Finish:
        return fields.read_finish(reason, calls=bool(self._calls), refused=self._refused)

    def _end_parts(self) -> list[ev.Event]:
        events = [self._seen(e) for e in self._calls.flush(self._id, final=True)]
        events += [ev.PartEnd(part) for part in self._open]
        self._open = {}
        return events


def _bare(delta: Json, choice: Json) -> str:
    """The only field of a delta that is not null; "" where there are none or several, and in the
    finish chunk. An empty string counts as a fragment only if its field is the only one; elsewhere
    servers send it as padding."""
    present = [key for key, value in delta.items() if value is not None]
    return present[0] if len(present) == 1 and not choice.get("finish_reason") else ""


# The calls of a stream

_MOST = 1 << 20
"""Larger indexes count as absent; the keys of other kinds of parts begin above it."""


class _Call:
    """One call during assembly. `held` has the arguments that came before the call could be
    announced; `argued` is whether any arguments came; `custom` is whether the input is free
    text."""

    __slots__ = ("argued", "custom", "held", "id", "name", "part", "started")

    def __init__(self, part: int) -> None:
        self.part = part
        self.id = ""
        self.name = ""
        self.held: list[str] = []
        self.argued = False
        self.custom = False
        self.started = False


class _Calls:
    """The calls of one stream, as real servers send them.

    Args:
        first: the key of the call with index 0; calls sort by index, then by arrival.

    By the API reference each fragment names its call by `index`, and the first has `id` and `name`.
    Compatible servers omit the index (Gemini's endpoint, Mistral), number all calls 0 (Ollama),
    repeat or renew ids (LM Studio), send the name late, in fragments or again (vLLM, MiniMax), and
    arguments as null or as an object. `_route` finds the call of a fragment as far as the fragments
    allow. The quirks of groups A and B (`mockllm.play.quirks.chat`) send each of these forms.

    A call is announced (`ToolStart`) at its first fragment if that has an id, a name and an
    `arguments` key, as the API reference requires. Otherwise it waits for a later fragment with
    what is missing, or for `flush`.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._calls: dict[int, _Call] = {}
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._waiting = False

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, entry: Fields, seed: str) -> list[ev.Event]:
        """The events of one entry of `tool_calls`; missing ids are derived from `seed`."""
        function, custom = fields.function_of(entry)
        id, name = _string(entry.get("id")), _string(function.get("name"))
        arguments = _arguments(function)
        call = self._route(_index(entry.get("index")), id, name)
        events: list[ev.Event] = []
        if self._waiting and call is not self._last:
            events = self.flush(seed, but=call)
        self._last = call
        call.custom |= custom
        if id and not call.id:
            call.id = id
            self._by_id.setdefault(id, call)
        if call.started:
            if arguments is not None:
                call.argued = True
                events.append(ev.ToolArgs(call.part, arguments))
            return events
        if name != call.name:
            call.name += name
        if arguments:
            call.argued = True
            call.held.append(arguments)
        # Without an `arguments` key, more of the name may follow (`chat-name-split`).
        if call.id and call.name and (arguments is not None or not name):
            events += _start(call)
        else:
            self._waiting = True
        return events

    def flush(self, seed: str, *, but: _Call | None = None, final: bool = False) -> list[ev.Event]:
        """Announces the calls that wait; one without id gets a derived one.

        Args:
            but: a call that goes on waiting.
            final: announce calls without a name, too.
        """
        if not self._waiting:
            return []
        events: list[ev.Event] = []
        waits = False
        for n, call in enumerate(self._calls.values()):
            if call.started:
                continue
            if call is but or not (call.name or final):
                waits = True
                continue
            call.id = call.id or "call_" + derive(seed, "call", n)
            events += _start(call)
        self._waiting = waits
        return events

    def _route(self, index: int | None, id: str, name: str) -> _Call:
        """The call that a fragment belongs to, opened if it is a new one.

        - An index not seen yet opens a call.
        - Another id together with a name opens one although the index repeats; another id
          without a name does not.
        - An id seen before goes to its call.
        - Without an index, a new id opens a call, or a name where there is no id; a fragment
          with neither goes to the last call.
        """
        current = self._last if index is None else self._by_index.get(index)
        if current is None:
            return self._open(index)
        if id and id in self._by_id and id != current.id:
            return self._by_id[id]
        if index is None:
            new = id != current.id if id else bool(name and current.name)
        elif id and current.id:
            new = id != current.id and bool(name and current.name)
        else:
            new = bool(name and current.name) and name != current.name and current.argued
        return self._open(index) if new else current

    def _open(self, index: int | None) -> _Call:
        if index is None:
            part = max(self._calls, default=self._first - 1) + 1
        else:
            twin = self._by_index.get(index)
            part = self._first + index if twin is None else twin.part + 1
            while part in self._calls:
                part += 1
        call = self._calls[part] = _Call(part)
        if index is not None:
            self._by_index[index] = call
        return call


def _start(call: _Call) -> list[ev.Event]:
    call.started = True
    held, call.held = call.held, []
    start = ev.ToolStart(call.part, call.id, call.name, call.custom)
    return [start, *(ev.ToolArgs(call.part, text) for text in held)]


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else ""


def _index(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST else None


def _arguments(function: Fields) -> str | None:
    """The fragment of arguments as text; None where it is null or absent. Servers built on Ollama
    send an object, which becomes its JSON text (`chat-args-object`). Custom tools have `input`
    instead of `arguments`."""
    value = function.get("arguments")
    if value is None:
        value = function.get("input")
    return value if value is None or isinstance(value, str) else dumps(value)


# The body


def decode_body(body: Fields) -> Turn:
    """The turn of an answer that was not streamed: its choice with index 0; raises `WireError`
    without one."""
    if body.get("error"):
        return Turn(error=error_of(body["error"]))
    choices = objects(body.get("choices"))
    choice = next((c for c in choices if not c.get("index")), choices[0] if choices else {})
    message = choice.get("message")
    if not isinstance(message, dict):
        raise WireError(
            "choices[0].message must be an object in the body of a chat completion, "
            f"got {kind(message)}; is this the answer of /chat/completions, not streamed?"
        )
    events = _read_message(message, choice, string(body.get("id")))
    usage = usage_of(body.get("usage")) or usage_of(choice.get("usage"))
    if usage is not None:
        events.append(usage)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        calls = any(isinstance(event, ev.ToolStart) for event in events)
        refused = bool(message.get("refusal"))
        events.append(fields.read_finish(reason, calls=calls, refused=refused))
    return fold(ev.Timed(0, event) for event in events)


def _read_message(message: Json, choice: Json, seed: str) -> list[ev.Event]:
    content, refusal = message.get("content"), message.get("refusal")
    thought, text = fields.split_content(content)
    thought = thought or fields.reasoning_of(message)
    cites = list(fields.cites_of(message.get("annotations")))
    events: list[ev.Event] = []
    if thought or message.get("reasoning_content") == "":
        events.append(ev.ReasoningDelta(fields.REASONING, thought))
    if text or content == "" or cites:
        logprobs = choice.get("logprobs")
        with_logprobs = isinstance(logprobs, dict) and isinstance(logprobs.get("content"), list)
        events += [ev.TextDelta(fields.TEXT, text, with_logprobs), *cites]
    if isinstance(refusal, str):
        events.append(ev.RefusalDelta(fields.REFUSAL, refusal))
    events += fields.read_sound(mapping(message.get("audio")))
    calls = _Calls(fields.CALLS)
    for i, entry in enumerate(fields.entries_of(message)):
        events += calls.add({**entry, "index": i}, seed)
    return events + calls.flush(seed, final=True)
