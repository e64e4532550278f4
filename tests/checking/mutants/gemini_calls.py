"""Mistakes with calls, their arguments and ids in Gemini."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import GeminiAccumulator
from examples.accumulators.values import mapping, sequence, string
from mockllm.checking.outcome import Outcome
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import with_calls, with_leaves, with_strings

Object = Mapping[str, Any]


class KeyedByName(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {call.name: call for call in outcome.tool_calls}
        return Outcome(**{**_fields(outcome), "tool_calls": tuple(calls.values())})


class NameIsTheId(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        super()._call({**value, "id": value.get("id") or value.get("name")})


class ArgsRequired(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        if "partialArgs" not in value and "willContinue" not in value and value.get("name"):
            dict(value["args"])
        super()._call(value)


class TextOfTheFinishLost(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        calls = [part for part in _parts(candidate) if "text" not in part]
        content = {"parts": calls}
        super()._candidate(
            {**candidate, "content": content} if candidate.get("finishReason") else candidate
        )


class CallOfTheFinishLost(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        texts = [
            part for part in _parts(candidate) if not mapping(part.get("functionCall")).get("args")
        ]
        content = {"parts": texts}
        super()._candidate(
            {**candidate, "content": content} if candidate.get("finishReason") else candidate
        )


class CallsByFinish(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = () if outcome.finish == "STOP" else outcome.tool_calls
        return Outcome(**{**_fields(outcome), "tool_calls": calls})


class PartialArgsUnknown(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        super()._call({"name": value.get("name") or "unknown", "args": value.get("args")})


class ArgsOfAString(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        args = value.get("args")
        super()._call({**value, "args": {"value": args}} if isinstance(args, str) else value)


class PartsRequired(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        candidate["content"]["parts"][0]
        super()._candidate(candidate)


class ThoughtsAreText(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        super()._part({**part, "thought": False})


class SumsUsage(GeminiAccumulator):
    def _usage(self, usage: Object) -> None:
        before = self.__dict__.get("sum", 0)
        self.__dict__["sum"] = before + usage.get("candidatesTokenCount", 0)
        super()._usage({**usage, "candidatesTokenCount": self.__dict__["sum"]})


class ErrorIsAnEnd(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        if chunk.get("error"):
            self._answer.complete = True
        else:
            super()._chunk(chunk)


class EndOfInputIsTheEnd(GeminiAccumulator):
    def close(self) -> None:
        self._answer.complete = True
        super().close()


class SharesCalls(GeminiAccumulator):
    _all: list[Any] = []  # noqa: RUF012 - the mistake

    def __init__(self) -> None:
        super().__init__()
        self._all.clear()

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        delta = super().feed(payload, event)
        self._all.extend(sequence(list(delta.tool_calls) if delta else []))
        return delta

    def outcome(self) -> Outcome:
        return Outcome(**{**_fields(super().outcome()), "tool_calls": tuple(self._all)})


def _parts(candidate: Object) -> list[Any]:
    return sequence(mapping(candidate.get("content")).get("parts"))


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in Outcome.__dataclass_fields__}


def _with_parts(candidate: Object, parts: list[Any]) -> Object:
    return {**candidate, "content": {**mapping(candidate.get("content")), "parts": parts}}


class LastCallOfAChunk(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        calls = [part for part in parts if "functionCall" in part]
        kept = [part for part in parts if part not in calls or part is calls[-1]]
        super()._candidate(_with_parts(candidate, kept) if calls else candidate)


class CallsOfTheLastChunk(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        if any(mapping(part.get("functionCall")).get("name") for part in _parts(candidate)):
            self._answer._calls.clear()
        super()._candidate(candidate)


class EqualCallsAreOne(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {(call.name, json.dumps(call.arguments)): call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


class EveryCallHasIndexZero(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = outcome.tool_calls
        if len(calls) < 2:
            return outcome
        text = "".join(json.dumps(call.arguments) for call in calls)
        return replace(outcome, tool_calls=(replace(calls[-1], arguments=text),))


class IdIsThePositionInTheChunk(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        numbered: list[Object] = []
        for part in _parts(candidate):
            call = mapping(part.get("functionCall"))
            if call.get("name") and not call.get("id"):
                id = f"call_{sum('functionCall' in known for known in numbered)}"
                part = {**part, "functionCall": {**call, "id": id}}
            numbered.append(part)
        super()._candidate(_with_parts(candidate, numbered) if numbered else candidate)


class OwnIdsAlways(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        super()._call({**value, "id": None})


class CallsSortedByName(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = sorted(outcome.tool_calls, key=lambda call: call.name, reverse=True)
        return replace(outcome, tool_calls=tuple(calls))


class NamespaceDropped(GeminiAccumulator):
    def outcome(self) -> Outcome:
        def changed(call: Any) -> Any:
            return replace(call, name=call.name.partition("_")[2] or call.name)

        return with_calls(super().outcome(), changed)


class CallsWithoutArgsIgnored(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        call = mapping(part.get("functionCall"))
        without = call.get("name") and not {"args", "partialArgs", "willContinue"} & call.keys()
        super()._part({**part, "functionCall": None} if without else part)


class EmptyArgsIgnored(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        call = mapping(part.get("functionCall"))
        super()._part({**part, "functionCall": None} if call.get("args") == {} else part)


# Partial arguments


class _Partial(GeminiAccumulator):
    """Changes the partial arguments of calls; mutants derive from it."""

    def partial(self, value: Object) -> Object | None:
        """A partial argument as the client reads it; None: it is dropped."""
        return value

    def _call(self, value: Object) -> None:
        partials = map(self.partial, map(mapping, sequence(value.get("partialArgs"))))
        kept = [partial for partial in partials if partial is not None]
        super()._call({**value, "partialArgs": kept} if "partialArgs" in value else value)


class PartialStringsOnly(_Partial):
    def partial(self, value: Object) -> Object | None:
        return value if "stringValue" in value else None


class PartialNullsDropped(_Partial):
    def partial(self, value: Object) -> Object | None:
        return None if "nullValue" in value else value


class FalsyPartialsDropped(_Partial):
    def partial(self, value: Object) -> Object | None:
        names = ("stringValue", "numberValue", "boolValue")
        falsy = any(name in value and not value[name] for name in names)
        return None if falsy else value


class PartialBooleansAsText(_Partial):
    def partial(self, value: Object) -> Object | None:
        for name in ("numberValue", "boolValue"):
            if name in value:
                return {"jsonPath": value.get("jsonPath"), "stringValue": str(value[name])}
        return value


class PathIsAKey(_Partial):
    def partial(self, value: Object) -> Object | None:
        path = string(value.get("jsonPath")).removeprefix("$.")
        return {**value, "jsonPath": f"$[{json.dumps(path)}]"}


class LastKeyOfThePath(_Partial):
    def partial(self, value: Object) -> Object | None:
        path = string(value.get("jsonPath")).rpartition(".")[2]
        return {**value, "jsonPath": f"$.{path}"}


class PartialStringsAssigned(_Partial):
    def partial(self, value: Object) -> Object | None:
        if "stringValue" in value and self._partial_call is not None:
            root = self._partial_call[1]._root
            root.pop(string(value.get("jsonPath")).removeprefix("$."), None)
        return value


class FirstPartialOnly(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        partials = sequence(value.get("partialArgs"))[:1]
        super()._call({**value, "partialArgs": partials} if partials else value)


class PartialCallAtOnce(GeminiAccumulator):
    def _call(self, value: Object) -> None:
        super()._call({**value, "willContinue": None} if value.get("name") else value)


# Values of arguments


class SingleQuotesReplaced(GeminiAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.replace("'", '"'))


class NumbersAsText(GeminiAccumulator):
    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), _text_of_number)


def _text_of_number(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else value


class HandsOnCallsAgainAtTheEnd(GeminiAccumulator):
    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        finished = self._answer.complete
        delta = super().feed(payload, event)
        calls = self.outcome().tool_calls
        ends = self._answer.complete and not finished
        return replace(delta or Delta(), tool_calls=calls) if ends and calls else delta


# Chunks


class CandidatesRequired(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        if "error" not in chunk:
            chunk["candidates"]
        super()._chunk(chunk)


class CacheIsZero(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, usage=outcome.usage and replace(outcome.usage, cached=0))


class CallsOfTheFinishOnly(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        kept = [part for part in _parts(candidate) if "functionCall" not in part]
        ends = bool(candidate.get("finishReason"))
        content = {**mapping(candidate.get("content")), "parts": kept}
        super()._candidate(candidate if ends else {**candidate, "content": content})


class StringsDecodedAgain(GeminiAccumulator):
    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), _decoded)


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class GroundingRaises(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        if "groundingMetadata" in candidate:
            raise ValueError("unexpected field groundingMetadata")
        super()._candidate(candidate)


class DataAreText(GeminiAccumulator):
    def _part(self, part: Object) -> None:
        data = string(mapping(part.get("inlineData")).get("data"))
        super()._part({**part, "text": data} if data else part)


class BlockedPromptRaises(GeminiAccumulator):
    def _chunk(self, chunk: Object) -> None:
        if mapping(chunk.get("promptFeedback")).get("blockReason"):
            raise ValueError("the prompt was blocked")
        super()._chunk(chunk)


class ChunksAreSnapshots(GeminiAccumulator):
    def _candidate(self, candidate: Object) -> None:
        if any(part.get("text") and not part.get("thought") for part in _parts(candidate)):
            self._answer._texts["text"].clear()
        super()._candidate(candidate)


class RoleOfAFunction(GeminiAccumulator):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, role="function") if outcome.tool_calls else outcome
