"""Mistakes with which call a fragment belongs to, with ids and names, in Chat Completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from examples.accumulators.values import sequence
from mockllm.checking.outcome import Call, Outcome
from tests.checking.mutants.chat_arguments import Object, entries, function

Entry = Mapping[str, Any]


def _function(entry: Entry) -> Mapping[str, Any]:
    return entry.get("function") or {}


# Which call a fragment belongs to


class KeyedById(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return next((call for call in self._calls if call.id == id), None)


class KeyedByPlaceInList(ChatAccumulator):
    def _delta(self, delta: Mapping[str, Any]) -> None:
        entries = sequence(delta.get("tool_calls"))
        positioned = [{**entry, "index": position} for position, entry in enumerate(entries)]
        super()._delta({**delta, "tool_calls": positioned})


class AppendsToLastCall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index, id, name) if id else self._last


class FirstEntryOnly(ChatAccumulator):
    def _delta(self, delta: Mapping[str, Any]) -> None:
        super()._delta({**delta, "tool_calls": sequence(delta.get("tool_calls"))[:1]})


class MergesSameIndex(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        same = (call for call in self._calls if index is not None and call.key == index)
        return next(same, None) or super()._find_call(index, id, name)


class IndexRequired(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment({**entry, "index": 0 + entry["index"]})


class IndexIsAPosition(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        if "index" in entry:
            self._calls[entry["index"]]


class SortsByArrival(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.position = (0, self._last.number)


class SortsIndexesAsText(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.position = (*map(ord, str(self._last.key)), self._last.number - 1000)


# Ids and names


class AppendsTheName(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        names = self.__dict__.setdefault(f"names {self._last.number}", [])
        names.append(_function(entry).get("name") or "")
        self._last.name = "".join(names)


class EmptyNameErases(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if "name" in _function(entry):
            self._last.name = _function(entry)["name"] or "unknown"


class LastPieceOfTheName(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.name = _function(entry).get("name") or self._last.name


class AppendsTheId(ChatAccumulator):
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


class LastIdWins(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id") or self._last.id


class EmptyIdErases(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id", self._last.id) or ""


class NoIdMadeUp(ChatAccumulator):
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


class NoErrorWithoutId(ChatAccumulator):
    pass


# Arguments


class DropsFalsyArguments(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            call.closed = not call.arguments
        super().close()


class ParsesEmptyArguments(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = call.arguments or json.loads("")
        super().close()


class NullArgumentsBreak(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        if _function(entry).get("arguments", "") is None:
            "" + _function(entry)["arguments"]
        super()._fragment(entry)


class ParsesEachFragment(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        fragment = _function(entry).get("arguments")
        if isinstance(fragment, str) and fragment:
            json.loads(fragment)
        super()._fragment(entry)


class LastFragmentWins(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        fragment = _function(entry).get("arguments")
        self._last.arguments = fragment if isinstance(fragment, str) else self._last.arguments


class DropsRepeatedFragments(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        call = self._find_call(entry.get("index"), entry.get("id") or "", "")
        function = dict(_function(entry))
        fragment = function.get("arguments")
        if call is not None and isinstance(fragment, str) and call.arguments.endswith(fragment):
            function["arguments"] = ""
        super()._fragment({**entry, "function": function})


class EmitsWhatParses(ChatAccumulator):
    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if self._last.name and parsed(self._last.arguments) is not None:
            self._answer.surface(self._last)


class RepairsArguments(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            for end in ("", '"', '"}', "}"):
                if call.arguments and parsed(call.arguments + end) is not None:
                    call.arguments += end
        super().close()


class MalformedLosesAll(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return Outcome.of(outcome.text, errors=outcome.errors) if outcome.errors else outcome


class MalformedRaises(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            json.loads(call.arguments or "{}")
        super().close()


class MalformedNotSkipped(ChatAccumulator):
    pass


# Tools that were not offered


class UnofferedToolKept(ChatAccumulator):
    pass


class UnofferedToolLosesAll(ChatAccumulator):
    def offer(self, tools: tuple[str, ...]) -> None:
        self._answer._tools = tools

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        unknown = any(trouble.kind == "unknown_tool" for trouble in outcome.errors)
        return Outcome.of(outcome.text, errors=outcome.errors) if unknown else outcome


_MOST_CALLS = 16


# Which call a fragment belongs to


class ZeroIsNoIndex(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index or None, id, name)


class SameNameSameCall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        same = (call for call in self._calls if name and call.name == name)
        return next(same, None) or super()._find_call(index, id, name)


class NameBeginsACall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if name else super()._find_call(index, id, name)


class IdBeginsACall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if id else super()._find_call(index, id, name)


class EmptyIdBeginsACall(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        self.__dict__["begins"] = isinstance(entry.get("id"), str)
        super()._fragment(entry)

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if self.__dict__["begins"] else super()._find_call(index, id, name)


class OtherNameBeginsACall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        call = super()._find_call(index, id, name)
        return None if call and name and call.name and name != call.name else call


class CompleteArgumentsEndACall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        call = super()._find_call(index, id, name)
        complete = call is not None and call.arguments and parsed(call.arguments) is not None
        return None if complete else call


class AppendsToFirstCall(ChatAccumulator):
    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index, id, name) if id or not self._calls else self._calls[0]


class SameIndexTwiceInAChunk(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        given = entries(delta)
        first, self.__dict__["begun"] = "begun" not in self.__dict__, True
        if first and len(given) > 1:
            for position, entry in enumerate(given[1:], 1):
                entry["index"] = (entry.get("index") or 0) + 1000 * position
        if not given:
            self.__dict__.pop("begun") if first else None
        super()._delta({**delta, "tool_calls": given})


class LastEntryOnly(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "tool_calls": entries(delta)[-1:]})


class NextCallEndsTheLast(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        before, number = self._last, len(self._calls)
        super()._fragment(entry)
        if before is not None and len(self._calls) > number:
            self._answer.surface(before)


class TableOfCalls(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        fitting = [entry for entry in entries(delta) if (entry.get("index") or 0) < _MOST_CALLS]
        super()._delta({**delta, "tool_calls": fitting})


class EqualCallsMerged(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        kept: list[Call] = []
        for call in outcome.tool_calls:
            if all((call.name, call.arguments) != (one.name, one.arguments) for one in kept):
                kept.append(call)
        return replace(outcome, tool_calls=tuple(kept))


class CallsByTheirIds(ChatAccumulator):
    def _surface(self) -> None:
        for call in [call for call in self._calls if not call.id][:-1]:
            call.closed = True
        super()._surface()


# Order


class SortsByName(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        by_name = sorted(outcome.tool_calls, key=lambda call: call.name)
        return replace(outcome, tool_calls=tuple(by_name))


class SortsById(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        by_id = sorted(outcome.tool_calls, key=lambda call: call.id or "")
        return replace(outcome, tool_calls=tuple(by_id))


class SortsByLastFragment(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        number = self.__dict__["number"] = self.__dict__.get("number", 0) + 1
        assert self._last is not None
        self._last.position = (number,)


# Ids


class IndexIsTheId(ChatAccumulator):
    def _surface(self) -> None:
        for call in self._calls:
            call.id = f"call_{call.key}"
        super()._surface()


class ChunkIdForCallId(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Any:
        self.__dict__["chunk"] = payload.get("id") or ""
        return super().feed(payload, event)

    def _fragment(self, entry: Object) -> None:
        super()._fragment({**entry, "id": self.__dict__["chunk"] if entry.get("id") else None})


class PrefixRemoved(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        id = entry.get("id")
        super()._fragment({**entry, "id": id.removeprefix("call_") if id else id})


class OneIdForAll(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        last = [call.id for call in outcome.tool_calls][-1:]
        calls = tuple(replace(call, id=last[0]) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


class LaterIdIgnored(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        index, name = entry.get("index"), function(entry).get("name") or ""
        known = self._find_call(index, entry.get("id") or "", name) is not None
        super()._fragment({**entry, "id": None} if known else entry)


class SameIdMadeUp(ChatAccumulator):
    def _surface(self) -> None:
        for call in self._calls:
            call.id = call.id or "call"
        super()._surface()


class CallsWithoutIdLost(ChatAccumulator):
    def _surface(self) -> None:
        for call in self._calls:
            call.closed = call.closed or not call.id
        super()._surface()


class MissingIdUnnamed(ChatAccumulator):
    def close(self) -> None:
        if any(not call.id and not call.closed for call in self._calls):
            self._answer._abandon()
            self._answer.fail("a call is invalid", "other")
        super().close()

    def _surface(self) -> None:
        if all(call.id for call in self._calls):
            super()._surface()


# Names


class LaterNameIgnored(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        index, name = entry.get("index"), function(entry).get("name") or ""
        known = self._find_call(index, entry.get("id") or "", name) is not None
        unnamed = {**entry, "function": {**function(entry), "name": None}}
        super()._fragment(unnamed if known else entry)


class HyphensReplaced(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        name = function(entry).get("name")
        fields = {**function(entry), "name": name.replace("-", "_") if name else name}
        super()._fragment({**entry, "function": fields})


class NearestTool(ChatAccumulator):
    def offer(self, tools: tuple[str, ...]) -> None:
        self.__dict__["offered"] = tools

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=tuple(map(self._nearest, outcome.tool_calls)))

    def _nearest(self, call: Call) -> Call:
        for name in map(str, self.__dict__.get("offered", ())):
            if call.name.startswith(name) or name.startswith(call.name):
                return replace(call, name=name)
        return call


class NamesInLowerCase(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(replace(call, name=call.name.lower()) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


class SignatureBeginsACall(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        signed = "extra_content" in entry
        super()._fragment({**entry, "index": entry.get("index", 0) + 100} if signed else entry)


class CustomCallsBreak(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        for entry in delta.get("tool_calls") or ():
            if entry.get("type") == "custom":
                entry["function"]["name"]
        super()._delta(delta)


class CustomInputToTheLastCall(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        first = [replace(call, arguments={}) for call in outcome.tool_calls[:1]]
        changed = (*first, *outcome.tool_calls[1:])
        return replace(outcome, tool_calls=changed) if self._custom else outcome

    _custom = False

    def _delta(self, delta: Object) -> None:
        entries = delta.get("tool_calls") or ()
        self._custom |= any(entry.get("type") == "custom" for entry in entries)
        super()._delta(delta)
