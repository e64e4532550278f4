"""What the five accumulators share: the answer so far, and the rules by which calls get into it.

A call begins in the stage. It leaves it once, when its protocol says that it is complete:
surfaced, or with an error in its place. Nothing of any protocol may live here.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from mockllm.checking.outcome import Call, Outcome, Trouble, TroubleKind, Usage
from mockllm.checking.probes import Delta

__all__ = ["Answer", "Malformed", "MissingId", "StagedCall", "parsed"]

Malformed = Literal["error", "skip", "keep"]
"""What becomes of a call whose arguments never parse: it is reported, left out, or kept with its
arguments as text."""

MissingId = Literal["error", "synthesise"]
"""What becomes of a call that never gets an id: it is reported, or given one."""

Slot = tuple[int, ...]
"""Where words belong among others of their kind; they are read in the order of their slots."""

_Words = Literal["text", "reasoning", "refusal"]


@dataclass(slots=True, eq=False)
class StagedCall:
    """A call as its fragments come in.

    Args:
        place: what calls are sorted by.
        number: how many calls began before it.
        key: what the protocol tells its fragments by.
        settled: whether it has left the stage; what comes for it later changes nothing.
    """

    place: Slot
    number: int
    key: object = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    settled: bool = False

    def __str__(self) -> str:
        key = f", key {self.key!r}" if self.key is not None else ""
        return f"call {self.number} ({self.name or 'no name'}, {self.id or 'no id'}{key})"


def parsed(arguments: str) -> dict[str, Any] | None:
    """Arguments as a value, an object; None where they are anything else.

    Nothing at all is a call without arguments (`chat-args-empty-zero`, `anth-zero-arg`,
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
        tools: the names of the tools that were offered; a call of another is an error. None:
            any will do.
        malformed, missing_id: what becomes of calls with these faults.
        end: what ends a stream of the protocol, in words.
    """

    def __init__(
        self, tools: Collection[str] | None, malformed: Malformed, missing_id: MissingId, end: str
    ) -> None:
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.complete = False
        """Whether the end marker of the protocol has come."""
        self.failed = False
        """Whether an error has ended the stream; nothing that follows it counts."""
        self._tools = tools
        self._malformed = malformed
        self._missing_id = missing_id
        self._end = end
        self._closed = False
        self._words: dict[_Words, dict[Slot, list[str]]] = {
            "text": {},
            "reasoning": {},
            "refusal": {},
        }
        self._begun: list[StagedCall] = []
        self._calls: list[tuple[Slot, Call]] = []
        self._errors: list[Trouble] = []
        self._fresh: dict[_Words, list[str]] = {"text": [], "reasoning": [], "refusal": []}
        self._fresh_calls: list[Call] = []

    # Words

    def add(self, kind: _Words, fragment: str, slot: Slot = ()) -> None:
        """Appends a fragment. Fragments are never compared: of two that are equal, both are meant
        (`chat-dedupe-by-overlap`)."""
        if fragment:
            self._words[kind].setdefault(slot, []).append(fragment)
            self._fresh[kind].append(fragment)

    def replace(self, kind: _Words, whole: str, slot: Slot = ()) -> None:
        """Puts a final value in the place of the fragments; what it adds to them is handed on."""
        known = "".join(self._words[kind].get(slot, ()))
        if whole.startswith(known):
            self.add(kind, whole[len(known) :], slot)
        else:
            self._words[kind][slot] = [whole]

    def says(self, kind: _Words) -> bool:
        """Whether there are any words of a kind."""
        return any(self._words[kind].values())

    # Calls

    def open(self, *place: int, key: object = None, id: str = "", name: str = "") -> StagedCall:
        """A new call in the stage; calls of the same place stay in the order of their coming."""
        number = len(self._begun)
        call = StagedCall((*place, number), number, key, id, name)
        self._begun.append(call)
        return call

    def staged(self) -> list[StagedCall]:
        """The calls that have not left the stage, in order."""
        waiting = [call for call in self._begun if not call.settled]
        return sorted(waiting, key=lambda call: call.place)

    def surface(self, call: StagedCall) -> None:
        """Lets a call that is complete out of the stage, once; or says what is wrong with it.

        Whatever that is, the other calls and the text are not touched by it.
        """
        if call.settled:
            return
        call.settled = True
        if not call.name:
            self._trouble("other", f"{call} never got a name", call)
        elif self._tools is not None and call.name not in self._tools:
            self._trouble("unknown_tool", f"{call} is of a tool that was not offered", call)
        elif "null" in (call.id, call.name):
            # `chat-placeholder-null-string`: a server that wrote null as a word. Calls with
            # such an id cannot be told apart, and there is no tool of such a name.
            kind: TroubleKind = "missing_id" if call.id == "null" else "unknown_tool"
            self._trouble(kind, f"{call} has the word 'null' for an id or a name", call)
        elif not call.id and self._missing_id == "error":
            self._trouble("missing_id", f"{call} never got an id", call)
        else:
            self._let_out(call)

    def refuse(self, call: StagedCall, why: str) -> None:
        """Takes a call out of the stage whose arguments are not all there, whatever they look
        like: nobody must run it."""
        call.settled = True
        if self._malformed == "error":
            self._trouble("malformed_arguments", f"{call} {why}: {call.arguments[:200]!r}", call)
        elif self._malformed == "keep":
            self._surfaced(call, call.arguments)

    def _let_out(self, call: StagedCall) -> None:
        arguments = parsed(call.arguments)
        if arguments is None:
            # Cut, repeated, without their beginning (`chat-args-truncated`,
            # `chat-args-repeated-at-end`, `chat-args-lost-prefix`): to mend them would be to
            # guess what is to be done.
            self.refuse(call, "has arguments that are no JSON object")
        else:
            self._surfaced(call, arguments)

    def _surfaced(self, call: StagedCall, arguments: Any) -> None:
        out = Call(call.name, arguments, call.id or self._new_id(call))
        self._calls.append((call.place, out))
        self._fresh_calls.append(out)

    def _new_id(self, call: StagedCall) -> str:
        """An id that no other call has (`chat-id-never`, `gem-same-name-no-id`): the same for
        the same stream, so that a result that is sent back finds its call."""
        taken = {other.id for other in self._begun}
        id = f"call_{call.number}"
        while id in taken:
            id += "_"
        call.id = id
        return id

    # The end

    def fail(self, message: str, kind: TroubleKind = "stream_error") -> None:
        """Ends the answer with an error: calls that wait are given up, no finish is told, and
        nothing that still comes is looked at. The words so far stay, for whoever wants them."""
        if self.failed or self._closed:
            return
        self.failed = True
        self.finish = None
        self._abandon()
        self._errors.append(Trouble(message, kind))

    def close(self) -> None:
        """The input is over: with the end marker seen, calls that wait are complete; without
        it, the stream was cut, and no call in the stage can be trusted."""
        if self.failed or self._closed:
            return
        self._closed = True
        if self.complete:
            for call in self.staged():
                self.surface(call)
            return
        self._abandon()
        message = f"the stream was cut: it ended without {self._end}"
        self._errors.append(Trouble(message, "truncated"))

    def _abandon(self) -> None:
        for call in self._begun:
            call.settled = True

    def _trouble(self, kind: TroubleKind, message: str, call: StagedCall) -> None:
        self._errors.append(Trouble(message, kind, call.number))

    # What is told

    def delta(self) -> Delta | None:
        """What was added since this was last asked, for the client to hand on; None: nothing."""
        text, reasoning = ("".join(self._fresh[kind]) for kind in ("text", "reasoning"))
        calls = tuple(self._fresh_calls)
        self._fresh = {"text": [], "reasoning": [], "refusal": []}
        self._fresh_calls = []
        return Delta(text, reasoning, calls) if text or reasoning or calls else None

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
        )

    def _joined(self, kind: _Words) -> str:
        slots = self._words[kind]
        return "".join(fragment for slot in sorted(slots) for fragment in slots[slot])
