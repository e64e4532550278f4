"""The string values of a JSON text, each with its position and its path.

The events of a stream differ in a few strings only. So a text is split at its strings, which is
fast, and the rest is parsed as JSON once for all texts that have the same rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mockllm.redaction.encodings import unescaped

__all__ = ["Field", "Reader", "StringValue", "completed"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """Where in a document a value is, whatever its text.

    Args:
        path: names and indexes that lead to it; for a name, to its object.
        name: of the field; "" where the value is in none.
        kind: `string`, `number`, `name`; `plain` is text between JSON texts, `payload` an event
            that is no JSON.
        ids: which strings of the text (which numbers, from -1 down) identify the item of a stream
            that the value belongs to.
    """

    path: Path = ()
    name: str = ""
    kind: str = "string"
    ids: tuple[int, ...] = ()


@dataclass(slots=True)
class StringValue:
    """A string value of a document; on request also a name, or a number as it is written.

    Args:
        start, end: its span in the document, without quotation marks.
        text: without escapes.
        ids: the type of its event, then what identifies its item in the stream.
        starts: where each character of `text` is, counted from `start`, if some are escaped.
    """

    start: int
    end: int
    text: str
    field: Field
    ids: tuple[str, ...] = ("",)
    starts: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of its text is in the document."""
        if self.starts is None:
            return self.start + start, self.start + end
        return self.start + self.starts[start], self.start + self.starts[end]


@dataclass(frozen=True, slots=True)
class _Template:
    """What texts with the same rest have in common.

    Args:
        fields: of all names, strings and numbers, in their order.
        strings: of the values that are strings, each with its index among all strings.
        type: which string is the type of the event.
    """

    fields: tuple[Field, ...]
    strings: tuple[tuple[int, Field], ...]
    type: int | None


class _Pairs(list[tuple[str, Any]]):
    """An object; unlike a dict it keeps both of two equal names."""


class _Number(str):
    __slots__ = ()


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=lambda _name: None,
)
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_TOKEN = re.compile(f"{_STRING.pattern}|{_NUMBER.pattern}", re.DOTALL)
_IDS = frozenset(
    (
        "index",
        "output_index",
        "content_index",
        "summary_index",
        "item_id",
        "messageId",
        "toolCallId",
        "message_id",
        "tool_call_id",
    )
)


class Reader:
    """Reads JSON texts; those that differ in strings and numbers only are parsed once.

    Args:
        every: gives names and numbers too, not only the strings that are values.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._layouts: dict[str, tuple[int, ...]] = {}
        self._templates: dict[tuple[str, ...], _Template] = {}
        self.names: set[str] = set()

    def read(self, source: str, base: int = 0) -> list[StringValue] | None:
        """The values of a JSON text that begins at `base` of a document; None if it is no JSON."""
        parts = _STRING.split(source)
        rest = "\0".join(parts[::2])
        numbers = _NUMBER.findall(rest)
        rest = _NUMBER.sub("0", rest)
        template = self._template(source, rest, parts)
        if template is None:
            return None
        strings = parts[1::2]
        try:
            return list(self._values(source, base, template, parts, strings, numbers))
        except ValueError:  # an escape that JSON does not have
            return None

    def _values(
        self,
        source: str,
        base: int,
        template: _Template,
        parts: list[str],
        strings: list[str],
        numbers: list[str],
    ) -> Iterator[StringValue]:
        type_ = strings[template.type] if template.type is not None else ""
        if self._every:
            tokens = _TOKEN.finditer(source)
            spans = [(token.span(1 if token[1] is not None else 0)) for token in tokens]
            fields: Iterator[tuple[Field, tuple[int, int]]]
            fields = zip(template.fields, spans, strict=True)
        else:
            ends = list(accumulate(map(len, parts)))
            fields = (
                (field, (ends[2 * index] + 2 * index + 1, ends[2 * index + 1] + 2 * index + 1))
                for index, field in template.strings
            )
        for field, (start, end) in fields:
            ids = (type_, *[strings[at] if at >= 0 else numbers[~at] for at in field.ids])
            text, starts = source[start:end], None
            if field.kind != "number" and "\\" in text:
                view = unescaped(text)
                text = json.loads(f'"{text}"', strict=False)
                starts = view.starts if view is not None else None
            yield StringValue(base + start, base + end, text, field, ids, starts)

    def _template(self, source: str, rest: str, parts: list[str]) -> _Template | None:
        layout = self._layouts.get(rest)
        if layout is None:
            layout = tuple(
                index
                for index in range(len(parts) // 2)
                if parts[2 * index + 2].lstrip(_SPACE)[:1] == ":"
            )
        key = (rest, *[parts[2 * index + 1] for index in layout])
        template = self._templates.get(key)
        if template is None:
            template = self._parsed(source)
            if template is not None:
                self._layouts[rest] = layout
                self._templates[key] = template
        return template

    def _parsed(self, source: str) -> _Template | None:
        walk = _Walk()
        try:
            walk.value(_DECODER.decode(source), (), ())
        except (ValueError, RecursionError):
            return None
        self.names |= walk.names
        fields = walk.fields()
        strings = [field for field in fields if field.kind != "number"]
        values = tuple(
            (index, field) for index, field in enumerate(strings) if field.kind == "string"
        )
        return _Template(fields, values, walk.type)


_SPACE = " \t\r\n"


class _Walk:
    """Goes through JSON in the order of its text."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.type: int | None = None
        self._found: list[tuple[Path, str, tuple[int, ...]]] = []
        self._ids: dict[int, list[int]] = {}
        self._objects = self._strings = self._numbers = 0

    def value(self, value: Any, path: Path, inside: tuple[int, ...]) -> None:
        """Goes through a value; `inside` are the objects around it."""
        if isinstance(value, _Pairs):
            self._objects += 1
            for name, inner in value:
                self._add(path, "name", inside)
                self.names.add(name)
                if isinstance(inner, str):
                    self._note(name, inner, path)
                self.value(inner, (*path, name), (*inside, self._objects))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self.value(inner, (*path, index), inside)
        elif isinstance(value, str):
            self._add(path, "number" if isinstance(value, _Number) else "string", inside)

    def _note(self, name: str, value: str, path: Path) -> None:
        number = isinstance(value, _Number)
        if name in _IDS:
            at = ~self._numbers if number else self._strings
            self._ids.setdefault(self._objects, []).append(at)
        elif name == "type" and not path and not number and self.type is None:
            self.type = self._strings

    def _add(self, path: Path, kind: str, inside: tuple[int, ...]) -> None:
        self._found.append((path, kind, inside))
        if kind == "number":
            self._numbers += 1
        else:
            self._strings += 1

    def fields(self) -> tuple[Field, ...]:
        """The fields that were gone through, in their order."""
        return tuple(
            Field(
                path,
                next((step for step in reversed(path) if isinstance(step, str)), ""),
                kind,
                tuple(at for object_ in inside for at in self._ids.get(object_, ())),
            )
            for path, kind, inside in self._found
        )


_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")


def completed(text: str) -> str | None:
    """A JSON text that breaks off, with what closes it; None where that does not make it JSON."""
    open_: list[str] = []
    inside = False
    for token in _BRACKETS.finditer(text):
        if token[0][0] == '"':
            inside = token[1] == ""
        elif token[0] in "{[":
            open_.append("}" if token[0] == "{" else "]")
        elif open_:
            open_.pop()
    if inside:
        text = _HALF_ESCAPE.sub("", text) + '"'
    elif open_:
        text = text.rstrip(_SPACE).removesuffix(",")
    else:
        return None
    for missing in ("", "null", ":null"):
        candidate = text + missing + "".join(reversed(open_))
        try:
            _DECODER.decode(candidate)
        except (ValueError, RecursionError):
            continue
        return candidate
    return None
