"""Mistakes with when calls surface, unknown tools and shared state in Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from examples.accumulators import (
    ChatAccumulator,
)
from examples.accumulators.answer import StagedCall, parsed
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.policy import Policy
from mockllm.checking.probes import Delta, Fragment
from tests.checking.mutants.altered import SHARED
from tests.checking.mutants.chat_arguments import ChangedCalls, Object, entries, function

SKIP, ERROR = Policy(unknown_tool="skip"), Policy(unknown_tool="error")


# When calls surface


class LastCallNotFlushed(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=outcome.tool_calls[:-1])


class EachFinishSurfaces(ChatAccumulator):
    def _surface(self) -> None:
        known = list(self._answer._calls)
        super()._surface()
        if known:
            self._answer._calls += known


class PartialArgumentsSurface(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        early = [_closed(call) for call in self._calls if not call.closed and call.name]
        return replace(outcome, tool_calls=(*outcome.tool_calls, *early))


def _closed(call: StagedCall) -> Call:
    ends = ("", '"', '"}', "}", "]}")
    values = (parsed(call.arguments + end) for end in ends)
    return Call(call.name, next((value for value in values if value is not None), {}), call.id)


class EachChunkSurfaces(ChatAccumulator):
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


class UnknownToolRaises(_Offered):
    def close(self) -> None:
        super().close()
        for call in self._answer.outcome().tool_calls:
            if self.unknown(call):
                raise KeyError(call.name)


class UnknownToolLosesText(_Offered):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        unknown = any(map(self.unknown, self._answer.outcome().tool_calls))
        return replace(outcome, text="") if unknown else outcome


class UnknownToolEndsTheLoop(_Offered):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = self._answer.outcome().tool_calls
        first = next((n for n, call in enumerate(calls) if self.unknown(call)), len(calls))
        return replace(outcome, tool_calls=calls[:first])


class UnknownToolUnnamed(_Offered):
    def close(self) -> None:
        super().close()
        if any(map(self.unknown, self._answer.outcome().tool_calls)):
            raise ValueError("invalid tool")


class AllToolsUnknown(_Offered):
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


class SharesTexts(ChatAccumulator):
    def __init__(self, fragments: list[str] = _TEXTS) -> None:
        super().__init__()
        self._fragments = fragments

    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if isinstance(delta.get("content"), str):
            self._fragments.append(delta["content"])

    def outcome(self) -> Outcome:
        return replace(super().outcome(), text="".join(self._fragments))


class SharesUsage(ChatAccumulator):
    def _usage(self, chunk: Object) -> None:
        super()._usage(chunk)
        if self._answer.usage is not None and not _USAGES:
            _USAGES.append(self._answer.usage)

    def outcome(self) -> Outcome:
        return replace(super().outcome(), usage=next(iter(_USAGES), None))


class CachesById(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return replace(call, arguments=_PARSED.setdefault(call.id or "", call.arguments))


class SeenInAnotherStream(ChangedCalls):
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


class FillsDefaults(ChatAccumulator):
    def _fragment(self, entry: Any) -> None:
        entry.setdefault("type", "function")
        super()._fragment(entry)


class JoinsInPlace(ChatAccumulator):
    def _delta(self, delta: Any) -> None:
        super()._delta(delta)
        first = self.__dict__.setdefault("first", delta)
        if first is not delta and isinstance(delta.get("content"), str):
            first["content"] = (first.get("content") or "") + delta["content"]


class ReversesInPlace(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        super()._delta(delta)
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"].reverse()


# What is passed on for a chunk


class TextAgainAtTheEnd(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        before = self._answer.complete
        delta = super().feed(payload, event)
        if self._answer.complete and not before:
            return replace(delta or Delta(), text=self.outcome().text)
        return delta


class TrimsWhatIsPassedOn(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=delta.text.strip())


class ReasoningPassedOnAsText(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return delta and replace(delta, text=delta.reasoning + delta.text, reasoning="")


class TextPassedOnAtTheEnd(ChatAccumulator):
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


class ArgumentsSoFarPassedOn(_Fragments):
    def fragment(self, call: StagedCall, text: str) -> Fragment:
        return Fragment(call.arguments, call.id, call.name, call.number)


class FragmentsOfTheFirstCall(_Fragments):
    def fragment(self, call: StagedCall, text: str) -> Fragment:
        first = self._calls[0]
        return Fragment(text, first.id, first.name, 0)


class FirstFragmentNotPassedOn(_Fragments):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        choices = payload.get("choices") or [{}]
        given = entries((choices[0] or {}).get("delta") or {})
        named = any(function(entry).get("name") for entry in given)
        return replace(delta, tool=()) if delta and named else delta

    def fragment(self, call: StagedCall, text: str) -> Fragment:
        return Fragment(text, call.id, call.name, call.number)


class HandsOnTheSum(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        return None if delta is None else replace(delta, text=self.outcome().text)


class SurfacesTwice(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        again = self._answer.complete and delta is None
        return Delta(tool_calls=self.outcome().tool_calls) if again else delta


class ForgetsInBetween(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        parts = self._answer._texts["text"].get((), [])
        return outcome if outcome.finish or not parts else replace(outcome, text=parts[-1])


# Text and calls of unusual answers


class CallsOfTheFinishOnly(ChatAccumulator):
    def _choice(self, choice: Object, *, failing: bool) -> None:
        delta = {**(choice.get("delta") or {}), "tool_calls": None}
        super()._choice(
            choice if choice.get("finish_reason") else {**choice, "delta": delta}, failing=failing
        )


class RefusalRaises(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if delta.get("refusal"):
            raise ValueError("the model refused to answer")
        super()._delta(delta)


class NoTextIsNone(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text or cast("str", None))


class CallsFinishAsStop(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = outcome.finish == "tool_calls"
        return replace(outcome, finish="stop") if calls else outcome


class ReasoningTakenOffTheOutput(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        usage = outcome.usage
        if usage is None or usage.output is None:
            return outcome
        output = usage.output - (usage.reasoning or 0)
        return replace(outcome, usage=replace(usage, output=output))


class FingerprintRequired(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        if payload.get("choices"):
            payload["system_fingerprint"]
        return super().feed(payload, event)


class LargeCharactersDropped(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text="".join(one for one in outcome.text if one < "\U00010000"))


class ReturnsDropped(ChatAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, text=outcome.text.replace("\r", ""))


class KeysInLowerCase(ChangedCalls):
    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        return replace(call, arguments={key.lower(): call.arguments[key] for key in call.arguments})


class FragmentsUnderTheIdOfTheChunk(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        id = payload.get("id") or ""
        return delta and replace(delta, tool=tuple(replace(one, id=id) for one in delta.tool))


class LastWordNotPassedOn(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        if delta is None:
            return None
        text = self.__dict__.pop("word", "") + delta.text
        words, space, self.__dict__["word"] = text.rpartition(" ")
        return replace(delta, text=words + space)


class ErrorAfterTheFinishIgnored(ChatAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        late = self._answer.complete and (payload.get("error") or event == "error")
        return None if late else super().feed(payload, event)


_NAMES: dict[Any, str] = {}

SHARED.append(_NAMES)


class RemembersNames(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        name = function(entry).get("name")
        if name:
            known = _NAMES.setdefault(entry.get("index"), name)
            entry = {**entry, "function": {**function(entry), "name": known}}
        super()._fragment(entry)


class NullReplacedInPlace(ChatAccumulator):
    def _delta(self, delta: Object) -> None:
        if isinstance(delta, dict):
            delta["content"] = delta.get("content") or ""
        super()._delta(delta)


class EmptyAnswerRaises(ChatAccumulator):
    def close(self) -> None:
        super().close()
        outcome = self.outcome()
        if not (outcome.text or outcome.tool_calls or outcome.errors):
            raise ValueError("the model returned an empty response")
