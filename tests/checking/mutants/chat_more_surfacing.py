"""Chat Completions: more mistakes with when calls surface, unknown tools, and shared state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.chat_more_base import ChangedCalls, Object, entries, function
from tests.checking.mutants.declared import SHARED, WATCHED, mutant

SKIP, ERROR = Policy(unknown_tool="skip"), Policy(unknown_tool="error")

# When calls surface


@mutant("surface-once", api="chat", family="emission")
class LastCallNotFlushed(ChatAccumulator):
    """Reports a call when the next one begins, and so never the last one.

    Calls that surface early, twice or never: vercel/ai#13137, vercel/ai#16838,
    earendil-works/pi#5964, holoviz/lumen#1832.
    """

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[:-1])


@mutant("surface-once", api="chat", family="emission")
class EachFinishSurfaces(ChatAccumulator):
    """Reports all calls at every finish reason (`chat-finish-twice`)."""

    def _surface(self) -> None:
        known = list(self._answer._calls)
        super()._surface()
        if known:
            self._answer._calls += known


@mutant("surface-complete", api="chat", policy=WATCHED, family="emission")
class PartialArgumentsSurface(ChatAccumulator):
    """Reports calls at once, with their arguments closed as far as they have come
    (earendil-works/pi#6284)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        early = [_closed(call) for call in self._calls if not call.closed and call.name]
        return replace(outcome, tool_calls=(*outcome.tool_calls, *early))


def _closed(call: StagedCall) -> Call:
    ends = ("", '"', '"}', "}", "]}")
    values = (parsed(call.arguments + end) for end in ends)
    return Call(call.name, next((value for value in values if value is not None), {}), call.id)


@mutant("surface-once", api="chat", policy=WATCHED, family="emission")
class EachChunkSurfaces(ChatAccumulator):
    """Passes all complete calls on with every chunk after they are complete."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event) or Delta()
        return replace(delta, tool_calls=self.outcome().tool_calls)


# Tools that were not offered


class _Offered(ChatAccumulator):
    """Knows which tools were offered, and drops calls of others."""

    def offer(self, tools: tuple[str, ...]) -> None:
        self.__dict__["offered"] = tuple(map(str, tools))

    def unknown(self, call: Call) -> bool:
        """Whether a call is of a tool that was not offered."""
        offered = self.__dict__.get("offered", ())
        return bool(offered) and call.name not in offered

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        known = tuple(call for call in outcome.tool_calls if not self.unknown(call))
        return replace(outcome, tool_calls=known)


@mutant("unknown-tool", api="chat", policy=SKIP, family="unknown tools")
class UnknownToolRaises(_Offered):
    """Looks a tool up that was not offered, which raises a KeyError."""

    def close(self) -> None:
        super().close()
        for call in self._answer.outcome().tool_calls:
            if self.unknown(call):
                raise KeyError(call.name)


@mutant("unknown-tool", api="chat", policy=SKIP, family="unknown tools")
class UnknownToolLosesText(_Offered):
    """Drops the text of an answer that calls a tool which was not offered."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        unknown = any(map(self.unknown, self._answer.outcome().tool_calls))
        return replace(outcome, text="") if unknown else outcome


@mutant("unknown-tool", api="chat", policy=SKIP, family="unknown tools")
class UnknownToolEndsTheLoop(_Offered):
    """Drops the calls after one of a tool that was not offered."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = self._answer.outcome().tool_calls
        first = next((n for n, call in enumerate(calls) if self.unknown(call)), len(calls))
        return replace(outcome, tool_calls=calls[:first])


@mutant("unknown-tool", api="chat", policy=ERROR, family="unknown tools")
class UnknownToolUnnamed(_Offered):
    """Reports a tool that was not offered by an error that names neither call nor tool."""

    def close(self) -> None:
        super().close()
        if any(map(self.unknown, self._answer.outcome().tool_calls)):
            raise ValueError("invalid tool")


@mutant("unknown-tool", api="chat", policy=SKIP, family="unknown tools")
class AllToolsUnknown(_Offered):
    """Drops all calls where one is of a tool that was not offered."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        unknown = any(map(self.unknown, self._answer.outcome().tool_calls))
        return replace(outcome, tool_calls=()) if unknown else outcome


# What streams share


_TEXTS: list[str] = []
_USAGES: list[Usage] = []
_PARSED: dict[str, Any] = {}
_IDS: list[str] = []
SHARED += [_TEXTS, _USAGES, _PARSED, _IDS]


@mutant("stage-empties", api="chat", family="shared state")
class SharesTexts(ChatAccumulator):
    """Keeps fragments of text in a list that is a default argument."""

    def __init__(self, fragments: list[str] = _TEXTS) -> None:
        super().__init__()
        self._fragments = fragments

    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if isinstance(delta.get("content"), str):
            self._fragments.append(delta["content"])

    def outcome(self) -> Outcome:
        return replace(super().outcome(), text="".join(self._fragments))


@mutant("stage-empties", api="chat", family="shared state")
class SharesUsage(ChatAccumulator):
    """Keeps the usage of the stream before where a stream has none yet."""

    def _usage(self, chunk: Object) -> None:
        super()._usage(chunk)
        if self._answer.usage is not None and not _USAGES:
            _USAGES.append(self._answer.usage)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), usage=next(iter(_USAGES), None))


@mutant("stage-empties", api="chat", family="shared state")
class CachesById(ChangedCalls):
    """Caches parsed arguments by the id of the call, for all streams."""

    def changed(self, call: Call) -> Call:
        return replace(call, arguments=_PARSED.setdefault(call.id or "", call.arguments))


@mutant("stage-empties", api="chat", family="shared state")
class SeenInAnotherStream(ChangedCalls):
    """Drops calls whose id another stream has had, as a filter of repetitions does."""

    def close(self) -> None:
        super().close()
        found = self._answer.outcome().tool_calls
        self.__dict__["new"] = [call.id for call in found if call.id not in _IDS]
        _IDS.extend(call.id for call in found if call.id)

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        new = self.__dict__.get("new")
        kept = tuple(call for call in outcome.tool_calls if new is None or call.id in new)
        return replace(outcome, tool_calls=kept)


# Chunks that are modified


@mutant("input-untouched", api="chat", family="modified input")
class FillsDefaults(ChatAccumulator):
    """Sets the fields that an entry does not have."""

    def _fragment(self, entry: Any) -> None:
        entry.setdefault("type", "function")
        super()._fragment(entry)


@mutant("input-untouched", api="chat", family="modified input")
class JoinsInPlace(ChatAccumulator):
    """Appends text to the first delta, which it keeps as its snapshot."""

    def _delta(self, delta: Any) -> None:
        super()._delta(delta)
        first = self.__dict__.setdefault("first", delta)
        if first is not delta and isinstance(delta.get("content"), str):
            first["content"] = (first.get("content") or "") + delta["content"]


@mutant("input-untouched", api="chat", family="modified input")
class ReversesInPlace(ChatAccumulator):
    """Reverses the entries of a chunk, to remove them from the end of the list."""

    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"].reverse()


# What is passed on for a chunk


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class TextAgainAtTheEnd(ChatAccumulator):
    """Passes all text on once more with the finish reason.

    Deltas that are not fragments: coder/xum#2165, Porabuild/Poracode#205.
    """

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        before = self._answer.complete
        delta = super().feed(payload, event)
        if self._answer.complete and not before:
            return replace(delta or Delta(), text=self.outcome().text)
        return delta


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class TrimsWhatIsPassedOn(ChatAccumulator):
    """Trims the fragments of text that it passes on (Datus-ai/Datus-agent#570)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=delta.text.strip())


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class ReasoningPassedOnAsText(ChatAccumulator):
    """Passes fragments of reasoning on as text."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=delta.reasoning + delta.text, reasoning="")


@mutant("delta-first", api="chat", policy=WATCHED, family="deltas")
class TextPassedOnAtTheEnd(ChatAccumulator):
    """Passes the text on with the finish reason, and not before."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        before = self._answer.complete
        delta = super().feed(payload, event) or Delta()
        ends = self._answer.complete and not before
        return replace(delta, text=self.outcome().text if ends else "")


class _Fragments(ChatAccumulator):
    """Passes fragments of arguments on, each with the index of its call."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        self.__dict__["fragments"] = []
        delta = super().feed(payload, event) or Delta()
        return replace(delta, tool=tuple(self.__dict__["fragments"]))

    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        text = function(entry).get("arguments")
        if self._last is not None and isinstance(text, str) and text:
            self.__dict__["fragments"].append(self.fragment(self._last, text))

    def fragment(self, call: StagedCall, text: str) -> Fragment:
        """What the mutant passes on for a fragment of a call."""
        raise NotImplementedError


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class ArgumentsSoFarPassedOn(_Fragments):
    """Passes all arguments of a call so far on with each fragment."""

    def fragment(self, call: StagedCall, text: str) -> Fragment:
        return Fragment(call.arguments, call.id, call.name, call.number)


@mutant("arguments-concatenate", api="chat", policy=WATCHED, family="deltas")
class FragmentsOfTheFirstCall(_Fragments):
    """Passes the fragments of all calls on as those of the first one."""

    def fragment(self, call: StagedCall, text: str) -> Fragment:
        first = self._calls[0]
        return Fragment(text, first.id, first.name, 0)


@mutant("delta-is-fragment", api="chat", policy=WATCHED, family="deltas")
class FirstFragmentNotPassedOn(_Fragments):
    """Does not pass the fragment on that comes with the name (`chat-args-whole`)."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        choices = payload.get("choices") or [{}]
        given = entries((choices[0] or {}).get("delta") or {})
        named = any(function(entry).get("name") for entry in given)
        return replace(delta, tool=()) if delta and named else delta

    def fragment(self, call: StagedCall, text: str) -> Fragment:
        return Fragment(text, call.id, call.name, call.number)
