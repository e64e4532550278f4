"""Accumulators with one mistake about cut streams each, and correct ones that behave differently.

Each is made from the reference accumulator of an API.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from examples.accumulators import REFERENCES
from examples.accumulators.answer import parsed
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Call, Delta, Outcome


class Client:
    """The reference accumulator. `after_cut` changes the outcome of a stream that was cut."""

    def __init__(self, api: str) -> None:
        self.reference = REFERENCES[api]()
        self.open: list[Any] = []
        self.cut = False

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        return self.reference.feed(payload, event)

    def close(self) -> None:
        self.open = self.reference._answer.open_calls()
        self.reference.close()
        self.cut = any(error.kind == "truncated" for error in self.reference.outcome().errors)

    def outcome(self) -> Outcome:
        outcome = self.reference.outcome()
        return self.after_cut(outcome) if self.cut else outcome

    def after_cut(self, outcome: Outcome) -> Outcome:
        return outcome


def with_calls(outcome: Outcome, calls: list[Call]) -> Outcome:
    return replace(outcome, tool_calls=(*outcome.tool_calls, *calls))


def repaired(text: str) -> Any:
    """The arguments as a parser of partial JSON reads them."""
    for end in ("", "}", '"}', ":null}", '":null}'):
        try:
            return json.loads(text + end)
        except ValueError:
            continue
    return {}


class Silent(Client):
    """Treats the end of the input as the end of the answer."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        return replace(outcome, errors=())


class SilentAndExecutes(Client):
    """The same, with the calls whose arguments parse."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        calls = [
            Call(one.name, parsed(one.arguments), one.id)
            for one in self.open
            if parsed(one.arguments) is not None
        ]
        return with_calls(replace(outcome, errors=()), calls)


class WholeByChance(Client):
    """Reports the cut, and hands on the open calls whose arguments parse."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        calls = [
            Call(one.name, parsed(one.arguments), one.id)
            for one in self.open
            if one.arguments and parsed(one.arguments) is not None
        ]
        return with_calls(outcome, calls)


class Empty(Client):
    """Reports the cut, and hands on open calls with empty arguments."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        return with_calls(outcome, [Call(one.name, {}, one.id) for one in self.open])


class Repaired(Client):
    """Reports the cut, and hands on open calls with repaired arguments."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        calls = [Call(one.name, repaired(one.arguments), one.id) for one in self.open]
        return with_calls(outcome, calls)


class Early(Client):
    """Hands on a call as soon as its arguments parse, and drops it from the outcome of a cut."""

    def __init__(self, api: str) -> None:
        super().__init__(api)
        self.handed_on: set[str] = set()

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        calls = []
        for call in self.reference._answer.open_calls():
            if (
                call.arguments
                and call.id not in self.handed_on
                and parsed(call.arguments) is not None
            ):
                self.handed_on.add(call.id)
                calls.append(Call(call.name, parsed(call.arguments), call.id))
        return Delta(tool_calls=tuple(calls)) if calls else delta


class Finishes(Client):
    """Reports the cut, with the finish reason of a complete answer."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        return replace(outcome, finish="stop")


class Breaks(Client):
    """Looks for the finish reason where there is none."""

    def close(self) -> None:
        if not self.reference._answer.complete:
            raise KeyError("finish_reason")
        super().close()


class EmptyIsFine(Client):
    """Reports a cut, but no empty stream."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        return outcome if outcome.response_id or outcome.text else replace(outcome, errors=())


class KeepsText(Client):
    """Correct: reports the cut, and keeps the arguments of open calls as text."""

    def after_cut(self, outcome: Outcome) -> Outcome:
        calls = [Call(one.name, one.arguments, one.id) for one in self.open]
        return with_calls(outcome, [call for call in calls if parsed(call.arguments) is None])


class NoCalls(Client):
    """Correct where it can be judged: has no calls at all."""

    def feed(self, payload: Any, event: str | None = None) -> None:
        super().feed(payload, event)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), tool_calls=())


class AlwaysFails(Client):
    """Cannot be judged: fails at whole streams."""

    def outcome(self) -> Outcome:
        return Outcome.of(errors=["nothing works"])


MUTANTS: dict[type[Client], set[str]] = {
    Silent: {"cut-reported"},
    SilentAndExecutes: {"cut-reported", "cut-call-not-executed"},
    WholeByChance: {"cut-call-not-executed"},
    Empty: {"cut-call-not-executed"},
    Repaired: {"cut-call-not-executed"},
    Early: {"cut-call-not-executed"},
    Finishes: {"cut-reported"},
    Breaks: {"cut-reported"},
    EmptyIsFine: {"cut-reported"},
}
"""The rules that each mistake breaks."""

CORRECT = (Client, KeepsText, NoCalls)


class BrokenBytes(ReferenceBytes):
    """The reference for bytes, with mistakes by name at the end of its input.

    Args:
        fault: `ignores`: an unfinished event counts as the end of the answer; `strict`: an
            unfinished character is an exception; `half`: the text of an unfinished event is used;
            `discards`: correct, an event without its blank line is left out.
    """

    def __init__(self, api: str, fault: str) -> None:
        super().__init__(api)
        self._fault = fault
        self._last = b""

    def feed(self, data: bytes) -> Delta | None:
        self._last = (self._last + data)[-4000:]
        return super().feed(data)

    def close(self) -> None:
        rest = self._last.replace(b"\r\n", b"\n").rpartition(b"\n\n")[2]
        if self._fault == "strict":
            self._last.decode()
        if self._fault == "half" and rest:
            self._accumulator._answer.add("text", rest.decode(errors="replace")[-1:])
        if self._fault == "ignores" and rest and not self._ended:
            self._accumulator._answer.complete = True
            self._accumulator.close()
        elif self._fault == "discards" and rest:
            self._accumulator.close()
        else:
            super().close()
