"""Chat Completions: more mistakes with which call a fragment belongs to, and the order of calls."""

from __future__ import annotations

from dataclasses import replace

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from mockllm.checking.outcome import Call, Outcome
from tests.checking.mutants.chat_more_base import Object, entries
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import mutant

_MOST_CALLS = 16

common(
    __name__,
    "chat",
    FirstCallOnly="Reports the first call alone.",
    LastCallOnly="Keeps one call, which the next one overwrites.",
    ReversesCalls="""Reports the last call first, as a stack gives them.

    An order that is not the model's changes what parallel tools do: vercel/ai#13137 discusses it.
    """,
)

# Which call a fragment belongs to


@mutant("arguments-concatenate", api="chat", family="call identity")
class ZeroIsNoIndex(ChatAccumulator):
    """Treats index 0 as absent, because it is falsy (`chat-calls-interleaved`).

    Wrong calls for fragments: maximhq/bifrost#1829, crmne/ruby_llm#711, openai/openai-python#3201.
    """

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index or None, id, name)


@mutant("surface-once", api="chat", family="call identity")
class SameNameSameCall(ChatAccumulator):
    """Keeps one call for each tool (diegosouzapw/OmniRoute#11044)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        same = (call for call in self._calls if name and call.name == name)
        return next(same, None) or super()._find_call(index, id, name)


@mutant("name-kept", api="chat", family="call identity")
class NameBeginsACall(ChatAccumulator):
    """Begins a call with every entry that has a name (`chat-name-repeated`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if name else super()._find_call(index, id, name)


@mutant("id-kept", api="chat", family="call identity")
class IdBeginsACall(ChatAccumulator):
    """Begins a call with every entry that has an id (`chat-id-repeated`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if id else super()._find_call(index, id, name)


@mutant("id-kept", api="chat", family="call identity")
class EmptyIdBeginsACall(ChatAccumulator):
    """Begins a call with every entry whose `id` is text, even empty text (symfony/ai#2220,
    spring-projects/spring-ai#6369; `chat-id-empty-later`)."""

    def _fragment(self, entry: Object) -> None:
        self.__dict__["begins"] = isinstance(entry.get("id"), str)
        super()._fragment(entry)

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return None if self.__dict__["begins"] else super()._find_call(index, id, name)


@mutant("name-kept", api="chat", family="call identity")
class OtherNameBeginsACall(ChatAccumulator):
    """Begins a call where the name changes (huggingface/smolagents#1958; `chat-name-split`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        call = super()._find_call(index, id, name)
        return None if call and name and call.name and name != call.name else call


@mutant("arguments-concatenate", api="chat", family="call identity")
class CompleteArgumentsEndACall(ChatAccumulator):
    """Begins a call where the arguments so far parse (huggingface/smolagents#1958,
    unslothai/unsloth#9817); white space may follow."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        call = super()._find_call(index, id, name)
        complete = call is not None and call.arguments and parsed(call.arguments) is not None
        return None if complete else call


@mutant("arguments-concatenate", api="chat", family="call identity")
class AppendsToFirstCall(ChatAccumulator):
    """Appends every fragment without an id to the first call (`chat-calls-interleaved`)."""

    def _find_call(self, index: int | None, id: str, name: str) -> StagedCall | None:
        return super()._find_call(index, id, name) if id or not self._calls else self._calls[0]


@mutant("arguments-concatenate", api="chat", family="call identity")
class SameIndexTwiceInAChunk(ChatAccumulator):
    """Keeps the entries of the first chunk with calls as calls of their own, although they share an
    index (openai/openai-python#3201; `chat-index-duplicate-fragments`)."""

    def _delta(self, delta: Object) -> None:
        given = entries(delta)
        first, self.__dict__["begun"] = "begun" not in self.__dict__, True
        if first and len(given) > 1:
            for position, entry in enumerate(given[1:], 1):
                entry["index"] = (entry.get("index") or 0) + 1000 * position
        if not given:
            self.__dict__.pop("begun") if first else None
        super()._delta({**delta, "tool_calls": given})


@mutant("arguments-concatenate", api="chat", family="call identity")
class LastEntryOnly(ChatAccumulator):
    """Reads the last entry of a chunk's list alone (`chat-two-calls-one-chunk`)."""

    def _delta(self, delta: Object) -> None:
        super()._delta({**delta, "tool_calls": entries(delta)[-1:]})


@mutant("arguments-concatenate", api="chat", family="call identity")
class NextCallEndsTheLast(ChatAccumulator):
    """Treats a call as complete when the next one begins (`chat-calls-interleaved`)."""

    def _fragment(self, entry: Object) -> None:
        before, number = self._last, len(self._calls)
        super()._fragment(entry)
        if before is not None and len(self._calls) > number:
            self._answer.surface(before)


@mutant("surface-once", api="chat", family="call identity")
class TableOfCalls(ChatAccumulator):
    """Drops the calls that do not fit into a table of 16; seen in clients written in C."""

    def _delta(self, delta: Object) -> None:
        fitting = [one for one in entries(delta) if (one.get("index") or 0) < _MOST_CALLS]
        super()._delta({**delta, "tool_calls": fitting})


@mutant("surface-once", api="chat", family="call identity")
class EqualCallsMerged(ChatAccumulator):
    """Drops a call with the name and the arguments of another one."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        kept: list[Call] = []
        for call in outcome.tool_calls:
            if all((call.name, call.arguments) != (one.name, one.arguments) for one in kept):
                kept.append(call)
        return replace(outcome, tool_calls=tuple(kept))


@mutant("missing-id", api="chat", family="call identity")
class CallsByTheirIds(ChatAccumulator):
    """Collects calls in a mapping by their id, where calls without one replace each other
    (`chat-id-never`)."""

    def _surface(self) -> None:
        for call in [call for call in self._calls if not call.id][:-1]:
            call.closed = True
        super()._surface()


# Order


@mutant("order-by-index", api="chat", family="call order")
class SortsByName(ChatAccumulator):
    """Reports calls in the order of the names of their tools."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        by_name = sorted(outcome.tool_calls, key=lambda call: call.name)
        return replace(outcome, tool_calls=tuple(by_name))


@mutant("order-by-index", api="chat", family="call order")
class SortsById(ChatAccumulator):
    """Reports calls in the order of their ids, as a sorted mapping gives them."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        by_id = sorted(outcome.tool_calls, key=lambda call: call.id or "")
        return replace(outcome, tool_calls=tuple(by_id))


@mutant("order-by-index", api="chat", family="call order")
class SortsByLastFragment(ChatAccumulator):
    """Reports calls in the order of their last fragments (`chat-calls-interleaved`)."""

    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        number = self.__dict__["number"] = self.__dict__.get("number", 0) + 1
        assert self._last is not None
        self._last.position = (number,)
