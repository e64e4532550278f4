"""The answer so far, and the rules for calls, which all accumulators share.

A call is staged when its first fragment arrives. It leaves the stage once, when the protocol says
that it is complete: it surfaces as a `Call`, or an error is reported for it. Nothing here may
depend on a protocol.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.checking.outcome import NOT_KEPT, Call, Outcome, Trouble, TroubleKind, Usage
from mockllm.checking.probes import Delta, Fragment

__all__ = ["Answer", "Malformed", "MissingId", "Slot", "StagedCall", "TextKind", "parsed"]

Malformed = Literal["error", "skip", "keep", "fail"]
"""What happens to a call whose arguments never parse: it is reported as an error, left out, kept
with its arguments as text, or makes the whole answer fail."""

MissingId = Literal["error", "synthesise"]
"""What happens to a call that never gets an id: it is reported as an error, or given an id."""

Slot = tuple[int, ...]
"""A sort key: the texts of one kind are joined in the order of their slots, calls likewise."""

TextKind = Literal["text", "reasoning", "refusal"]


@dataclass(slots=True, eq=False)
class StagedCall:
    """A call while its fragments arrive.

    Args:
        position: its sort key among the calls.
        number: how many calls began before it.
        key: what the protocol identifies its fragments by, such as an index.
        fragments: of its arguments, not passed on yet.
        closed: whether it has left the stage; later fragments are ignored.
    """

    position: Slot
    number: int
    key: object = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    fragments: list[str] = field(default_factory=list)
    closed: bool = False

    def argue(self, fragment: str) -> None:
        """Appends a fragment of the arguments. It is passed on with the next delta."""
        if fragment:
            self.arguments += fragment
            self.fragments.append(fragment)

    def replace_arguments(self, whole: str) -> None:
        """Replaces the fragments by final arguments. If these continue them, the rest of them is a
        new fragment."""
        if whole.startswith(self.arguments):
            self.argue(whole[len(self.arguments) :])
        else:
            self.arguments = whole

    def __str__(self) -> str:
        key = f", key {self.key!r}" if self.key is not None else ""
        return f"call {self.number} ({self.name or 'no name'}, {self.id or 'no id'}{key})"


def parsed(arguments: str) -> dict[str, Any] | None:
    """The arguments as an object; None if they are anything else.

    An empty string is a call without arguments (`chat-args-empty-zero`, `anth-zero-arg`,
    `resp-zero-arg`, `agui-zero-arg`).
    """
    if not arguments:
        return {}
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class Answer:
    """The answer so far.

    Args:
        tools: the names of the tools that were offered; a call of another tool is an error. None:
            any tool is accepted.
        malformed, missing_id: what happens to calls with these faults.
        end: what ends a stream of the protocol, for error messages.
        text_arguments: whether the protocol sends arguments as text, which calls then keep.
    """

    def __init__(
        self,
        tools: Collection[str] | None,
        malformed: Malformed,
        missing_id: MissingId,
        end: str,
        *,
        text_arguments: bool = True,
    ) -> None:
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.model: str | None = None
        self.id: str | None = None
        self.complete = False
        """Whether the stream has had its end, such as a finish reason."""
        self.failed = False
        """Whether an error has ended the stream; whatever follows it is ignored."""
        self._tools = tools
        self._malformed = malformed
        self._missing_id = missing_id
        self._end = end
        self._text_arguments = text_arguments
        self._closed = False
        self._texts: dict[TextKind, dict[Slot, list[str]]] = {
            "text": {},
            "reasoning": {},
            "refusal": {},
        }
        self._opened: list[StagedCall] = []
        self._calls: list[tuple[Slot, Call]] = []
        self._errors: list[Trouble] = []
        self._opaque: dict[str, None] = {}
        # Not passed on yet by `delta`.
        self._new_fragments: dict[TextKind, list[str]] = _no_fragments()
        self._new_calls: list[Call] = []

    # The answer as a whole

    def identify(self, id: str, model: str) -> None:
        """Sets the id and the model; the first ones that are not empty stay
        (`chat-chunk-id-changes`, `chat-first-choices-empty`)."""
        self.id = self.id or id or None
        self.model = self.model or model or None

    def keep(self, opaque: str) -> None:
        """Keeps a value that has to be sent back unchanged, once, however often it comes."""
        if opaque:
            self._opaque[opaque] = None

    # Text, reasoning and refusal

    def add(self, kind: TextKind, fragment: str, slot: Slot = ()) -> None:
        """Appends a fragment.

        Fragments are never compared with earlier ones: of two equal fragments, both count
        (`chat-dedupe-by-overlap`).
        """
        if fragment:
            self._texts[kind].setdefault(slot, []).append(fragment)
            self._new_fragments[kind].append(fragment)

    def replace(self, kind: TextKind, whole: str, slot: Slot = ()) -> None:
        """Replaces the fragments of a slot by a final value. If the value continues them, the
        rest of it is a new fragment."""
        known = "".join(self._texts[kind].get(slot, ()))
        if whole.startswith(known):
            self.add(kind, whole[len(known) :], slot)
        else:
            self._texts[kind][slot] = [whole]

    def has(self, kind: TextKind) -> bool:
        """Whether there is any text of a kind."""
        return any(self._texts[kind].values())

    # Calls

    def open(self, *position: int, key: object = None, id: str = "", name: str = "") -> StagedCall:
        """Stages a new call. Calls with the same position keep the order of their arrival."""
        number = len(self._opened)
        call = StagedCall((*position, number), number, key, id, name)
        self._opened.append(call)
        return call

    def open_calls(self) -> list[StagedCall]:
        """The calls that are still staged, sorted by position."""
        still_open = [call for call in self._opened if not call.closed]
        return sorted(still_open, key=lambda call: call.position)

    def surface(self, call: StagedCall) -> None:
        """Closes a call that is complete: it surfaces, or an error is reported for it.

        An error of one call never affects the text or other calls.
        """
        if call.closed:
            return
        call.closed = True
        if not call.name:
            self._report("other", f"{call} never got a name", call)
        elif self._tools is not None and call.name not in self._tools:
            self._report("unknown_tool", f"{call} is of a tool that was not offered", call)
        elif "null" in (call.id, call.name):
            # `chat-placeholder-null-string`: the server wrote null as a string. Calls that share
            # the id "null" cannot be distinguished, and no tool has the name "null".
            kind: TroubleKind = "missing_id" if call.id == "null" else "unknown_tool"
            self._report(kind, f"{call} has the word 'null' for an id or a name", call)
        elif not call.id and self._missing_id == "error":
            self._report("missing_id", f"{call} never got an id", call)
        else:
            self._surface_parsed(call)

    def reject(self, call: StagedCall, reason: str) -> None:
        """Closes a call whose arguments are incomplete, even if they parse. It must not run."""
        call.closed = True
        message = f"{call} {reason}: {call.arguments[:200]!r}"
        if self._malformed == "error":
            self._report("malformed_arguments", message, call)
        elif self._malformed == "keep" and call.arguments:
            # Nothing at all would be a call without arguments (`anth-tool-cut-by-limit:empty`).
            self._emit(call, call.arguments)
        elif self._malformed == "fail":
            self._end_with(Trouble(message, "malformed_arguments", call.number))

    def _surface_parsed(self, call: StagedCall) -> None:
        arguments = parsed(call.arguments)
        if arguments is None:
            # Truncated, repeated, or without their beginning (`chat-args-truncated`,
            # `chat-args-repeated-at-end`, `chat-args-lost-prefix`). To repair them would be to
            # guess what the tool should do.
            self.reject(call, "has arguments that are no JSON object")
        else:
            self._emit(call, arguments)

    def _emit(self, call: StagedCall, arguments: Any) -> None:
        id = call.id or self._synthesised_id(call)
        raw = call.arguments if self._text_arguments else NOT_KEPT
        complete = Call(call.name, arguments, id, raw)
        self._calls.append((call.position, complete))
        self._new_calls.append(complete)

    def _synthesised_id(self, call: StagedCall) -> str:
        """An id that no other call of the answer has (`chat-id-never`, `gem-same-name-no-id`).

        The same stream always gives the same id, so that a tool's result finds its call.
        """
        used = {other.id for other in self._opened}
        id = f"call_{call.number}"
        while id in used:
            id += "_"
        call.id = id
        return id

    # The end

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """Ends the answer with an error.

        Calls that are still open are dropped, there is no finish, and whatever follows is ignored.
        The text so far stays.
        """
        if not (self.failed or self._closed):
            self._end_with(Trouble(message, kind))

    def _end_with(self, trouble: Trouble) -> None:
        self.failed = True
        self.finish = None
        self._abandon()
        self._errors.append(trouble)

    def close(self) -> None:
        """Ends the input.

        If the stream had its end, the calls that are still open are complete. Otherwise the stream
        was cut, and they are dropped: their arguments may be incomplete even if they parse.
        """
        if self.failed or self._closed:
            return
        self._closed = True
        if self.complete:
            for call in self.open_calls():
                self.surface(call)
            return
        self._abandon()
        message = f"the stream was cut: it ended without {self._end}"
        self._errors.append(Trouble(message, "truncated"))

    def _abandon(self) -> None:
        for call in self._opened:
            call.closed = True

    def _report(self, kind: TroubleKind, message: str, call: StagedCall) -> None:
        self._errors.append(Trouble(message, kind, call.number))

    # What a client sees

    def delta(self) -> Delta | None:
        """What was added since the last call of `delta`; None if nothing was."""
        text, reasoning = ("".join(self._new_fragments[kind]) for kind in ("text", "reasoning"))
        calls = tuple(self._new_calls)
        self._new_fragments = _no_fragments()
        self._new_calls = []
        tool = tuple(self._new_arguments())
        if not (text or reasoning or calls or tool):
            return None
        return Delta(text, reasoning, calls, tool)

    def _new_arguments(self) -> Iterator[Fragment]:
        for call in self._opened:
            if call.fragments:
                text = "".join(call.fragments)
                call.fragments.clear()
                yield Fragment(text, call.id or None, call.name or None, call.number)

    def outcome(self) -> Outcome:
        """The answer so far, with the calls that have surfaced."""
        return Outcome(
            self._joined("text"),
            self._joined("reasoning"),
            self._joined("refusal"),
            tuple(call for _, call in sorted(self._calls, key=lambda pair: pair[0])),
            self.finish,
            self.usage,
            tuple(self._errors),
            # No API has another role in an answer; it may be missing, null or repeated
            # (`chat-role-every-chunk`, `chat-role-null-empty-never`).
            role="assistant",
            model=self.model,
            response_id=self.id,
            opaque=tuple(self._opaque),
        )

    def _joined(self, kind: TextKind) -> str:
        slots = self._texts[kind]
        return "".join(fragment for slot in sorted(slots) for fragment in slots[slot])


def _no_fragments() -> dict[TextKind, list[str]]:
    return {"text": [], "reasoning": [], "refusal": []}
