"""Gemini: more mistakes with calls, partial arguments, and the values of arguments."""

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
from tests.checking.mutants.common import common
from tests.checking.mutants.declared import WATCHED, mutant

Object = Mapping[str, Any]

common(
    __name__,
    "gemini",
    MalformedArgsAreEmpty="Runs a call whose `args` are no object with `{}` (`gem-args-string`).",
    BigIntegersThroughFloat="Reads integers as floating-point numbers (google/adk-python#3592).",
    HtmlUnescaped="Unescapes HTML entities in arguments.",
    BooleansAsText="Turns booleans into text, as a map of strings does.",
    NullArgumentsDropped="Drops arguments that are null.",
    NestedAsText="Encodes nested objects and arrays a second time, as text.",
)


def _parts(candidate: Object) -> list[Any]:
    return sequence(mapping(candidate.get("content")).get("parts"))


def _with_parts(candidate: Object, parts: list[Any]) -> Object:
    return {**candidate, "content": {**mapping(candidate.get("content")), "parts": parts}}


@mutant("surface-once", api="gemini", family="call identity")
class LastCallOfAChunk(GeminiAccumulator):
    """Keeps one call of each chunk, the last (jeremychone/rust-genai#173)."""

    def _candidate(self, candidate: Object) -> None:
        parts = _parts(candidate)
        calls = [part for part in parts if "functionCall" in part]
        kept = [part for part in parts if part not in calls or part is calls[-1]]
        super()._candidate(_with_parts(candidate, kept) if calls else candidate)


@mutant("surface-once", api="gemini", family="call identity")
class CallsOfTheLastChunk(GeminiAccumulator):
    """Replaces the calls of earlier chunks by those of a later one
    (allenhutchison/obsidian-gemini#230)."""

    def _candidate(self, candidate: Object) -> None:
        if any(mapping(part.get("functionCall")).get("name") for part in _parts(candidate)):
            self._answer._calls.clear()
        super()._candidate(candidate)


@mutant("surface-once", api="gemini", family="call identity")
class EqualCallsAreOne(GeminiAccumulator):
    """Drops a call that has the name and the arguments of an earlier one, as a duplicate."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = {(call.name, json.dumps(call.arguments)): call for call in outcome.tool_calls}
        return replace(outcome, tool_calls=tuple(calls.values()))


@mutant("arguments-concatenate", api="gemini", family="call identity")
class EveryCallHasIndexZero(GeminiAccumulator):
    """Joins the arguments of all calls, since each has index 0 (omnigent-ai/omnigent#28,
    Mingye-Lu/AgenticCrawler#113, NousResearch/hermes-agent#57939)."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = outcome.tool_calls
        if len(calls) < 2:
            return outcome
        text = "".join(json.dumps(call.arguments) for call in calls)
        return replace(outcome, tool_calls=(replace(calls[-1], arguments=text),))


@mutant("missing-id", api="gemini", family="call ids")
class IdIsThePositionInTheChunk(GeminiAccumulator):
    """Makes the id of a call from its position in its chunk, so that calls in two chunks have
    one id (su-kaka/gcli2api#406)."""

    def _candidate(self, candidate: Object) -> None:
        numbered: list[Object] = []
        for part in _parts(candidate):
            call = mapping(part.get("functionCall"))
            if call.get("name") and not call.get("id"):
                id = f"call_{sum('functionCall' in known for known in numbered)}"
                part = {**part, "functionCall": {**call, "id": id}}
            numbered.append(part)
        super()._candidate(_with_parts(candidate, numbered) if numbered else candidate)


@mutant("id-kept", api="gemini", family="call ids")
class OwnIdsAlways(GeminiAccumulator):
    """Gives its own ids to calls that have one; the service then finds no call for a result
    (jeremychone/rust-genai#232, NousResearch/hermes-agent#46077)."""

    def _call(self, value: Object) -> None:
        super()._call({**value, "id": None})


@mutant("order-by-index", api="gemini", family="call order")
class CallsSortedByName(GeminiAccumulator):
    """Groups calls by the name of their tool; without ids, the order identifies them."""

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        calls = sorted(outcome.tool_calls, key=lambda call: call.name, reverse=True)
        return replace(outcome, tool_calls=tuple(calls))


@mutant("name-kept", api="gemini", family="call names")
class NamespaceDropped(GeminiAccumulator):
    """Drops the part of a name before its first underscore, as the prefix of a server."""

    def outcome(self) -> Outcome:
        def changed(call: Any) -> Any:
            return replace(call, name=call.name.partition("_")[2] or call.name)

        return with_calls(super().outcome(), changed)


@mutant("zero-arguments", api="gemini", family="zero arguments")
class CallsWithoutArgsIgnored(GeminiAccumulator):
    """Reads only calls that have `args` (JetBrains/koog#2146)."""

    def _part(self, part: Object) -> None:
        call = mapping(part.get("functionCall"))
        without = call.get("name") and not {"args", "partialArgs", "willContinue"} & call.keys()
        super()._part({**part, "functionCall": None} if without else part)


@mutant("zero-arguments", api="gemini", family="zero arguments")
class EmptyArgsIgnored(GeminiAccumulator):
    """Tests `args` for truth: a call with an empty object is dropped."""

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


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class PartialStringsOnly(_Partial):
    """Reads `stringValue` alone."""

    def partial(self, value: Object) -> Object | None:
        return value if "stringValue" in value else None


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class PartialNullsDropped(_Partial):
    """Does not know `nullValue` (mpfaffenberger/code_puppy#293)."""

    def partial(self, value: Object) -> Object | None:
        return None if "nullValue" in value else value


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class FalsyPartialsDropped(_Partial):
    """Tests partial values for truth: 0, false and the empty string are lost."""

    def partial(self, value: Object) -> Object | None:
        names = ("stringValue", "numberValue", "boolValue")
        falsy = any(name in value and not value[name] for name in names)
        return None if falsy else value


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class PartialBooleansAsText(_Partial):
    """Appends every partial value as text."""

    def partial(self, value: Object) -> Object | None:
        for name in ("numberValue", "boolValue"):
            if name in value:
                return {"jsonPath": value.get("jsonPath"), "stringValue": str(value[name])}
        return value


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class PathIsAKey(_Partial):
    """Uses the path as one key: `$.stops[0].city` becomes the key `stops[0].city`."""

    def partial(self, value: Object) -> Object | None:
        path = string(value.get("jsonPath")).removeprefix("$.")
        return {**value, "jsonPath": f"$[{json.dumps(path)}]"}


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class LastKeyOfThePath(_Partial):
    """Uses the last key of the path, and so flattens nested arguments."""

    def partial(self, value: Object) -> Object | None:
        path = string(value.get("jsonPath")).rpartition(".")[2]
        return {**value, "jsonPath": f"$.{path}"}


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class PartialStringsAssigned(_Partial):
    """Assigns `stringValue` instead of appending it to the string at its path."""

    def partial(self, value: Object) -> Object | None:
        if "stringValue" in value and self._partial_call is not None:
            root = self._partial_call[1]._root
            root.pop(string(value.get("jsonPath")).removeprefix("$."), None)
        return value


@mutant("arguments-concatenate", api="gemini", family="argument fragments")
class FirstPartialOnly(GeminiAccumulator):
    """Reads the first entry of `partialArgs` alone."""

    def _call(self, value: Object) -> None:
        partials = sequence(value.get("partialArgs"))[:1]
        super()._call({**value, "partialArgs": partials} if partials else value)


@mutant("surface-complete", api="gemini", family="emission")
class PartialCallAtOnce(GeminiAccumulator):
    """Runs a call at its first chunk, although `willContinue` is true (`gem-partial-args`)."""

    def _call(self, value: Object) -> None:
        super()._call({**value, "willContinue": None} if value.get("name") else value)


# Values of arguments


@mutant("arguments-concatenate", api="gemini", family="argument values")
class SingleQuotesReplaced(GeminiAccumulator):
    """Writes arguments as Python does and reads them back with quotes replaced, so that every
    apostrophe becomes a quote (NousResearch/atropos#478)."""

    def outcome(self) -> Outcome:
        return with_strings(super().outcome(), lambda text: text.replace("'", '"'))


@mutant("arguments-concatenate", api="gemini", family="argument values")
class NumbersAsText(GeminiAccumulator):
    """Turns numbers into text."""

    def outcome(self) -> Outcome:
        return with_leaves(super().outcome(), _text_of_number)


def _text_of_number(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else value


@mutant("surface-once", api="gemini", policy=WATCHED, family="deltas")
class HandsOnCallsAgainAtTheEnd(GeminiAccumulator):
    """Passes on each call when it comes, and all of them again with the finish reason."""

    def feed(self, payload: Any, event: str | None = None) -> Delta | None:
        finished = self._answer.complete
        delta = super().feed(payload, event)
        calls = self.outcome().tool_calls
        ends = self._answer.complete and not finished
        return replace(delta or Delta(), tool_calls=calls) if ends and calls else delta
