"""The strings of a JSON text, each with its place and the path that leads to it.

The events of a stream are alike but for a few strings. So a text is cut at its strings, which is
fast, and only what is left is looked at as JSON, once for all texts that have the same left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from mockllm.redaction.encodings import unescaped

__all__ = ["Entry", "Leaf", "Reader", "completed"]

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a leaf whatever it says.

    Args:
        path: names and positions that lead to it; for a name, to its object.
        name: of the field it is in; "" where it is in none.
        kind: `string`, `number`, `name`; `plain` is text between JSON texts, `payload` an event
            that is no JSON.
        ids: which strings (numbers, from -1 down) tell one item of a stream from another; the
            type of the event comes first.
    """

    path: Path = ()
    name: str = ""
    kind: str = "string"
    ids: tuple[int, ...] = ()


@dataclass(slots=True)
class Leaf:
    """A leaf of a document.

    Args:
        start, end: its place in the document, without quotation marks.
        text: what it says.
        ids: what tells its item from others.
        starts: where each character of `text` is, counted from `start`, if some are escaped.
    """

    start: int
    end: int
    text: str
    entry: Entry
    ids: tuple[str, ...] = ("",)
    starts: Sequence[int] | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a piece of what it says is in the document."""
        if self.starts is None:
            return self.start + start, self.start + end
        return self.start + self.starts[start], self.start + self.starts[end]


@dataclass(frozen=True, slots=True)
class _Template:
    """What texts that are alike have in common: all entries in their order, those of values that
    are strings with their numbers, and the type of the event."""

    entries: tuple[Entry, ...]
    strings: tuple[tuple[int, Entry], ...]
    type: int | None


class _Pairs(list[tuple[str, Any]]):
    """An object; unlike a dict it has each of two equal names."""


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
    """Reads JSON texts that are alike.

    Args:
        every: names and numbers are leaves too, not only the strings that are values.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._layouts: dict[str, tuple[int, ...]] = {}
        self._templates: dict[tuple[str, ...], _Template] = {}
        self.names: set[str] = set()

    def read(self, source: str, base: int = 0) -> list[Leaf] | None:
        """The leaves of a JSON text that begins at `base` of a document; None if it is none."""
        parts = _STRING.split(source)
        rest = "\0".join(parts[::2])
        numbers = _NUMBER.findall(rest)
        rest = _NUMBER.sub("0", rest)
        template = self._template(source, rest, parts)
        if template is None:
            return None
        strings = parts[1::2]
        try:
            return list(self._leaves(source, base, template, parts, strings, numbers))
        except ValueError:  # an escape that JSON does not have
            return None

    def _leaves(
        self,
        source: str,
        base: int,
        template: _Template,
        parts: list[str],
        strings: list[str],
        numbers: list[str],
    ) -> Iterator[Leaf]:
        kind = strings[template.type] if template.type is not None else ""
        if self._every:
            tokens = _TOKEN.finditer(source)
            places = [(token.span(1 if token[1] is not None else 0)) for token in tokens]
            entries: Iterator[tuple[Entry, tuple[int, int]]]
            entries = zip(template.entries, places, strict=True)
        else:
            ends = list(accumulate(map(len, parts)))
            entries = (
                (entry, (ends[2 * index] + 2 * index + 1, ends[2 * index + 1] + 2 * index + 1))
                for index, entry in template.strings
            )
        for entry, (start, end) in entries:
            ids = (kind, *[strings[at] if at >= 0 else numbers[~at] for at in entry.ids])
            text, starts = source[start:end], None
            if entry.kind != "number" and "\\" in text:
                view = unescaped(text)
                text = json.loads(f'"{text}"', strict=False)
                starts = view.starts if view is not None else None
            yield Leaf(base + start, base + end, text, entry, ids, starts)

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
            template = self._made(source)
            if template is not None:
                self._layouts[rest] = layout
                self._templates[key] = template
        return template

    def _made(self, source: str) -> _Template | None:
        walk = _Walk()
        try:
            walk.value(_DECODER.decode(source), (), ())
        except (ValueError, RecursionError):
            return None
        self.names |= walk.names
        entries = walk.entries()
        strings = [entry for entry in entries if entry.kind != "number"]
        values = tuple(
            (index, entry) for index, entry in enumerate(strings) if entry.kind == "string"
        )
        return _Template(entries, values, walk.type)


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

    def entries(self) -> tuple[Entry, ...]:
        """What was found."""
        return tuple(
            Entry(
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
    """A JSON text that breaks off, with what closes it; None if that does not make it one."""
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
