"""The reader of `extra`: fields of one API's frames without a neutral form.

`mockllm.protocols.extra` describes what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from mockllm.scenario import model as m
from mockllm.scenario.reading.nodes import Mapping, Node, Sequence
from mockllm.scenario.reading.tables import table
from mockllm.scenario.reading.values import (
    Findings,
    Reader,
    json_value,
    listing,
    matching_text,
    record,
    text,
    unknown,
)
from mockllm.scenario.reading.wording import excerpt

__all__ = ["extra"]

T = TypeVar("T")

_EXPECTED = "a JSON pointer to a field, such as /choices/0/message/reasoning"
_POINTER = r"(?:/(?:[^~/]|~[01])*)+"
_is_pointer = re.compile(_POINTER).fullmatch
_pointer = matching_text(_POINTER, _EXPECTED)
_source = matching_text(rf"\^?{_POINTER}", f"{_EXPECTED}, or ^ and a pointer into the event before")
_pointers = listing(_pointer, "JSON pointers")
_kinds = listing(text, "kinds of events")


def _by_key(
    read: Callable[[Node, Findings], T],
    of: str,
    known: Callable[[Mapping, str, Findings], bool] = lambda node, key, findings: True,
) -> Callable[[Node, Findings], dict[str, T] | None]:
    """A reader of mappings with any keys that are `known`; `of` names keys and values."""

    def read_all(node: Node, findings: Findings) -> dict[str, T] | None:
        if not isinstance(node, Mapping):
            findings.must_be(node, f"a mapping of {of}")
            return None
        if not node.entries:
            findings.add(node, f"must be a mapping of {of}, got an empty one")
        return {
            key: read(item, findings)
            for key, item in node.entries.items()
            if known(node, key, findings)
        }

    return read_all


def _at_pointer(node: Mapping, key: str, findings: Findings) -> bool:
    if not _is_pointer(key):
        findings.add(node, f"the key must be {_EXPECTED}, got {excerpt(key)!r}", node.keys[key])
    return True


def _of_api(node: Mapping, key: str, findings: Findings) -> bool:
    apis: Iterable[str] = findings.vocabulary.apis
    if key not in apis:
        unknown(node, key, findings, apis)
    return key in apis


def _listed(
    node: Node, findings: Findings, read: Callable[[Node, Findings], Any] = _pointers
) -> list[Any] | None:
    found: tuple[Any, ...] | None = read(node, findings)
    return None if found is None else list(found)


def _values(node: Node, findings: Findings) -> list[Any] | None:
    if not isinstance(node, Sequence) or not node.items:
        findings.must_be(node, "a list of values, one for each event of the kind")
        return None
    return [json_value(item, findings) for item in node.items]


PATCH: dict[str, Reader] = {
    "set": _by_key(json_value, "JSON pointers to values", _at_pointer),
    "copy": _by_key(_source, "JSON pointers to JSON pointers", _at_pointer),
    "remove": _listed,
    "each": _by_key(_values, "JSON pointers to lists of values", _at_pointer),
}
_patch: Callable[[Node, Findings], dict[str, Any] | None] = record(dict, table("patch", **PATCH))


def _body(node: Node, findings: Findings) -> dict[str, Any] | None:
    if isinstance(node, Mapping) and not node.entries:
        findings.add(node, "must have one of " + ", ".join(PATCH))
        return None
    return _patch(node, findings)


def _event(node: Node, findings: Findings) -> dict[str, Any] | str | None:
    if isinstance(node, Mapping):
        return _patch(node, findings)
    found: str | None = text(node, findings)
    return found


_events = listing(_event, "changes, and texts of events")

FIELDS: dict[str, Reader] = {
    "join": lambda node, findings: _listed(node, findings, _kinds),
    "drop": lambda node, findings: _listed(node, findings, _kinds),
    "move": _by_key(text, "events to the events before them"),
    "add": _by_key(lambda node, findings: _listed(node, findings, _events), "events to new ones"),
    "stream": _by_key(_patch, "kinds of events to patches"),
    "body": _body,
}
_fields: Callable[[Node, Findings], dict[str, Any] | None] = record(dict, table("extra", **FIELDS))


def _answer(node: Node, findings: Findings) -> dict[str, Any] | None:
    if isinstance(node, Mapping) and not node.entries:
        findings.add(node, "must have one of " + ", ".join(FIELDS))
        return None
    return _fields(node, findings)


_by_api = _by_key(_answer, "APIs to their fields", _of_api)


def extra(node: Node, findings: Findings) -> tuple[tuple[m.Api, Any], ...] | None:
    """By protocol, the fields of its events (`stream`) and of its body (`body`)."""
    found = _by_api(node, findings)
    return None if found is None else tuple(found.items())
