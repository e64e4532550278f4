"""Chat Completions: mistakes with tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import Policy
from mockllm.checking.reference import ChatAccumulator
from mockllm.checking.reference.answer import StagedCall, parsed
from mockllm.checking.reference.values import sequence
from tests.checking.mutants.declared import WATCHED, mutant

Entry = Mapping[str, Any]


def _said(entry: Entry) -> Mapping[str, Any]:
    return entry.get("function") or {}


# Which call a fragment belongs to


@mutant("arguments-concatenate", api="chat")
class KeyedById(ChatAccumulator):
    """Keeps calls by their id, which only the first fragment has (`chat-index-first-only`)."""

    def _call_of(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return next((call for call in self._calls if call.id == id), None)


# The index that it does not look at says the order, too.
@mutant("arguments-concatenate", "order-by-index", api="chat")
class KeyedByPlaceInList(ChatAccumulator):
    """Takes the place in the chunk's list for the index (`chat-calls-interleaved`)."""

    def _delta(self, delta: Mapping[str, Any]) -> None:
        entries = sequence(delta.get("tool_calls"))
        placed = [{**entry, "index": place} for place, entry in enumerate(entries)]
        super()._delta({**delta, "tool_calls": placed})


@mutant("arguments-concatenate", api="chat")
class AppendsToLastCall(ChatAccumulator):
    """Takes every fragment without an id for one of the last call (`chat-calls-interleaved`)."""

    def _call_of(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._call_of(index, id, name) if id else self._last


@mutant("arguments-concatenate", api="chat")
class FirstEntryOnly(ChatAccumulator):
    """Reads the first entry of a chunk's list alone (`chat-two-calls-one-chunk`)."""

    def _delta(self, delta: Mapping[str, Any]) -> None:
        super()._delta({**delta, "tool_calls": sequence(delta.get("tool_calls"))[:1]})


@mutant("arguments-concatenate", api="chat")
class MergesSameIndex(ChatAccumulator):
    """Relies on the index, which some servers leave at 0 for all (`chat-index-all-zero`)."""

    def _call_of(self, index: int | None, id: str, name: str) -> StagedCall | None:
        same = (call for call in self._calls if index is not None and call.key == index)
        return next(same, None) or super()._call_of(index, id, name)


@mutant("null-tolerant", api="chat")
class IndexRequired(ChatAccumulator):
    """Breaks where there is no index (`chat-index-missing`, `chat-index-first-only`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment({**entry, "index": 0 + entry["index"]})


# An index that leaves a gap is one promise, and one that comes late is another.
@mutant("arguments-concatenate", "order-by-index", api="chat")
class IndexIsAPosition(ChatAccumulator):
    """Appends to a list and takes the index for the place in it (`chat-index-from-one`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        if "index" in entry:
            self._calls[entry["index"]]


@mutant("order-by-index", api="chat")
class SortsByArrival(ChatAccumulator):
    """Lets calls out in the order in which they began (`chat-index-reversed`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.place = (0, self._last.number)


@mutant("order-by-index", api="chat")
class SortsIndexesAsText(ChatAccumulator):
    """Keeps indexes as text, so that 10 comes before 2; seen where keys of JSON are sorted."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.place = (*map(ord, str(self._last.key)), self._last.number - 1000)


# Ids and names


@mutant("name-kept", api="chat")
class AppendsTheName(ChatAccumulator):
    """Joins the names of all fragments (`chat-name-repeated`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        names = self.__dict__.setdefault(f"names {self._last.number}", [])
        names.append(_said(entry).get("name") or "")
        self._last.name = "".join(names)


@mutant("name-kept", api="chat")
class EmptyNameErases(ChatAccumulator):
    """Takes the name of the last fragment that has the key (`chat-id-empty-later`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if "name" in _said(entry):
            self._last.name = _said(entry)["name"] or "unknown"


@mutant("name-kept", api="chat")
class LastPieceOfTheName(ChatAccumulator):
    """Takes the last name that is not empty (`chat-name-split`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.name = _said(entry).get("name") or self._last.name


@mutant("id-kept", api="chat")
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


@mutant("id-kept", api="chat")
class LastIdWins(ChatAccumulator):
    """Takes the last id for the call's (`chat-id-new-every-chunk`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id") or self._last.id


@mutant("id-kept", api="chat")
class EmptyIdErases(ChatAccumulator):
    """Takes what the last fragment says is the id, be it empty (`chat-id-empty-later`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.id = entry.get("id", self._last.id) or ""


@mutant("missing-id", api="chat")
class NoIdMadeUp(ChatAccumulator):
    """Hands on calls without an id, to which no result can be sent (`chat-id-never`)."""

    def outcome(self) -> Outcome:
        told = super().outcome()
        calls = [(call.id, call.name, call.arguments) for call in told.tool_calls]
        known = [(None if id == "call_0" else id, *rest) for id, *rest in calls]
        return Outcome.of(
            told.text,
            reasoning=told.reasoning,
            refusal=told.refusal,
            tool_calls=known,
            finish=told.finish,
            usage=told.usage,
            errors=told.errors,
        )


@mutant("missing-id", api="chat", policy=Policy(missing_id="error"))
class NoErrorWithoutId(ChatAccumulator):
    """Means to report calls without an id, and does not (`chat-id-never`)."""


# Arguments


@mutant("zero-arguments", api="chat")
class DropsFalsyArguments(ChatAccumulator):
    """Passes over calls whose arguments are empty text (`chat-args-empty-zero`)."""

    def close(self) -> None:
        for call in self._answer.staged():
            call.settled = not call.arguments
        super().close()


@mutant("zero-arguments", api="chat")
class ParsesEmptyArguments(ChatAccumulator):
    """Has `json.loads` read arguments that are empty (`chat-args-empty-zero`)."""

    def close(self) -> None:
        for call in self._answer.staged():
            call.arguments = call.arguments or json.loads("")
        super().close()


@mutant("null-tolerant", api="chat")
class NullArgumentsBreak(ChatAccumulator):
    """Adds null to text (`chat-args-null-first`)."""

    def _fragment(self, entry: Entry) -> None:
        if _said(entry).get("arguments", "") is None:
            "" + _said(entry)["arguments"]
        super()._fragment(entry)


@mutant("arguments-concatenate", api="chat")
class ParsesEachFragment(ChatAccumulator):
    """Parses every fragment alone, which works where servers send them whole
    (`chat-args-whole`)."""

    def _fragment(self, entry: Entry) -> None:
        fragment = _said(entry).get("arguments")
        if isinstance(fragment, str) and fragment:
            json.loads(fragment)
        super()._fragment(entry)


@mutant("arguments-concatenate", api="chat")
class LastFragmentWins(ChatAccumulator):
    """Overwrites the arguments with each fragment (`chat-args-whole`)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        fragment = _said(entry).get("arguments")
        self._last.arguments = fragment if isinstance(fragment, str) else self._last.arguments


@mutant("chunking-free", api="chat")
class DropsRepeatedFragments(ChatAccumulator):
    """Leaves out a fragment that is how the arguments end already (`chat-dedupe-by-overlap`)."""

    def _fragment(self, entry: Entry) -> None:
        call = self._call_of(entry.get("index"), entry.get("id") or "", "")
        said = dict(_said(entry))
        fragment = said.get("arguments")
        if call is not None and isinstance(fragment, str) and call.arguments.endswith(fragment):
            said["arguments"] = ""
        super()._fragment({**entry, "function": said})


@mutant("surface-complete", api="chat", policy=WATCHED)
class EmitsWhatParses(ChatAccumulator):
    """Surfaces a call as soon as what has come of its arguments parses, and nothing does
    (`chat-args-truncated` lists such parsers)."""

    def _fragment(self, entry: Entry) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if self._last.name and parsed(self._last.arguments) is not None:
            self._answer.surface(self._last)


@mutant("surface-complete", api="chat")
class RepairsArguments(ChatAccumulator):
    """Closes the quotes and braces of arguments that were cut off (`chat-args-truncated`)."""

    def close(self) -> None:
        for call in self._answer.staged():
            for end in ("", '"', '"}', "}"):
                if call.arguments and parsed(call.arguments + end) is not None:
                    call.arguments += end
        super().close()


@mutant("malformed-contained", api="chat")
class MalformedLosesAll(ChatAccumulator):
    """Gives up all calls where the arguments of one do not parse."""

    def outcome(self) -> Outcome:
        told = super().outcome()
        return Outcome.of(told.text, errors=told.errors) if told.errors else told


@mutant("malformed-contained", api="chat")
class MalformedRaises(ChatAccumulator):
    """Lets the parser's exception through, which does not say whose arguments they were."""

    def close(self) -> None:
        for call in self._answer.staged():
            json.loads(call.arguments or "{}")
        super().close()


@mutant("malformed-contained", api="chat", policy=Policy(malformed="skip"))
class MalformedNotSkipped(ChatAccumulator):
    """Means to leave out calls whose arguments do not parse, and reports them."""


# Tools that were not offered


@mutant("unknown-tool", api="chat", policy=Policy(unknown_tool="skip"))
class UnofferedToolKept(ChatAccumulator):
    """Means to leave out calls of tools that were not offered, and keeps them."""


@mutant("unknown-tool", api="chat", policy=Policy(unknown_tool="error"))
class UnofferedToolLosesAll(ChatAccumulator):
    """Gives up all calls where one is of a tool that was not offered."""

    def offer(self, tools: tuple[str, ...]) -> None:
        self._answer._tools = tools

    def outcome(self) -> Outcome:
        told = super().outcome()
        unknown = any(trouble.kind == "unknown_tool" for trouble in told.errors)
        return Outcome.of(told.text, errors=told.errors) if unknown else told
