"""Keeps scenarios and their tapes together after secrets were taken out of them.

A turn has the digest of the request on its tape. Where the request changes, the digest is made
anew. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import yaml

from mockllm.errors import MockLLMError
from mockllm.redaction.placeholders import Edit, edited
from mockllm.redaction.request_keys import RequestKey, key_of_request, key_of_route
from mockllm.tapes.conversion import captured_of, detected, request_of
from mockllm.tapes.load import load_tape

YAML = (".yaml", ".yml")
"""Endings of scenario files."""

_Files = Mapping[str, bytes]
NAMES_OF_FILES = frozenset(("file", "data_file", "recorded"))
"""Keys of scenarios whose values name a file beside the scenario file."""


def files_named_in(text: str) -> Iterator[str]:
    """The names of files that a scenario file may need: tapes, bodies of answers, long texts."""
    for node in _mappings(text):
        for name, value in _entries(node).items():
            if name in NAMES_OF_FILES and isinstance(value, yaml.ScalarNode):
                yield value.value


def consistent(before: _Files, after: _Files) -> dict[str, bytes]:
    """The scenario files that have to change once more, by their names: those in which the request
    of a tape has another digest now.

    Args:
        before: all files with their secrets.
        after: the same files without; one that could not be searched is not there.
    """
    nodes = [
        node
        for name in after
        if PurePath(name).suffix in YAML
        for node in _recorded_nodes(name, before, after)
    ]
    changes: dict[str, list[Edit]] = {}
    for node, order in zip(nodes, _orders(nodes), strict=True):
        changes.setdefault(node.name, []).extend(node.edits(order))
    return {
        name: edited(_text(after[name]), sorted(edits)).encode("utf-8", "surrogateescape")
        for name, edits in changes.items()
        if edits
    }


@dataclass(frozen=True, slots=True)
class _RecordedNode:
    """A mapping `recorded: {file: ..., request: ...}` in a scenario file.

    Args:
        name: of the scenario file.
        request: by which the recording is found from now on.
        order: as it is written.
    """

    name: str
    node: yaml.MappingNode
    before: RequestKey
    request: RequestKey
    order: int

    def edits(self, order: int) -> Iterator[Edit]:
        """What changes in the text."""
        entries = _entries(self.node)
        more = ""
        for key, value, old in (
            ("redacted", list(self.request[1]), list(self.before[1])),
            ("order", order, self.order),
        ):
            written = json.dumps(value, ensure_ascii=False)
            node = entries.get(key)
            if node is not None and value != old:
                yield Edit(node.start_mark.index, _end(node), written)
            elif node is None and value:
                more += f"{self._separator()}{key}: {written}"
        if more or self.request != self.before:
            node = entries["request"]
            yield Edit(node.start_mark.index, _end(node), f"'{self.request[0]}'{more}")

    def _separator(self) -> str:
        if self.node.flow_style:
            return ", "
        column: int = self.node.value[0][0].start_mark.column
        return "\n" + " " * column


def _end(node: yaml.Node) -> int:
    """Where a node ends; the end of a list in lines is where the next token begins."""
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end(node.value[-1])
    return int(node.end_mark.index)


def _recorded_nodes(name: str, before: _Files, after: _Files) -> Iterator[_RecordedNode]:
    nodes = _mappings(_text(after[name]))
    for node in sorted(nodes, key=lambda node: node.start_mark.index):
        entries = _entries(node)
        values = {key: value.value for key, value in entries.items()}
        if not (values.get("request") and isinstance(values.get("file"), str)):
            continue
        if not isinstance(entries["request"], yaml.ScalarNode):
            continue
        redacted = entries.get("redacted")
        items = redacted.value if isinstance(redacted, yaml.SequenceNode) else []
        written = values["request"], tuple(str(item.value) for item in items)
        file = str(PurePath(name).parent / values["file"])
        request = _changed_request(file, before, after) or written
        order = str(values.get("order", "0"))
        yield _RecordedNode(name, node, written, request, int(order) if order.isdigit() else 0)


def _changed_request(file: str, before: _Files, after: _Files) -> RequestKey | None:
    if file not in before or file not in after:
        return None
    try:
        old, new = (load_tape(files[file], file) for files in (before, after))
        if new.request is None or old.request == new.request:
            return None
        exchange = captured_of(new)
        found = detected(exchange)
        if found.protocol is None:
            return key_of_route(exchange)
        return key_of_request(request_of(exchange, found))
    except MockLLMError:  # it is no tape, or no request
        return None


def _orders(nodes: Sequence[_RecordedNode]) -> list[int]:
    """The number of each recording among those of the same request: requests that differed only in
    their secrets are the same now."""
    changed = {node.request for node in nodes if node.request != node.before}
    orders = [node.order for node in nodes]
    numbers: Counter[RequestKey] = Counter()
    for index in sorted(range(len(nodes)), key=lambda index: nodes[index].order):
        request = nodes[index].request
        if request in changed:
            orders[index] = numbers[request]
            numbers[request] += 1
    return orders


# YAML


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _mappings(text: str) -> Iterator[yaml.MappingNode]:
    """The mappings of a YAML text, each once; none of a text that is no YAML."""
    try:
        stack: list[Any] = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            stack += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            stack += node.value


def _entries(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
