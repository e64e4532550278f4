"""The scalars of YAML, and YAML in which some of them have another value.

Comments and layout stay. A scalar whose value is written verbatim is changed within its text; any
other is written again in quotation marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from mockllm.redaction.placeholders import Edit, edited
from mockllm.redaction.walk.documents import Channel, Document
from mockllm.redaction.walk.json_strings import Field, StringValue

_FRAGMENTS = "split"
_TOOL = "tool"
_ARGUMENTS = "arguments"
_APART = "\n" * 9
"""Between two scalars, so that no secret begins in one and ends in the next."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """The scalars of a YAML text.

    Args:
        text: their values, one after the other and apart; the document's positions are in it.
        document: the same values, with the fragments of each `split` as a channel.
        nodes: where each value of the document is written.
    """

    text: str
    document: Document
    nodes: tuple[yaml.ScalarNode, ...]


def scalars(text: str) -> Scalars | None:
    """The scalars of a YAML text of any number of documents; None where it is no YAML."""
    reading = _Reading()
    try:
        for root in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if root is not None:
                reading.node(root, "", ())
    except (yaml.YAMLError, RecursionError):
        return None
    document = Document(tuple(reading.values), tuple(reading.channels))
    text = _APART.join(node.value for node in reading.nodes)
    return Scalars(text, document, tuple(reading.nodes))


def between(text: str) -> Document:
    """What is between the scalars of a YAML text: its comments."""
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


class _Reading:
    """Goes through the nodes; one that an alias repeats is gone through once."""

    def __init__(self) -> None:
        self.values: list[StringValue] = []
        self.channels: list[Channel] = []
        self.nodes: list[yaml.ScalarNode] = []
        self._seen: set[int] = set()
        self._end = 0

    def node(self, node: yaml.Node, name: str, path: tuple[str | int, ...]) -> None:
        """Goes through a node, which is the value of a field.

        Args:
            path: to the node; fragments have that of what they are joined to.
        """
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        before = len(self.values)
        match node:
            case yaml.ScalarNode():
                self._add(node, Field(path, name))
            case yaml.SequenceNode():
                for index, one in enumerate(node.value):
                    self.node(one, name, path if name == _FRAGMENTS else (*path, index))
                if name == _FRAGMENTS and all(
                    isinstance(one, yaml.ScalarNode) for one in node.value
                ):
                    self.channels.append(Channel(tuple(self.values[before:]), True, True))
            case yaml.MappingNode():
                names = [
                    key.value if isinstance(key, yaml.ScalarNode) else "" for key, _ in node.value
                ]
                whole = _ARGUMENTS if _TOOL in names else _FRAGMENTS
                for (key, value), name in zip(node.value, names, strict=True):
                    self.node(key, "", ())
                    self.node(value, name, (*path, whole if name == _FRAGMENTS else name))

    def _add(self, node: yaml.ScalarNode, field: Field) -> None:
        end = self._end + len(node.value)
        self.values.append(StringValue(self._end, end, node.value, field))
        self.nodes.append(node)
        self._end = end + len(_APART)


def changed(text: str, found: Scalars, changes: Sequence[Edit]) -> str:
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
    return edited(text, sorted(written))


def _scalar(written: str, node: yaml.ScalarNode, changes: Sequence[Edit]) -> str:
    value = edited(node.value, changes)
    for candidate in _candidates(written, node.value, changes):
        if _has_value(candidate, value):
            return candidate
    rest = written[len(written.rstrip()) :]
    quoted = json.dumps(value, ensure_ascii=False)
    return (quoted if _has_value(quoted, value) else json.dumps(value)) + rest


def _candidates(written: str, value: str, changes: Sequence[Edit]) -> Iterator[str]:
    at = written.find(value)
    if at >= 0:
        yield edited(written, [Edit(at + one.start, at + one.end, one.text) for one in changes])
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
