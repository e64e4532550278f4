"""The reader of `extra`: by API and place, the fields that a service adds to its API.

`mockllm.protocols.extra` describes what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockllm.scenario import model as m
from mockllm.scenario.reading.nodes import Mapping, Node
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.values import Findings, Reader, json_value, record, unknown


def _is_filled(node: Node, expected: str, findings: Findings) -> bool:
    """Whether a node is a mapping with entries, as expected."""
    if not isinstance(node, Mapping):
        findings.must_be(node, expected)
        return False
    if not node.entries:
        findings.add(node, f"must be {expected}, got an empty one")
    return bool(node.entries)


def _fields(node: Node, findings: Findings) -> dict[str, Any] | None:
    if not _is_filled(node, "a mapping of fields to their values", findings):
        return None
    value: dict[str, Any] = json_value(node, findings)
    return value


_PLACES: dict[str, Reader] = dict.fromkeys(("event", "choice", "message", "call", "usage"), _fields)
_by_place: Callable[[Node, Findings], dict[str, Any] | None] = record(
    dict, table("extra", **_PLACES)
)


def extra(node: Node, findings: Findings) -> tuple[tuple[m.Api, Any], ...] | None:
    """By protocol, the fields of each place."""
    if not _is_filled(node, "a mapping of APIs to their fields", findings):
        return None
    assert isinstance(node, Mapping)
    found: list[tuple[m.Api, Any]] = []
    for api, item in node.entries.items():
        if api not in findings.vocabulary.apis:
            unknown(node, api, findings, findings.vocabulary.apis)
        elif isinstance(item, Mapping) and not item.entries:
            findings.add(item, "must have one of " + ", ".join(_PLACES))
        else:
            found.append((api, _by_place(item, findings)))
    return tuple(found)
