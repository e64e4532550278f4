"""Chat Completions: mistakes with the values in arguments, which are parsed already."""

from __future__ import annotations

import ast
import html
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from examples.accumulators import ChatAccumulator
from examples.accumulators.answer import parsed
from mockllm.checking.outcome import Call
from tests.checking.mutants.chat_more_base import ChangedCalls, with_values
from tests.checking.mutants.declared import mutant

_FAMILY = "argument values"


class _ChangedValues(ChangedCalls):
    """Changes each string, number, boolean and null in the arguments."""

    def value(self, value: Any) -> Any:
        """The value as the mutant reports it."""
        raise NotImplementedError

    def changed(self, call: Call) -> Call:
        return replace(call, arguments=with_values(call.arguments, self.value))


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class EntitiesUnescaped(_ChangedValues):
    """Decodes HTML entities in strings (smg-project/smg#1888, openclaw/openclaw#35276,
    tetsuo-ai/AgenC#1280, otheru-ai/ember#15)."""

    def value(self, value: Any) -> Any:
        return html.unescape(value) if isinstance(value, str) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class EntitiesEscaped(_ChangedValues):
    """Escapes strings for HTML, apostrophes included."""

    def value(self, value: Any) -> Any:
        return html.escape(value) if isinstance(value, str) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class LargeNumbersRounded(_ChangedValues):
    """Reads integers as floating-point numbers, which loses digits above 2**53
    (earendil-works/pi#8943, langfuse/langfuse#14449)."""

    def value(self, value: Any) -> Any:
        return int(float(value)) if type(value) is int else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class FractionsCut(_ChangedValues):
    """Cuts numbers to integers."""

    def value(self, value: Any) -> Any:
        return int(value) if isinstance(value, float) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class SinglePrecision(_ChangedValues):
    """Rounds numbers to seven digits, as 32-bit floating-point numbers do."""

    def value(self, value: Any) -> Any:
        return float(f"{value:.7g}") if isinstance(value, float) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class BooleansAreNumbers(_ChangedValues):
    """Reports 1 and 0 for true and false."""

    def value(self, value: Any) -> Any:
        return int(value) if isinstance(value, bool) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class BooleansAreText(_ChangedValues):
    """Reports "True" and "False" for true and false."""

    def value(self, value: Any) -> Any:
        return str(value) if isinstance(value, bool) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class NumbersAreText(_ChangedValues):
    """Reports numbers as text, as a map of strings holds them."""

    def value(self, value: Any) -> Any:
        return json.dumps(value) if type(value) in (int, float) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class TextIsConverted(_ChangedValues):
    """Reads strings that look like another JSON value as that value."""

    def value(self, value: Any) -> Any:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class StringsTrimmed(_ChangedValues):
    """Trims strings in arguments."""

    def value(self, value: Any) -> Any:
        return value.strip() if isinstance(value, str) else value


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class WordsAreNull(_ChangedValues):
    """Reads the strings "None", "null" and "undefined" as null."""

    def value(self, value: Any) -> Any:
        return None if value in ("None", "null", "undefined") else value


def _without(call: Call, dropped: Callable[[Any], bool]) -> Call:
    """The call without the arguments whose values are dropped."""
    if not isinstance(call.arguments, dict):
        return call
    kept = {key: value for key, value in call.arguments.items() if not dropped(value)}
    return replace(call, arguments=kept)


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class NullsLost(ChangedCalls):
    """Drops arguments that are null."""

    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value is None)


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class EmptyStringsLost(ChangedCalls):
    """Drops arguments that are an empty string."""

    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value == "")


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class FalseAndZeroLost(ChangedCalls):
    """Drops arguments that are false or 0."""

    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value in (False, 0) and value is not None)


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class EmptyListsLost(ChangedCalls):
    """Drops arguments that are an empty list or object."""

    def changed(self, call: Call) -> Call:
        return _without(call, lambda value: value in ([], {}))


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class ObjectsFlattened(ChangedCalls):
    """Flattens nested objects to keys with dots."""

    def changed(self, call: Call) -> Call:
        flat: dict[str, Any] = {}
        for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
            inner = value if isinstance(value, dict) else {}
            flat |= {f"{key}.{name}": one for name, one in inner.items()} or {key: value}
        return replace(call, arguments=flat) if isinstance(call.arguments, dict) else call


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class NestedValuesAreText(ChangedCalls):
    """Reports nested objects and lists as JSON text."""

    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        arguments = {
            key: json.dumps(value) if isinstance(value, dict | list) else value
            for key, value in call.arguments.items()
        }
        return replace(call, arguments=arguments)


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class SingleItemsUnwrapped(ChangedCalls):
    """Reports the item of a list that has one, as converters from XML do."""

    def changed(self, call: Call) -> Call:
        if not isinstance(call.arguments, dict):
            return call
        arguments = {
            key: value[0] if isinstance(value, list) and len(value) == 1 else value
            for key, value in call.arguments.items()
        }
        return replace(call, arguments=arguments)


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class KeysInSnakeCase(ChangedCalls):
    """Converts the keys of arguments from camelCase to snake_case."""

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


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class QuotesReplaced(_Repaired):
    """Replaces single quotes by double quotes, also inside of strings
    (waybarrios/vllm-mlx#64, lablup/mlxcel#1306)."""

    def repaired(self, arguments: str) -> str:
        return arguments.replace("'", '"')


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class LiteralsReplaced(_Repaired):
    """Replaces True, False and None by JSON's literals, also inside of strings."""

    def repaired(self, arguments: str) -> str:
        replaced = arguments.replace("True", "true").replace("False", "false")
        return replaced.replace("None", "null")


@mutant("arguments-concatenate", api="chat", family=_FAMILY)
class CommasRemoved(_Repaired):
    """Removes commas before closing brackets, also inside of strings."""

    def repaired(self, arguments: str) -> str:
        return arguments.replace(",}", "}").replace(",]", "]").replace(", }", "}")


@mutant("surface-complete", api="chat", family=_FAMILY)
class PythonIsArguments(_Repaired):
    """Accepts Python's literals for arguments (waybarrios/vllm-mlx#64)."""

    def repaired(self, arguments: str) -> str:
        try:
            return arguments if parsed(arguments) else json.dumps(ast.literal_eval(arguments))
        except (ValueError, SyntaxError, TypeError):
            return arguments


@mutant("surface-complete", api="chat", family=_FAMILY)
class FirstObjectOnly(_Repaired):
    """Parses the first object of the arguments, and ignores what follows
    (diegosouzapw/OmniRoute#11044; `chat-args-repeated-at-end`)."""

    def repaired(self, arguments: str) -> str:
        try:
            _, end = json.JSONDecoder().raw_decode(arguments)
        except ValueError:
            return arguments
        return arguments[:end]
