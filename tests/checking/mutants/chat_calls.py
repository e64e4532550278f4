"""Chat Completions: mistakes with tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from examples.accumulators.values import sequence
from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from tests.checking.mutants.declared import WATCHED, mutant

Entry = Mapping[str, Any]


def _function(entry: Entry) -> Mapping[str, Any]:
    return entry.get("function") or {}


# Which call a fragment belongs to


@mutant("arguments-concatenate", api="chat", family="call identity")
class KeyedById(ChatAccumulator):
    """Keeps calls by their id, which only the first fragment has (`chat-index-first-only`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return next((call for call in self._calls if call.id == id), None)


# The index that it ignores also gives the order.
@mutant("arguments-concatenate", "order-by-index", api="chat", family="call identity")
class KeyedByPlaceInList(ChatAccumulator):
    """Uses the position in the chunk's list as the index (`chat-calls-interleaved`)."""

    def _delta(self, delta: Mapping[str, Any]) -> None:
        entries = sequence(delta.get("tool_calls"))
        positioned = [{**entry, "index": position} for position, entry in enumerate(entries)]
        super()._delta({**delta, "tool_calls": positioned})


@mutant("arguments-concatenate", api="chat", family="call identity")
class AppendsToLastCall(ChatAccumulator):
    """Appends every fragment without an id to the last call (`chat-calls-interleaved`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index, id, name) if id else self._last


@mutant("arguments-concatenate", "chunking-free", api="chat", family="call identity")
class FirstEntryOnly(ChatAccumulator):
    """Reads the first entry of a chunk's list alone (`chat-two-calls-one-chunk`)."""

    def _delta(self, delta: Mapping[str, Any]) -> None:
        super()._delta({**delta, "tool_calls": sequence(delta.get("tool_calls"))[:1]})


@mutant("arguments-concatenate", api="chat", family="call identity")
class MergesSameIndex(ChatAccumulator):
    """Relies on the index, which some servers send as 0 for all calls (`chat-index-all-zero`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        same = (call for call in self._calls if index is not None and call.key == index)
        return next(same, None) or super()._find_call(index, id, name)


@mutant("null-tolerant", api="chat", family="null and absent")
class IndexRequired(ChatAccumulator):
    """Raises where there is no index (`chat-index-missing`, `chat-index-first-only`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment({**entry, "index": 0 + entry["index"]})


# A gap in the indexes and an index that arrives late are two promises, and this breaks both.
@mutant("arguments-concatenate", "order-by-index", api="chat", family="call identity")
class IndexIsAPosition(ChatAccumulator):
    """Uses the index as a position in its list of calls (`chat-index-from-one`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        if "index" in entry:
            self._calls[entry["index"]]


@mutant("order-by-index", api="chat", family="call order")
class SortsByArrival(ChatAccumulator):
    """Reports calls in the order in which they began (`chat-index-reversed`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.position = (0, self._last.number)


@mutant("order-by-index", api="chat", family="call order")
class SortsIndexesAsText(ChatAccumulator):
    """Sorts indexes as text, so that 10 is before 2; seen where JSON keys are sorted."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.position = (*map(ord, str(self._last.key)), self._last.number - 1000)


# Ids and names


@mutant("name-kept", api="chat", family="call names")
class AppendsTheName(ChatAccumulator):
    """Joins the names of all fragments (`chat-name-repeated`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        names = self.__dict__.setdefault(f"names {self._last.number}", [])
        names.append(_function(entry).get("name") or "")
        self._last.name = "".join(names)


@mutant("name-kept", api="chat", family="call names")
class EmptyNameErases(ChatAccumulator):
    """Keeps the name of the last fragment that has the key, even if it is empty
    (`chat-id-empty-later`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if "name" in _function(entry):
            self._last.name = _function(entry)["name"] or "unknown"


@mutant("name-kept", api="chat", family="call names")
class LastPieceOfTheName(ChatAccumulator):
    """Keeps the last name that is not empty (`chat-name-split`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.name = _function(entry).get("name") or self._last.name


@mutant("id-kept", api="chat", family="call ids")
class AppendsTheId(ChatAccumulator):
    """Joins the ids of all fragments (`chat-id-repeated`)."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[int, list[str]] = {}

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self.ids.setdefault(self._last.number, []).append(entry.get("id") or "")

    def _surface(self) -> None:
        for call in self._calls:
            call.id = "".join(self.ids[call.number])
        super()._surface()


@mutant("id-kept", api="chat", family="call ids")
class LastIdWins(ChatAccumulator):
    """Keeps the last id of a call (`chat-id-new-every-chunk`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id") or self._last.id


@mutant("id-kept", api="chat", family="call ids")
class EmptyIdErases(ChatAccumulator):
    """Keeps the id of the last fragment, even if it is empty (`chat-id-empty-later`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id", self._last.id) or ""


@mutant("missing-id", api="chat", family="call ids")
class NoIdMadeUp(ChatAccumulator):
    """Reports calls without an id, to which no result can be sent (`chat-id-never`)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = [(call.id, call.name, call.arguments) for call in outcome.tool_calls]
        calls_with_ids = [(None if id == "call_0" else id, *rest) for id, *rest in calls]
        return Outcome.of(
            outcome.text,
            reasoning=outcome.reasoning,
            refusal=outcome.refusal,
            tool_calls=calls_with_ids,
            finish=outcome.finish,
            usage=outcome.usage,
            errors=outcome.errors,
        )


@mutant("missing-id", api="chat", policy=Policy(missing_id="error"), family="call ids")
class NoErrorWithoutId(ChatAccumulator):
    """Promises an error for calls without an id, and reports none (`chat-id-never`)."""


# Arguments


@mutant("zero-arguments", api="chat", family="zero arguments")
class DropsFalsyArguments(ChatAccumulator):
    """Drops calls whose arguments are empty text (`chat-args-empty-zero`)."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            call.closed = not call.arguments
        super().close()


@mutant("zero-arguments", api="chat", family="zero arguments")
class ParsesEmptyArguments(ChatAccumulator):
    """Parses arguments that are empty text (`chat-args-empty-zero`)."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = call.arguments or json.loads("")
        super().close()


@mutant("null-tolerant", api="chat", family="null and absent")
class NullArgumentsBreak(ChatAccumulator):
    """Concatenates null arguments with text (`chat-args-null-first`)."""

    def _fragment(self, entry: Entry) -> None:
        if _function(entry).get("arguments", "") is None:
            "" + _function(entry)["arguments"]
        super()._fragment(entry)


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class ParsesEachFragment(ChatAccumulator):
    """Parses every fragment alone, which works where servers send them whole
    (`chat-args-whole`)."""

    def _fragment(self, entry: Entry) -> None:
        fragment = _function(entry).get("arguments")
        if isinstance(fragment, str) and fragment:
            json.loads(fragment)
        super()._fragment(entry)


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class LastFragmentWins(ChatAccumulator):
    """Overwrites the arguments with each fragment (`chat-args-whole`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        fragment = _function(entry).get("arguments")
        self._last.arguments = fragment if isinstance(fragment, str) else self._last.arguments


@mutant("arguments-concatenate", api="chat", family="argument fragments")
class DropsRepeatedFragments(ChatAccumulator):
    """Drops a fragment that the arguments already end with (`chat-dedupe-by-overlap`)."""

    def _fragment(self, entry: Entry) -> None:
        call = self._find_call(entry.get("index"), entry.get("id") or "", "")
        function = dict(_function(entry))
        fragment = function.get("arguments")
        if call is not None and isinstance(fragment, str) and call.arguments.endswith(fragment):
            function["arguments"] = ""
        super()._fragment({**entry, "function": function})


@mutant("surface-complete", "name-kept", api="chat", policy=WATCHED, family="emission")
class EmitsWhatParses(ChatAccumulator):
    """Reports a call as soon as its arguments so far parse (`chat-args-truncated` lists such
    parsers)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if self._last.name and parsed(self._last.arguments) is not None:
            self._answer.surface(self._last)


@mutant("malformed-contained", api="chat", family="malformed arguments")
class RepairsArguments(ChatAccumulator):
    """Closes the quotes and braces of arguments that were cut off (`chat-args-truncated`)."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            for end in ("", '"', '"}', "}"):
                if call.arguments and parsed(call.arguments + end) is not None:
                    call.arguments += end
        super().close()


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedLosesAll(ChatAccumulator):
    """Drops all calls where the arguments of one do not parse."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return Outcome.of(outcome.text, errors=outcome.errors) if outcome.errors else outcome


@mutant("malformed-contained", api="chat", family="malformed arguments")
class MalformedRaises(ChatAccumulator):
    """Raises the parser's exception, which does not name the call."""

    def close(self) -> None:
        for call in self._answer.open_calls():
            json.loads(call.arguments or "{}")
        super().close()


@mutant(
    "malformed-contained", api="chat", policy=Policy(malformed="skip"), family="malformed arguments"
)
class MalformedNotSkipped(ChatAccumulator):
    """Promises to drop calls whose arguments do not parse, and reports them as errors."""


# Tools that were not offered


@mutant("unknown-tool", api="chat", policy=Policy(unknown_tool="skip"), family="unknown tools")
class UnofferedToolKept(ChatAccumulator):
    """Promises to drop calls of tools that were not offered, and keeps them."""


@mutant("unknown-tool", api="chat", policy=Policy(unknown_tool="error"), family="unknown tools")
class UnofferedToolLosesAll(ChatAccumulator):
    """Drops all calls where one is of a tool that was not offered."""

    def offer(self, tools: tuple[str, ...]) -> None:
        self._answer._tools = tools

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        unknown = any(trouble.kind == "unknown_tool" for trouble in outcome.errors)
        return Outcome.of(outcome.text, errors=outcome.errors) if unknown else outcome
