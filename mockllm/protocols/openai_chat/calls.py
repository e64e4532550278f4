"""Assembly of the tool calls of a Chat Completions stream, as real servers send them.

By the API reference each fragment names its call by `index`, and the first has `id` and `name`.
Compatible servers omit the index (Gemini's endpoint, Mistral), number all calls 0 (Ollama), repeat
or renew ids (LM Studio), send the name late, in fragments or again (vLLM, MiniMax), and arguments
as null or as an object. `_route` finds the call of a fragment as far as the fragments allow.
The quirks of groups A and B (`mockllm.quirks.chat`) send each of these forms.
"""

from __future__ import annotations

from mockllm.core.events import Event, ToolArgs, ToolStart
from mockllm.core.seeded import derive
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_chat.fields import called
from mockllm.protocols.records import Fields

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


class Calls:
    """The calls of one stream.

    Args:
        first: the key of the call with index 0; calls sort by index, then by arrival.

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

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, entry: Fields, seed: str) -> list[Event]:
        """The events of one entry of `tool_calls`; missing ids are derived from `seed`."""
        function, custom = called(entry)
        id, name = _string(entry.get("id")), _string(function.get("name"))
        arguments = _arguments(function)
        call = self._route(_index(entry.get("index")), id, name)
        events: list[Event] = []
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
                events.append(ToolArgs(call.part, arguments))
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

    def flush(self, seed: str, *, but: _Call | None = None, final: bool = False) -> list[Event]:
        """Announces the calls that wait; one without id gets a derived one.

        Args:
            but: a call that goes on waiting.
            final: announce calls without a name, too.
        """
        if not self._waiting:
            return []
        events: list[Event] = []
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


def _start(call: _Call) -> list[Event]:
    call.started = True
    held, call.held = call.held, []
    start = ToolStart(call.part, call.id, call.name, call.custom)
    return [start, *(ToolArgs(call.part, text) for text in held)]


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
