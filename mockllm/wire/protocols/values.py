"""Readers of JSON values, of text, of sent files and of stop reasons, which return an empty or a
usual value instead of failing; and objects added up, as clients add up the events of a stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from mockllm.core.events import Finish, FinishReason, Frame, Passage, Unit, Usage
from mockllm.core.request import OfferedTool, SentFile
from mockllm.wire.protocols.records import Fields, Json


def utf8_text(data: bytes) -> str | None:
    """The text of bytes; None for bytes that are no UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def json_value(text: str | bytes | None) -> Any:
    """The JSON value in a text or a body; None, like null, for what is no JSON."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def json_object(text: str | bytes | None) -> Json | None:
    """The JSON object in a text or a body; None for any other."""
    value = json_value(text)
    return value if isinstance(value, dict) else None


def value_or_text(text: str) -> Any:
    """The value of a JSON text; a text that is none is itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def base64_bytes(value: object) -> bytes | None:
    """The bytes of a text in base64; None for other text."""
    try:
        return base64.b64decode(string(value), validate=True)
    except ValueError:
        return None


def plain_object(frame: Frame) -> Json | None:
    """The JSON object in a frame that has nothing but data; None for any other frame."""
    if frame.event or frame.id or frame.comment or frame.raw:
        return None
    return json_object(frame.data)


def sendable_value(text: str) -> Any:
    """The value of a JSON text; None where there is none, or where JSON cannot hold it (NaN)."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return value


def typed_event(frame: Frame) -> Json:
    """The event's JSON object, with `type` always a string; only a `type` of "" for other data.
    Proxies send the type in the event line only, or put a bare {"error": …} into the stream."""
    value = json_object(frame.data)
    if value is None:
        return {"type": ""}
    if not isinstance(value.get("type"), str):
        value["type"] = "error" if value.get("error") else frame.event or ""
    return value


def encodable(text: str) -> str:
    """The text with lone surrogates replaced: JSON can escape them, UTF-8 cannot encode them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def mapping(value: object) -> Fields:
    """The value if it is an object, else an empty one."""
    # dict first: the ABC's check is slow
    return value if isinstance(value, (dict, Mapping)) else {}


def array(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: object) -> list[Json]:
    """The objects in a value that is a list."""
    return [item for item in array(value) if isinstance(item, dict)]


def string(value: object) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    """The value if it is a whole number, else 0."""
    return value if type(value) is int else 0


def within_input(usage: Usage) -> Usage:
    """The usage with at most as many cached and cache-written tokens as input, for APIs that count
    these apart and whose counts cannot be negative."""
    cached = min(usage.cached, usage.input)
    written = min(usage.cache_written, usage.input - cached)
    return replace(usage, cached=cached, cache_written=written)


MOST_DIGITS = 9
"""Of a number in a query. Python reads at most 4,300."""


def digits(text: str) -> int | None:
    """The number that a query has; None for other text."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def whole(value: object) -> int | None:
    """The value if it is a whole number, also one written as a float; otherwise None."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def passage_of(
    source: object, unit: Unit, start: object, end: object, *, of_search: bool = False
) -> Passage | None:
    """The place of a citation; None unless its numbers are some."""
    number, first, last = map(whole, (source, start, end))
    if number is None or first is None or last is None:
        return None
    if min(number, first) < 0 or first > last:
        return None
    return Passage(number, unit, first, last, of_search)


def kind(value: object) -> str:
    """The kind of a JSON value, in the terms of messages: `a string`, `an object`, ..."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case Mapping():
            return "an object"
        case list():
            return "an array"
    return type(value).__name__


def sent_by_url(url: object, media_type: str) -> SentFile | None:
    """A file by its URL or id, or from a data URL (RFC 2397); None for what is no text, or "".

    Args:
        media_type: of what is no data URL: `image/*`.
    """
    text = string(url)
    if not text:
        return None
    head, comma, data = text.partition(",")
    if not head.startswith("data:") or not comma:
        return SentFile(media_type, reference=text)
    return SentFile(head[5:].partition(";")[0] or media_type, data)


def sent_as_base64(data: object, media_type: str) -> SentFile | None:
    """A file from its base64; None for what is no text, or ""."""
    return SentFile(media_type, string(data)) if string(data) else None


def sent_files(files: Iterable[SentFile | None]) -> tuple[SentFile, ...]:
    """The files without those that are missing."""
    return tuple([file for file in files if file is not None])


def function_tool(tool: OfferedTool) -> Json:
    """A tool in the form of most APIs."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool_schema(tool),
    }


def tool_schema(tool: OfferedTool) -> Fields:
    """The JSON Schema of a tool's arguments; that of an empty object if it has none."""
    return tool.parameters or {"type": "object", "properties": {}}


def offered_tools(
    functions: Iterable[Fields], schema: str = "parameters"
) -> tuple[OfferedTool, ...]:
    """The tools in these objects, the inverse of `function_tool`, without those that have no name.

    Args:
        schema: the name of the field that has the schema.
    """
    return tuple(
        OfferedTool(name, string(function.get("description")), mapping(function.get(schema)))
        for function in functions
        if isinstance(name := function.get("name"), str)
    )


_DEEPEST = 12  # no protocol nests text deeper; raw frames of a scenario may


def mapped_text(
    is_text: Callable[[str, Fields], bool], opaque: frozenset[str] = frozenset()
) -> Callable[[Any, Callable[[str], str]], Any]:
    """A function for `StreamEvents.map_text`: it changes the model's text in a JSON value.

    Args:
        is_text: whether the string in a field is text of the model, from the name of the field and
            the object around it.
        opaque: the names of fields whose values have no text of the model.
    """

    def map_texts(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
        if depth == _DEEPEST:
            return value
        if isinstance(value, list):
            return [map_texts(item, change, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        changed = {}
        for name, item in value.items():
            if isinstance(item, str) and is_text(name, value):
                changed[name] = change(item)
            else:
                changed[name] = item if name in opaque else map_texts(item, change, depth + 1)
        return changed

    return map_texts


class StopReasons:
    """The spelling of the reasons for the end of an answer in an API.

    Args:
        usual: the value for each reason; one value for several is read as the first.
        rare: further values, each with the reason that is nearest.
        sequence: the one of `rare` for an answer that ends before a stop sequence.
    """

    def __init__(
        self, usual: Mapping[FinishReason, str], rare: Mapping[str, FinishReason], *, sequence: str
    ) -> None:
        self.usual = usual
        self._sequence = sequence
        self._rare = rare
        self._reasons = {value: reason for reason, value in reversed(list(usual.items()))}

    def write(self, finish: Finish) -> str:
        """The value for a finish: the raw one where this API has it, also where the reason is not
        the nearest to it."""
        raw = finish.raw
        if raw is None and finish.stop_sequence is not None:
            raw = self._sequence
        if raw is not None and (raw in self._rare or raw in self._reasons):
            return raw
        return self.usual[finish.reason]

    def read(self, value: str) -> Finish:
        """The finish of a value; `raw` keeps one that is not the usual one."""
        reason = self._reasons.get(value)
        return Finish(reason) if reason else Finish(self._rare.get(value, "stop"), value)


def merge(target: Json, fields: Fields, growing: Collection[str] = ()) -> None:
    """Puts fields into an object. Objects inside of it are merged. Texts and lists whose names are
    in `growing` are appended to those that are there, and null adds nothing to them. All else is
    replaced."""
    for key, value in fields.items():
        match target.get(key), value:
            case dict() as known, dict():
                merge(known, value, growing)
            case str() as known, str() if key in growing:
                target[key] = known + value
            case list() as known, list() if key in growing:
                target[key] = known + value
            case ((str() | list()), None) if key in growing:
                pass
            case _:
                target[key] = deepcopy(value)
