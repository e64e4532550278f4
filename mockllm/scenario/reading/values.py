"""Readers: functions that read one kind of value from a node, or report why they cannot.

A reader takes a node and `Findings`. Where it cannot read the node, it adds a finding and returns
None; its caller goes on, so that one run finds all mistakes. Readers of mappings are made from
tables of keys and readers (`tables`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mockllm.core.text import did_you_mean, shorten, similar_names
from mockllm.scenario.durations import read_duration, read_percent
from mockllm.scenario.reading.advice import advise, advise_value
from mockllm.scenario.reading.nodes import Mapping, Node, Scalar, Sequence, YamlMark
from mockllm.scenario.yamltext import plain_scalar

if TYPE_CHECKING:
    from mockllm.scenario.model import Scenario, ToolSpec
    from mockllm.scenario.part_model import AnyPart
    from mockllm.scenario.reading.nodes import KeyPath


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of protocols and quirks, passed to `load` so that it imports neither. They are
    looked up only where a scenario names one: quirks that none uses are not imported.

    Args:
        apis: the names of the protocols, in the order in which messages list them.
        places: the places of an API at which a service may add fields.
        quirk_problem: why there is no quirk with this name; None where there is one.
        fault_mistakes: the faults of a scenario that cannot strike: where each is, and why.
        native_mistakes: what is wrong with a part in the form of an API: where in it, and why.
    """

    apis: Callable[[], tuple[str, ...]] = tuple
    places: Callable[[str], tuple[str, ...]] = lambda _: ()
    quirk_problem: Callable[[str], str | None] = lambda _: None
    fault_mistakes: Callable[[Scenario], Iterable[tuple[KeyPath, str]]] = lambda _: ()
    native_mistakes: Callable[[str, Any], Iterable[tuple[KeyPath, str]]] = lambda _api, _value: ()


T = TypeVar("T")
Reader = Callable[[Node, "Findings"], Any]

MAX_FINDINGS = 1_000
"""How many findings of one document are kept: no one reads more of them."""


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of one kind of mapping: their readers, and which of them are required."""

    readers: dict[str, Reader]
    required: tuple[str, ...] = ()
    fields: dict[str, str] = field(default_factory=dict)
    """The fields of the model that are not named as their keys."""

    def arguments(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of a mapping by the fields of the model."""
        return {self.fields.get(key, key): value for key, value in values.items()}


@dataclass(frozen=True, slots=True)
class NamedReply:
    """A reply that turns `use` by its name.

    Args:
        parts: one that stands for a broken part, where the reply has a mistake of its own.
        size: how many YAML values it has.
        node: where it is written, in `file`.
    """

    parts: tuple[AnyPart, ...]
    size: int
    node: Node
    file: str


@dataclass(slots=True)
class Findings:
    """The mistakes in one document: node, mark, message. Their paths are found at the end."""

    vocabulary: Vocabulary
    found: list[tuple[Node, YamlMark, str]] = field(default_factory=list)
    read_file: Callable[[str], bytes] | None = None
    """Reads a file beside the YAML; raises OSError with what is wrong. None: there are no files."""
    file: str | None = None
    """The path of the YAML. None: it is in no file, and tapes beside it are not looked for."""
    sent: bool = False
    """Whether the document was sent, so that it may name no file."""
    replies: dict[str, NamedReply] | None = None
    """The named replies; None while they are read themselves, as none uses another."""
    included_tools: tuple[ToolSpec, ...] = ()
    """Those of the included files."""
    used: dict[int, NamedReply] = field(default_factory=dict)
    """The named replies that are used, by the `id` of the node that uses them."""
    used_size: int = 0
    """How many YAML values all uses stand for."""

    def read_text(self, name: str) -> str:
        """The text of a file beside the YAML.

        Raises:
            OSError: what is wrong with it; the message follows its name.
        """
        assert self.read_file is not None
        content = self.read_file(name)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise OSError(f"must be UTF-8, got byte 0x{content[error.start]:02x}") from None

    @property
    def full(self) -> bool:
        """Whether `MAX_FINDINGS` is reached; further findings are dropped."""
        return len(self.found) >= MAX_FINDINGS

    def add(self, node: Node, message: str, mark: YamlMark = None) -> None:
        """Adds a mistake of a node."""
        if not self.full:
            self.found.append((node, mark or node.mark, message))

    def must_be(self, node: Node, expected: str, hint: str = "") -> None:
        """Adds the mistake that a node is not what was expected, with what it is."""
        self.add(node, f"must be {expected}, got {display_node(node)}{hint}")


def scalar(node: Scalar) -> str | int | float | bool | None:
    """The value of a scalar; one in quotes is text."""
    return plain_scalar(node.value) if node.plain else node.value


def is_null(node: Node) -> bool:
    """Whether a node is null or empty."""
    return isinstance(node, Scalar) and scalar(node) is None


def text(node: Node, findings: Findings) -> str | None:
    """Any string."""
    hint = ""
    if isinstance(node, Scalar):
        if isinstance(scalar(node), str):
            return node.value
        hint = "; put it in quotes to make it one" if node.value else ""
    findings.must_be(node, "a string", hint)
    return None


def line(node: Node, findings: Findings) -> str | None:
    """A string on one line, not empty; a line break at its end is removed."""
    value = text(node, findings)
    if value is None:
        return None
    value = value.rstrip("\r\n")
    if value and "\n" not in value and "\r" not in value:
        return value
    findings.must_be(node, "a string in one line")
    return None


def matching_text(pattern: str, expected: str) -> Reader:
    """A reader of strings that match a regular expression as a whole."""

    def read(node: Node, findings: Findings) -> str | None:
        value = text(node, findings)
        # `re` compiles it when it is first used, and keeps it: most documents need few patterns.
        if value is None or re.fullmatch(pattern, value):
            return value
        findings.must_be(node, expected)
        return None

    return read


def boolean(node: Node, findings: Findings) -> bool | None:
    """`true` or `false`."""
    value = scalar(node) if isinstance(node, Scalar) else None
    if isinstance(value, bool):
        return value
    findings.must_be(node, "true or false")
    return None


def integer(low: int, high: int | None = None) -> Reader:
    """A reader of whole numbers from `low` to `high`, inclusive."""
    expected = f"a whole number from {low}" + ("" if high is None else f" to {high}")

    def read(node: Node, findings: Findings) -> int | None:
        value = scalar(node) if isinstance(node, Scalar) else None
        if type(value) is int and value >= low and (high is None or value <= high):
            return value
        quoted = isinstance(node, Scalar) and not node.plain and node.value.isdecimal()
        hint = "; take the quotes away" if quoted else ""
        findings.must_be(node, expected if high else expected + " up", hint)
        return None

    return read


def api_name(node: Node, findings: Findings) -> Any:
    """Reads the name of a protocol."""
    return choice(*findings.vocabulary.apis())(node, findings)


def choice(*names: str) -> Reader:
    """A reader of one of `names`."""
    known = frozenset(names)
    expected = "one of " + ", ".join(names) if len(names) > 1 else names[0]

    def read(node: Node, findings: Findings) -> str | None:
        if isinstance(node, Scalar):
            if node.value in known:
                return node.value
            hint = advise_value(node.value, names)
            findings.must_be(node, expected, f"; {hint}" if hint else "")
        else:
            findings.must_be(node, expected)
        return None

    return read


def duration(node: Node, findings: Findings) -> int | None:
    """A pause, in microseconds."""
    bare = isinstance(node, Scalar) and isinstance(scalar(node), (int, float))
    hint = "; say the unit" if bare else ""
    return _read_scalar(node, findings, read_duration, "a duration such as 300ms or 2s", hint)


def percent(node: Node, findings: Findings) -> float | None:
    """A share of one, from a percentage."""
    return _read_scalar(node, findings, read_percent, "a percentage such as 20%")


def _read_scalar(
    node: Node, findings: Findings, read: Callable[[str], T], kind: str, hint: str = ""
) -> T | None:
    if not isinstance(node, Scalar):
        findings.must_be(node, kind)
        return None
    try:
        return read(node.value)
    except ValueError as error:
        findings.must_be(node, str(error), hint)
        return None


def listing(read: Reader, of: str) -> Reader:
    """A reader of lists that are not empty, as tuples; `read` reads each item."""

    def read_all(node: Node, findings: Findings) -> tuple[Any, ...] | None:
        if not isinstance(node, Sequence):
            findings.must_be(node, f"a list of {of}")
            return None
        if not node.items:
            findings.add(node, f"must be a list of {of}, got an empty one")
            return None
        return tuple([value for item in node.items if (value := read(item, findings)) is not None])

    return read_all


def json_value(node: Node, findings: Findings) -> Any:
    """The JSON value of a node; None also where it cannot be read."""
    if isinstance(node, Mapping):
        return {key: json_value(inner, findings) for key, inner in node.entries.items()}
    if isinstance(node, Sequence):
        return [json_value(item, findings) for item in node.items]
    value = scalar(node)
    if isinstance(value, float) and value - value != 0:
        findings.must_be(node, "a number that JSON can represent")
        return None
    return value


def json_mapping(node: Node, findings: Findings) -> dict[str, Any] | None:
    """A JSON object."""
    if isinstance(node, Mapping):
        value: dict[str, Any] = json_value(node, findings)
        return value
    findings.must_be(node, "a mapping")
    return None


def filled_entries(node: Node, expected: str, findings: Findings) -> dict[str, Node] | None:
    """The entries of a mapping that is not empty."""
    if not isinstance(node, Mapping):
        findings.must_be(node, expected)
        return None
    if not node.entries:
        findings.add(node, f"must be {expected}, got an empty one")
    return node.entries or None


def readable_fields(node: Node, findings: Findings, table: Table) -> dict[str, Any] | None:
    """The values of a mapping by key, without those that cannot be read.

    Unknown keys, and required keys that are absent, are added to the findings. None: the node is
    no mapping.
    """
    if not isinstance(node, Mapping):
        findings.must_be(node, "a mapping with " + keys(table.readers))
        return None
    values: dict[str, Any] = {}
    misspelt = []
    for key, inner in node.entries.items():
        read = table.readers.get(key)
        if read is None:
            misspelt.append(unknown(node, key, findings, table.readers))
            continue
        value = read(inner, findings)
        if value is not None:
            values[key] = value
    for key in table.required:
        if key not in node.entries and key not in misspelt:
            findings.add(node, f"needs the key {key!r}")
    return values


def fields(node: Node, findings: Findings, table: Table) -> dict[str, Any] | None:
    """As `readable_fields`, but None also where a required key is absent or cannot be read."""
    values = readable_fields(node, findings, table)
    if values is None or any(key not in values for key in table.required):
        return None
    return values


def keys(table: Iterable[str]) -> str:
    """The keys of a table, as messages list them."""
    return "the keys " + ", ".join(table)


def unknown(node: Mapping, key: str, findings: Findings, table: Iterable[str]) -> str | None:
    """Adds the finding of an unknown key; returns the most similar key of the table."""
    if findings.full:
        return None
    table = tuple(table)
    hint = advise(key, table)
    if not hint and is_null(node.entries[key]):
        hint = "a text with a comma in { } needs quotes"  # {text: Hello, world!}
    hint = hint or f"known here: {', '.join(table)}"
    findings.add(node, f"unknown key {excerpt(key)!r}; {hint}", node.keys[key])
    return next(iter(similar_names(key.lower(), table)), None)


def record(make: Callable[..., T], table: Table) -> Callable[[Node, Findings], T | None]:
    """A reader of mappings, whose values are passed to `make` by key."""

    def read(node: Node, findings: Findings) -> T | None:
        values = fields(node, findings, table)
        return None if values is None else make(**table.arguments(values))

    return read


_QUOTED = 60
"""How many characters of a value a message quotes."""


def display_node(node: Node) -> str:
    """A node as messages quote it: as written, shortened, in one line."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.plain:
        return excerpt(node.value) or "nothing"
    return _quote(shorten(node.value, _QUOTED))


def excerpt(text: str, limit: int = _QUOTED) -> str:
    """A text as messages quote it: shortened, and as a JSON string where it is not printable."""
    text = shorten(text, limit)
    return text if text.isprintable() else _quote(text)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'split'?`, or "" where no known name is similar."""
    hint = did_you_mean(name.lower(), known)
    return f"; {hint}" if hint else ""
