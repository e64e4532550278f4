"""Readers: functions that make one kind of value out of a node, or say what is wrong with it.

A reader takes a node and `Findings`. What it cannot read it adds to the findings, and gives
None; whoever called it goes on, so that one run finds everything. Readers of whole records are
made from tables, key to reader, which the JSON Schema is checked against.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mockllm.scenario.durations import read_duration, read_percent
from mockllm.scenario.nodes import Mapping, Mark, Node, Scalar, Sequence
from mockllm.scenario.vocabulary import Vocabulary
from mockllm.scenario.wording import nearest, shorten, shown, suggestion

__all__ = [
    "MAX_FINDINGS",
    "Findings",
    "Reader",
    "Table",
    "api_name",
    "boolean",
    "choice",
    "duration",
    "fields",
    "integer",
    "is_null",
    "json_mapping",
    "json_value",
    "keys",
    "known",
    "line",
    "listing",
    "percent",
    "record",
    "regular",
    "scalar",
    "text",
    "unknown",
]

T = TypeVar("T")
Reader = Callable[[Node, "Findings"], Any]
Table = dict[str, Reader]

MAX_FINDINGS = 1_000
"""Findings kept of one document; who has more of them reads no further anyway."""

_NUMERIC = frozenset("-+.0123456789~tTfFnN")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?\d{1,4000}\Z", re.ASCII)
_BASED = re.compile(r"0(?:o[0-7]{1,4000}|x[0-9a-fA-F]{1,3000})\Z")
_FLOAT = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?\Z", re.ASCII)
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")


@dataclass(slots=True)
class Findings:
    """What is wrong with a document: node, place, message; paths are worked out at the end."""

    vocabulary: Vocabulary
    found: list[tuple[Node, Mark, str]] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether enough has been found; nothing more is taken."""
        return len(self.found) >= MAX_FINDINGS

    def add(self, node: Node, message: str, mark: Mark = None) -> None:
        if not self.full:
            self.found.append((node, mark or node.mark, message))

    def wrong(self, node: Node, expected: str, hint: str = "") -> None:
        self.add(node, f"must be {expected}, got {shown(node)}{hint}")


def scalar(node: Scalar) -> str | int | float | bool | None:
    """The value of a scalar: YAML 1.2's core schema, in which `yes`, `no` and dates are text.

    Numbers too long to be meant come out as infinite.
    """
    value = node.value
    if not node.plain or (value and value[0] not in _NUMERIC):
        return value
    if value in _WORDS:
        return _WORDS[value]
    if _INTEGER.match(value):
        return int(value)
    if _FLOAT.match(value):
        return float(value)
    if _NOT_FINITE.match(value):
        return float(value.replace(".", ""))
    return int(value, 0) if _BASED.match(value) else value


def is_null(node: Node) -> bool:
    """Whether the author wrote null, or nothing."""
    return isinstance(node, Scalar) and scalar(node) is None


def text(node: Node, findings: Findings) -> str | None:
    """Any string."""
    if isinstance(node, Scalar):
        value = node.value
        if not node.plain or (value and value[0] not in _NUMERIC):
            return value
        if isinstance(scalar(node), str):
            return value
        hint = "; put it in quotes to make it one" if value else ""
        findings.wrong(node, "a string", hint)
        return None
    findings.wrong(node, "a string")
    return None


def line(node: Node, findings: Findings) -> str | None:
    """A string in one line, not empty; a line break at its end is left out."""
    value = text(node, findings)
    if value is None:
        return None
    value = value.rstrip("\r\n")
    if value and "\n" not in value and "\r" not in value:
        return value
    findings.wrong(node, "a string in one line")
    return None


def regular(pattern: str, expected: str) -> Reader:
    """A reader of strings that match a regular expression as a whole."""
    matches = re.compile(pattern).fullmatch

    def read(node: Node, findings: Findings) -> str | None:
        value = text(node, findings)
        if value is None or matches(value):
            return value
        findings.wrong(node, expected)
        return None

    return read


def boolean(node: Node, findings: Findings) -> bool | None:
    """`true` or `false`."""
    value = scalar(node) if isinstance(node, Scalar) else None
    if isinstance(value, bool):
        return value
    findings.wrong(node, "true or false")
    return None


def integer(low: int, high: int | None = None) -> Reader:
    """A reader of whole numbers from `low` to `high`, both included."""
    expected = f"a whole number from {low}" + ("" if high is None else f" to {high}")

    def read(node: Node, findings: Findings) -> int | None:
        value = scalar(node) if isinstance(node, Scalar) else None
        if type(value) is int and value >= low and (high is None or value <= high):
            return value
        findings.wrong(node, expected if high else expected + " up")
        return None

    return read


def api_name(node: Node, findings: Findings) -> Any:
    """Reads the name of a protocol."""
    return choice(*findings.vocabulary.apis)(node, findings)


def choice(*names: str) -> Reader:
    """A reader of one of `names`."""
    known = frozenset(names)
    expected = "one of " + ", ".join(names) if len(names) > 1 else names[0]

    def read(node: Node, findings: Findings) -> str | None:
        if isinstance(node, Scalar):
            if node.value in known:
                return node.value
            findings.wrong(node, expected, suggestion(node.value, names))
        else:
            findings.wrong(node, expected)
        return None

    return read


def duration(node: Node, findings: Findings) -> int | None:
    """A pause, in microseconds."""
    bare = isinstance(node, Scalar) and isinstance(scalar(node), (int, float))
    hint = "; say the unit" if bare else ""
    return _measured(node, findings, read_duration, "a duration such as 300ms or 2s", hint)


def percent(node: Node, findings: Findings) -> float | None:
    """A share of one, from a percentage."""
    return _measured(node, findings, read_percent, "a percentage such as 20%")


def _measured(
    node: Node, findings: Findings, read: Callable[[str], T], kind: str, hint: str = ""
) -> T | None:
    if not isinstance(node, Scalar):
        findings.wrong(node, kind)
        return None
    try:
        return read(node.value)
    except ValueError as error:
        findings.wrong(node, str(error), hint)
        return None


def listing(read: Reader, of: str) -> Reader:
    """A reader of lists, not empty, of what `read` reads, as a tuple."""

    def read_all(node: Node, findings: Findings) -> tuple[Any, ...] | None:
        if not isinstance(node, Sequence):
            findings.wrong(node, f"a list of {of}")
            return None
        if not node.items:
            findings.add(node, f"must be a list of {of}, got an empty one")
            return None
        return tuple([value for item in node.items if (value := read(item, findings)) is not None])

    return read_all


def json_value(node: Node, findings: Findings) -> Any:
    """The JSON value that a node stands for; None also where it could not be read."""
    if isinstance(node, Mapping):
        return {key: json_value(inner, findings) for key, inner in node.entries.items()}
    if isinstance(node, Sequence):
        return [json_value(item, findings) for item in node.items]
    value = scalar(node)
    if isinstance(value, float) and value - value != 0:
        findings.wrong(node, "a number that JSON can say")
        return None
    return value


def json_mapping(node: Node, findings: Findings) -> dict[str, Any] | None:
    """A JSON object."""
    if isinstance(node, Mapping):
        value: dict[str, Any] = json_value(node, findings)
        return value
    findings.wrong(node, "a mapping")
    return None


def known(
    node: Node, findings: Findings, table: Table, required: tuple[str, ...] = ()
) -> dict[str, Any] | None:
    """What the table's readers made of a mapping, without what they could not read.

    Notes unknown keys, and required ones that are absent. None: the node is no mapping.
    """
    if not isinstance(node, Mapping):
        findings.wrong(node, "a mapping with " + keys(table))
        return None
    values: dict[str, Any] = {}
    meant = []
    for key, inner in node.entries.items():
        read = table.get(key)
        if read is None:
            meant.append(unknown(node, key, findings, table))
            continue
        value = read(inner, findings)
        if value is not None:
            values[key] = value
    for key in required:
        if key not in node.entries and key not in meant:
            findings.add(node, f"needs the key {key!r}")
    return values


def fields(
    node: Node, findings: Findings, table: Table, required: tuple[str, ...] = ()
) -> dict[str, Any] | None:
    """As `known`, but None also where a required key is absent or could not be read."""
    values = known(node, findings, table, required)
    if values is None or any(key not in values for key in required):
        return None
    return values


def keys(table: Iterable[str]) -> str:
    """The keys of a table, as messages list them."""
    return "the keys " + ", ".join(table)


def unknown(node: Mapping, key: str, findings: Findings, table: Iterable[str]) -> str | None:
    """Notes a key that is not in the table, and gives the nearest that is."""
    if findings.full:
        return None
    table = tuple(table)
    hint = suggestion(key, table) or f"; known here: {', '.join(table)}"
    findings.add(node, f"unknown key {shorten(key)!r}{hint}", node.keys[key])
    return nearest(key, table)


def record(
    make: Callable[..., T], table: Table, required: tuple[str, ...] = ()
) -> Callable[[Node, Findings], T | None]:
    """A reader of mappings whose keys are the parameters of `make`."""

    def read(node: Node, findings: Findings) -> T | None:
        values = fields(node, findings, table, required)
        return None if values is None else make(**values)

    return read
