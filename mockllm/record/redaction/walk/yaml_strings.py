"""The scalars of YAML, and YAML in which some of them have another value.

Comments and layout stay. A scalar whose value is written verbatim is changed within its text; any
other is written again in quotation marks. `!!binary`, as cassettes have it, is read and written.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from mockllm.record.redaction.find.bodies import Body, Edit, binary_body, edit_text
from mockllm.record.redaction.walk.documents import Channel, Document
from mockllm.record.redaction.walk.json_strings import Field, JsonPath, StringValue

_FRAGMENTS = "split"
_TOOL = "tool"
_ARGUMENTS = "arguments"
_APART = "\n" * 9
"""Between two scalars, so that no secret begins in one and ends in the next."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """The scalars of a YAML text.

    Args:
        text: their values, decoded and apart; the document's positions are in it.
        document: the same values, with the fragments of each `split` as a channel.
        nodes: where each value of the document is written.
    """

    text: str
    document: Document
    nodes: tuple[yaml.ScalarNode, ...]


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A node, the name of the field that it is the value of, and the path to it; fragments have
    the path of what they are joined to."""

    node: yaml.Node
    name: str
    path: JsonPath


def placed_nodes(text: str) -> list[PlacedNode] | None:
    """The nodes of a YAML text of any number of documents, in its order; one that an alias repeats
    is there once. None where the text is no YAML."""
    nodes: dict[int, PlacedNode] = {}
    try:
        for root in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if root is not None:
                _add(PlacedNode(root, "", ()), nodes)
    except (yaml.YAMLError, RecursionError):
        return None
    return list(nodes.values())


def _add(placed: PlacedNode, nodes: dict[int, PlacedNode]) -> None:
    if id(placed.node) in nodes:
        return
    nodes[id(placed.node)] = placed
    name, path = placed.name, placed.path
    match placed.node:
        case yaml.SequenceNode(value=items):
            for index, item in enumerate(items):
                _add(PlacedNode(item, name, path if name == _FRAGMENTS else (*path, index)), nodes)
        case yaml.MappingNode(value=fields):
            names = [key.value if isinstance(key, yaml.ScalarNode) else "" for key, _ in fields]
            whole = _ARGUMENTS if _TOOL in names else _FRAGMENTS
            for (key, value), name in zip(fields, names, strict=True):
                _add(PlacedNode(key, "", ()), nodes)
                step = whole if name == _FRAGMENTS else name
                _add(PlacedNode(value, name, (*path, step)), nodes)


def scalars(text: str) -> Scalars | None:
    """The scalars of a YAML text of any number of documents; None where it is no YAML."""
    placed = placed_nodes(text)
    if placed is None:
        return None
    values: dict[int, StringValue] = {}
    nodes: list[yaml.ScalarNode] = []
    start = 0
    for place in placed:
        if isinstance(place.node, yaml.ScalarNode):
            nodes.append(place.node)
            body = _binary(place.node)
            value = place.node.value if body is None else body.text
            end = start + len(value)
            field = Field(place.path, place.name)
            values[id(place.node)] = StringValue(start, end, value, field)
            start = end + len(_APART)
    channels = tuple(
        Channel(tuple(values[id(item)] for item in place.node.value), True, True)
        for place in placed
        if place.name == _FRAGMENTS and isinstance(place.node, yaml.SequenceNode)
        if all(isinstance(item, yaml.ScalarNode) for item in place.node.value)
    )
    joined = _APART.join(value.text for value in values.values())
    return Scalars(joined, Document(tuple(values.values()), channels), tuple(nodes))


def _binary(node: yaml.ScalarNode) -> Body | None:
    """The body that a node has as base64; None where it has none, or one that is no text."""
    if node.tag != "tag:yaml.org,2002:binary":
        return None
    try:
        return binary_body(base64.b64decode(node.value))
    except ValueError:
        return None


def between(text: str) -> Document:
    """The text between the scalars of a YAML text: its comments."""
    read = scalars(text)
    values, last = [], 0
    spans = sorted(
        (node.start_mark.index, node.end_mark.index) for node in (read.nodes if read else ())
    )
    for start, end in [*spans, (len(text), len(text))]:
        if last < start:
            values.append(StringValue(last, start, text[last:start], Field(kind="plain")))
        last = max(last, end)
    return Document(tuple(values))


def edit_yaml(text: str, found: Scalars, changes: Sequence[Edit]) -> str:
    """A YAML text with changes made in the values of its scalars."""
    written: list[Edit] = []
    for value, node in zip(found.document.values, found.nodes, strict=True):
        own = [
            Edit(change.start - value.start, change.end - value.start, change.text)
            for change in changes
            if value.start <= change.start and change.end <= value.end and value.start < value.end
        ]
        if own:
            start, end = node.start_mark.index, node.end_mark.index
            written.append(Edit(start, end, _scalar(text[start:end], node, own)))
    return edit_text(text, sorted(written))


def _scalar(written: str, node: yaml.ScalarNode, changes: Sequence[Edit]) -> str:
    body = _binary(node)
    if body is not None:
        return _binary_scalar(written, body.edit(changes)[0])
    value = edit_text(node.value, changes)
    for candidate in _candidates(written, node.value, changes):
        if _has_value(candidate, value):
            return candidate
    rest = written[len(written.rstrip()) :]
    quoted = json.dumps(value, ensure_ascii=False)
    return (quoted if _has_value(quoted, value) else json.dumps(value)) + rest


def _binary_scalar(before: str, data: bytes) -> str:
    """A `!!binary` with other bytes, in lines if it was."""
    head, line_break, rest = before.partition("\n")
    if "|" not in head or not line_break:
        return f"!!binary {base64.b64encode(data).decode()}{before[len(before.rstrip()) :]}"
    indent = rest[: len(rest) - len(rest.lstrip(" "))]
    lines = base64.encodebytes(data).decode().splitlines(keepends=True)
    return head + line_break + "".join(indent + line for line in lines)


def _candidates(written: str, value: str, changes: Sequence[Edit]) -> Iterator[str]:
    at = written.find(value)
    if at >= 0:
        yield edit_text(
            written, [Edit(at + change.start, at + change.end, change.text) for change in changes]
        )
    for change in changes:
        written = written.replace(value[change.start : change.end], change.text)
    yield written


def _has_value(written: str, value: str) -> bool:
    try:
        node = yaml.compose(f"k: {written}", Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return False
    match node:
        case yaml.MappingNode(value=[(_, yaml.ScalarNode(value=found))]):
            return bool(found == value)
    return False
