"""Mistakes with fragments and values of arguments in Chat Completions."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import StagedCall, parsed
from examples.accumulators.values import mapping, sequence
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome
from tests.checking.mutants.altered import failed, with_errors

Object = Mapping[str, Any]


def entries(delta: Object) -> list[dict[str, Any]]:
    """The entries of `tool_calls` of a delta, copied."""
    return [dict(mapping(entry)) for entry in sequence(delta.get("tool_calls"))]


def function(entry: Object) -> Object:
    """The `function` of an entry; empty if it is null or absent."""
    return mapping(entry.get("function"))


def with_arguments(entry: Object, change: Callable[[str], str]) -> Object:
    """The entry with changed arguments, if they are text."""
    arguments = function(entry).get("arguments")
    if not isinstance(arguments, str):
        return entry
    return {**entry, "function": {**function(entry), "arguments": change(arguments)}}


def with_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """A JSON value with each string, number, boolean and null in it changed."""
    if isinstance(value, dict):
        return {key: with_values(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_values(inner, change) for inner in value]
    return change(value)


class ChangedCalls(ChatAccumulator):
    """Reports its calls changed by a subclass."""

    def changed(self, call: Call) -> Call:
        """The call as the mutant reports it."""
        return call

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        return replace(outcome, tool_calls=tuple(map(self.changed, outcome.tool_calls)))


_MOST_CHARACTERS = 2048


# Fragments


class NameOrArguments(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        named = bool(function(entry).get("name"))
        super()._fragment(with_arguments(entry, lambda text: "" if named else text))


class TrimsArguments(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(with_arguments(entry, str.strip))


class BlankFragmentsLost(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(with_arguments(entry, lambda text: text if text.strip() else ""))


class EqualFragmentLost(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        fragment = function(entry).get("arguments")
        same = fragment is not None and fragment == self.__dict__.get("before")
        self.__dict__["before"] = fragment
        super()._fragment(with_arguments(entry, lambda text: "" if same else text))


class LongerFragmentReplaces(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        call = self._find_call(entry.get("index"), entry.get("id") or "", "")
        fragment = function(entry).get("arguments")
        known = call.arguments if call is not None else ""
        if call is not None and known and isinstance(fragment, str) and fragment.startswith(known):
            call.arguments = ""
        super()._fragment(entry)


class LongArgumentsCut(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        assert self._last is not None
        self._last.arguments = self._last.arguments[:_MOST_CHARACTERS]


class NullIsText(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(entry)
        assert self._last is not None
        if "arguments" in function(entry) and function(entry)["arguments"] is None:
            self._last.arguments += str(None)


class ObjectArgumentsLost(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        fields = dict(function(entry))
        if not isinstance(fields.get("arguments"), str):
            fields["arguments"] = ""
        super()._fragment({**entry, "function": fields})


class UnescapesFragments(ChatAccumulator):
    def _fragment(self, entry: Object) -> None:
        super()._fragment(
            with_arguments(entry, lambda text: text.replace("\\n", "\n").replace('\\"', '"'))
        )


class EscapesDecodedEarly(ChatAccumulator):
    def _surface(self) -> None:
        for call in self._calls:
            unit = re.compile(r"\\u([0-9a-f]{4})", re.IGNORECASE)
            call.arguments = unit.sub(lambda found: chr(int(found[1], 16)), call.arguments)
        super()._surface()


# Calls without arguments


class EmptyObjectLost(ChangedCalls):
    def outcome(self) -> Outcome:
        outcome = super().outcome()
        kept = tuple(call for call in outcome.tool_calls if call.arguments)
        return replace(outcome, tool_calls=kept)


class EmptyObjectIsAList(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return call if call.arguments else replace(call, arguments=[])


class EmptyArgumentsAsText(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return call if call.arguments else replace(call, arguments="null")


# Arguments as text


class _RawArguments(ChangedCalls):
    """Keeps the arguments as text, and changes the text."""

    def raw(self, call: Call, sent: str) -> str | None:
        """The text that the mutant keeps for arguments that were sent as `sent`."""
        raise NotImplementedError

    def changed(self, call: Call) -> Call:
        known = call.raw_arguments
        if known is not NOT_KEPT and isinstance(known, str):
            return replace(call, raw_arguments=self.raw(call, known))
        return call


class RawSerialisedAgain(_RawArguments):
    def raw(self, call: Call, sent: str) -> str | None:
        return json.dumps(call.arguments)


class RawCanonical(_RawArguments):
    def raw(self, call: Call, sent: str) -> str | None:
        return json.dumps(call.arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class RawNullForEmpty(_RawArguments):
    def raw(self, call: Call, sent: str) -> str | None:
        return sent or None


class RawObjectForEmpty(_RawArguments):
    def raw(self, call: Call, sent: str) -> str | None:
        return sent or "{}"


class RawTrimmed(_RawArguments):
    def raw(self, call: Call, sent: str) -> str | None:
        return sent.strip()


class RawNullIsText(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return replace(call, raw_arguments="null") if call.arguments == {} else call


# Arguments that do not parse


class MalformedIsEmpty(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = call.arguments if parsed(call.arguments) is not None else "{}"
        super().close()


class MalformedKept(ChatAccumulator):
    def __init__(self) -> None:
        super().__init__(malformed="keep")


class MalformedWrapped(ChatAccumulator):
    def close(self) -> None:
        for call in self._answer.open_calls():
            if parsed(call.arguments) is None:
                call.arguments = json.dumps({"input": call.arguments})
        super().close()


class MalformedLosesText(ChatAccumulator):
    def outcome(self) -> Outcome:
        return failed(super().outcome(), "malformed_arguments", text="")


class MalformedEndsTheLoop(ChatAccumulator):
    def _surface(self) -> None:
        for call in self._answer.open_calls():
            if call.arguments and parsed(call.arguments) is None:
                self._drop_after(call)
        super()._surface()

    def _drop_after(self, malformed: StagedCall) -> None:
        for call in self._answer.open_calls():
            call.closed = call.position > malformed.position


class MalformedUnnamed(ChatAccumulator):
    def outcome(self) -> Outcome:
        return with_errors(
            super().outcome(), "malformed_arguments", message="invalid JSON", tool=None
        )


class AnyJsonIsArguments(ChangedCalls):
    def close(self) -> None:
        self.__dict__["others"] = [
            (call.id, call.name, json.loads(call.arguments))
            for call in self._answer.open_calls()
            if _is_other_json(call.arguments)
        ]
        for call in self._answer.open_calls():
            call.closed = _is_other_json(call.arguments)
        super().close()

    def outcome(self) -> Outcome:
        outcome = super().outcome()
        others = self.__dict__.get("others", ())
        calls = tuple(Call(name, arguments, id) for id, name, arguments in others)
        return replace(outcome, tool_calls=(*outcome.tool_calls, *calls))


def _is_other_json(text: str) -> bool:
    """Whether a text is JSON, and no object."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return not isinstance(value, dict)


class MalformedDoesNotFail(ChatAccumulator):
    pass


_FAMILY = "argument values"


class _ChangedValues(ChangedCalls):
    """Changes each string, number, boolean and null in the arguments."""

    def value(self, value: Any) -> Any:
        """The value as the mutant reports it."""
        raise NotImplementedError

    def changed(self, call: Call) -> Call:
        return replace(call, arguments=with_values(call.arguments, self.value))


class EntitiesUnescaped(_ChangedValues):
    def value(self, value: Any) -> Any:
        return html.unescape(value) if isinstance(value, str) else value


class EntitiesEscaped(_ChangedValues):
    def value(self, value: Any) -> Any:
        return html.escape(value) if isinstance(value, str) else value


class LargeNumbersRounded(_ChangedValues):
    def value(self, value: Any) -> Any:
        return int(float(value)) if type(value) is int else value


class FractionsCut(_ChangedValues):
    def value(self, value: Any) -> Any:
        return int(value) if isinstance(value, float) else value


class SinglePrecision(_ChangedValues):
    def value(self, value: Any) -> Any:
        return float(f"{value:.7g}") if isinstance(value, float) else value


class BooleansAreNumbers(_ChangedValues):
    def value(self, value: Any) -> Any:
        return int(value) if isinstance(value, bool) else value


class BooleansAreText(_ChangedValues):
    def value(self, value: Any) -> Any:
        return str(value) if isinstance(value, bool) else value


class NumbersAreText(_ChangedValues):
    def value(self, value: Any) -> Any:
        return json.dumps(value) if type(value) in (int, float) else value


class TextIsConverted(_ChangedValues):
    def value(self, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return value


class StringsTrimmed(_ChangedValues):
    def value(self, value: Any) -> Any:
        return value.strip() if isinstance(value, str) else value


class WordsAreNull(_ChangedValues):
    def value(self, value: Any) -> Any:
        return None if value in ("None", "null", "undefined") else value


def _without(call: Call, dropped: Callable[[Any], bool]) -> Call:
    """The call without the arguments whose values are dropped."""
    if not isinstance(call.arguments, dict):
        return call
    kept = {key: value for key, value in call.arguments.items() if not dropped(value)}
    return replace(call, arguments=kept)


class NullsLost(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value is None)


class EmptyStringsLost(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value == "")


class FalseAndZeroLost(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value in (False, 0) and value is not None)


class EmptyListsLost(ChangedCalls):
    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value in ([], {}))


class ObjectsFlattened(ChangedCalls):
    def changed(self, call: Call) -> Call:
        flat: dict[str, Any] = {}
        for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
            inner = value if isinstance(value, dict) else {}
            flat |= {f"{key}.{name}": one for name, one in inner.items()} or {key: value}
        return replace(call, arguments=flat) if isinstance(call.arguments, dict) else call


class NestedValuesAreText(ChangedCalls):
    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        arguments = {
            key: json.dumps(value) if isinstance(value, dict | list) else value
            for key, value in call.arguments.items()
        }
        return replace(call, arguments=arguments)


class SingleItemsUnwrapped(ChangedCalls):
    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        arguments = {
            key: value[0] if isinstance(value, list) and len(value) == 1 else value
            for key, value in call.arguments.items()
        }
        return replace(call, arguments=arguments)


class KeysInSnakeCase(ChangedCalls):
    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        arguments = {_snake_case(key): value for key, value in call.arguments.items()}
        return replace(call, arguments=arguments)


def _snake_case(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


# Repairs, which change arguments that are right


class _Repaired(ChatAccumulator):
    """Repairs the text of arguments before it parses them."""

    def repaired(self, arguments: str) -> str:
        """The text that is parsed."""
        raise NotImplementedError

    def _surface(self) -> None:
        for call in self._answer.open_calls():
            call.arguments = self.repaired(call.arguments)
        super()._surface()


class QuotesReplaced(_Repaired):
    def repaired(self, arguments: str) -> str:
        return arguments.replace("'", '"')


class LiteralsReplaced(_Repaired):
    def repaired(self, arguments: str) -> str:
        replaced = arguments.replace("True", "true").replace("False", "false")
        return replaced.replace("None", "null")


class CommasRemoved(_Repaired):
    def repaired(self, arguments: str) -> str:
        return arguments.replace(",}", "}").replace(",]", "]").replace(", }", "}")


class PythonIsArguments(_Repaired):
    def repaired(self, arguments: str) -> str:
        try:
            return arguments if parsed(arguments) else json.dumps(ast.literal_eval(arguments))
        except (ValueError, SyntaxError, TypeError):
            return arguments


class FirstObjectOnly(_Repaired):
    def repaired(self, arguments: str) -> str:
        try:
            _, end = json.JSONDecoder().raw_decode(arguments)
        except ValueError:
            return arguments
        return arguments[:end]
