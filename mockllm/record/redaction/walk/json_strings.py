"""The string values of a JSON text, each with its position and its path.

The events of a stream differ in a few strings and numbers only. So a text is split at its strings,
which is fast, and its form is parsed once: the JSON with empty values, and 0 for each number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from itertools import accumulate, chain, compress
from typing import Any

from mockllm.record.redaction.find.spans import unescape_json
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.records import FieldNames

JsonPath = tuple[str | int, ...]


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

    path: JsonPath = ()
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
        written: the text with escapes; None where it has none.
    """

    start: int
    end: int
    text: str
    field: Field
    ids: tuple[str, ...] = ("",)
    written: str | None = None
    _starts: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of its text is in the document."""
        if self.written is None:
            return self.start + start, self.start + end
        if self._starts is None:
            view = unescape_json(self.written)
            self._starts = range(len(self.written) + 1) if view is None else view.starts
        return self.start + self._starts[start], self.start + self._starts[end]


@dataclass(frozen=True, slots=True)
class _Template:
    """The common part of texts of the same form.

    Args:
        fields: of all names, strings and numbers, in their order.
        strings: of the values that are strings, each with its index among all strings.
        type: which string is the type of the event.
        has_number_ids: whether numbers identify items.
    """

    fields: tuple[Field, ...]
    strings: tuple[tuple[int, Field], ...]
    type: int | None
    has_number_ids: bool


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
_STRINGS = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)', re.DOTALL)
"""Strings, and the one that a text breaks off in: without that, each quotation mark in it would be
tried as the beginning of a string, which takes quadratic time."""
_NUMBER = re.compile(r"-?\d[\d.eE+-]*")
_WHOLE_NUMBER = re.compile(
    r"(?<![\d.eE+-])-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\d.eE+-])"
)
"""A number of JSON, whole: what only looks like one stays, or no JSON would have a form of JSON."""
_TOKEN = re.compile(f"{_STRING.pattern}|{_NUMBER.pattern}", re.DOTALL)
_NUMBERS = re.compile(r"\[\s*-?\d[\d.eE+\-,\s]*\]")
"""A list of numbers, such as an embedding. It takes long to read, and has no secrets."""
_MANY = 1000


def api_fields() -> FieldNames:
    """The meaning of the fields of all APIs, by their names."""
    return _joined_fields(tuple(PROTOCOLS))


@lru_cache(1)
def _joined_fields(names: tuple[str, ...]) -> FieldNames:
    fields = [PROTOCOLS[name].fields for name in names]
    return FieldNames(
        *(
            frozenset[str]().union(*(getattr(field, kind.name) for field in fields))
            for kind in dataclass_fields(FieldNames)
        )
    )


def decode_json(text: str) -> Any:
    """A JSON text as it is read here: objects as lists of pairs, numbers as they are written.

    Raises:
        ValueError: it is no JSON.
    """
    return _DECODER.decode(text)


class Reader:
    """Reads JSON texts; those that differ in strings and numbers only are parsed once.

    Args:
        every: gives names and numbers too, not only the strings that are values.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._apis = tuple(PROTOCOLS)
        self.names: set[str] = set()
        self._rest = ""
        self._between = [""]
        self._is_name: list[bool] = []
        self._last_names: list[str] | None = None
        self._last_template: _Template | None = None

    def read(self, source: str, base: int = 0) -> list[StringValue] | None:
        """The values of a JSON text that begins at `base` of a document; None if it is no JSON."""
        parts = _STRINGS.split(source)
        ends = list(accumulate(map(len, parts)))
        if len(source) != ends[-1] + len(parts) - 1 or source.endswith("\\"):
            return None  # the last string has no end
        rest, strings = "\0".join(parts[::2]), parts[1::2]
        if not self._every and len(rest) > _MANY:
            rest = _NUMBERS.sub("[]", rest)
        template = self._template(rest, strings)
        if template is None:
            return None
        numbers = _NUMBER.findall(rest) if template.has_number_ids else []
        try:
            if self._every:
                return list(self._all(source, base, template, strings, numbers))
            return self._strings(base, template, ends, strings, numbers)
        except ValueError:  # an escape that JSON does not have
            return None

    def _strings(
        self,
        base: int,
        template: _Template,
        ends: list[int],
        strings: list[str],
        numbers: list[str],
    ) -> list[StringValue]:
        type_ = strings[template.type] if template.type is not None else ""
        own: tuple[str, ...] = (type_,)
        found = []
        for index, field in template.strings:
            text = strings[index]
            start = base + ends[2 * index] + 2 * index + 1
            ids = own
            if field.ids:
                ids = (type_, *[strings[at] if at >= 0 else numbers[~at] for at in field.ids])
            if "\\" in text:
                found.append(_value(start, text, field, ids))
            else:
                found.append(StringValue(start, start + len(text), text, field, ids))
        return found

    def _all(
        self,
        source: str,
        base: int,
        template: _Template,
        strings: list[str],
        numbers: list[str],
    ) -> Iterator[StringValue]:
        type_ = strings[template.type] if template.type is not None else ""
        for field, token in zip(template.fields, _TOKEN.finditer(source), strict=True):
            start, end = token.span(1 if token[1] is not None else 0)
            ids = (type_, *[strings[at] if at >= 0 else numbers[~at] for at in field.ids])
            yield _value(base + start, source[start:end], field, ids)

    def _template(self, rest: str, strings: list[str]) -> _Template | None:
        """The common part of a text and others of its form; None if it is no JSON.

        Args:
            rest: the text with U+0000 for each string.
        """
        if rest != self._rest:  # most events of a stream have that of the event before
            self._rest, self._last_names = rest, None
            self._between = _WHOLE_NUMBER.sub("0", rest).split("\0")
            self._is_name = [text.lstrip(_SPACE)[:1] == ":" for text in self._between[1:]]
        if len(self._is_name) != len(strings):
            return None  # the text has U+0000 of its own
        names = list(compress(strings, self._is_name))
        if names != self._last_names:
            self._last_names, self._last_template = names, self._of_form(strings)
            if self._last_template is not None:
                self.names.update(names)
        return self._last_template

    def _of_form(self, strings: list[str]) -> _Template | None:
        pairs = zip(strings, self._is_name, strict=True)
        names = [text if is_name else "" for text, is_name in pairs]
        quoted = chain.from_iterable(zip(self._between, names, strict=False))
        form = '"'.join([*quoted, self._between[-1]])
        return _shared(self._apis, form) if len(form) <= _LONGEST_SHARED else _parse_template(form)


_LONGEST_SHARED = 8192
"""The events of all streams of a service have a few forms; they hold no value of a string."""


@lru_cache(maxsize=2_000)
def _shared(_apis: tuple[str, ...], form: str) -> _Template | None:
    """The template of a form. The fields of the APIs say what identifies an item."""
    return _parse_template(form)


def _parse_template(form: str) -> _Template | None:
    walk = _Walk()
    try:
        walk.value(_DECODER.decode(form), (), "", ())
    except (ValueError, RecursionError):
        return None
    fields = walk.fields()
    strings = [field for field in fields if field.kind != "number"]
    values = tuple((index, field) for index, field in enumerate(strings) if field.kind == "string")
    has_number_ids = any(at < 0 for field in fields for at in field.ids)
    return _Template(fields, values, walk.type, has_number_ids)


def _value(start: int, written: str, field: Field, ids: tuple[str, ...]) -> StringValue:
    """A value from its text with escapes.

    Raises:
        ValueError: it has an escape that JSON does not have.
    """
    end = start + len(written)
    if field.kind == "number" or "\\" not in written:
        return StringValue(start, end, written, field, ids)
    text = json.loads(f'"{written}"', strict=False)
    return StringValue(start, end, text, field, ids, written)


_SPACE = " \t\r\n"


class _Walk:
    """Goes through JSON in the order of its text."""

    def __init__(self) -> None:
        self.type: int | None = None
        self._found: list[tuple[JsonPath, str, str, tuple[int, ...]]] = []
        self._ids: dict[int, list[int]] = {}
        self._item_ids = api_fields().item_ids
        self._objects = self._strings = self._numbers = 0

    def value(self, value: Any, path: JsonPath, name: str, inside: tuple[int, ...]) -> None:
        """Goes through a value, of the field `name`; `inside` are the objects around it."""
        if isinstance(value, _Pairs):
            self._objects += 1
            own = self._objects  # objects inside it have later numbers
            within = (*inside, own)
            for key, inner in value:
                self._add(path, name, "name", inside)
                if isinstance(inner, str):
                    self._note(key, inner, path, own)
                self.value(inner, (*path, key), key, within)
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self.value(inner, (*path, index), name, inside)
        elif isinstance(value, str):
            self._add(path, name, "number" if isinstance(value, _Number) else "string", inside)

    def _note(self, name: str, value: str, path: JsonPath, object_: int) -> None:
        number = isinstance(value, _Number)
        if name in self._item_ids:
            at = ~self._numbers if number else self._strings
            self._ids.setdefault(object_, []).append(at)
        elif name == "type" and not path and not number and self.type is None:
            self.type = self._strings

    def _add(self, path: JsonPath, name: str, kind: str, inside: tuple[int, ...]) -> None:
        self._found.append((path, name, kind, inside))
        if kind == "number":
            self._numbers += 1
        else:
            self._strings += 1

    def fields(self) -> tuple[Field, ...]:
        """The fields that were gone through, in their order."""
        return tuple(
            Field(path, name, kind, self._item(inside) if self._ids else ())
            for path, name, kind, inside in self._found
        )

    def _item(self, inside: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(at for object_ in inside for at in self._ids.get(object_, ()))
