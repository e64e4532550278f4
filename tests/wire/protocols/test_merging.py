"""Objects added up."""

from __future__ import annotations

from typing import Any

from mockllm.wire.protocols.values import merge


def test_objects_are_merged_and_all_else_is_replaced() -> None:
    """As it stands, also null; the extra itself never changes."""
    target: dict[str, Any] = {"a": {"b": 1, "c": [1]}, "d": 1}
    fields = {"a": {"c": [2], "e": None}, "d": {"f": 1}}
    merge(target, fields)
    assert target == {"a": {"b": 1, "c": [2], "e": None}, "d": {"f": 1}}
    target["d"]["f"] = 2
    assert fields == {"a": {"c": [2], "e": None}, "d": {"f": 1}}


def test_texts_and_lists_grow_by_their_names() -> None:
    """In objects inside, too; null adds nothing, and what is not there begins."""
    target: dict[str, Any] = {"id": "a", "text": "a", "inner": {"text": "b", "list": [1]}}
    growing = ("text", "list")
    merge(target, {"id": "c", "text": "c", "inner": {"text": "d", "list": [2]}}, growing)
    merge(target, {"text": None, "inner": {"list": None}, "list": [3]}, growing)
    assert target == {
        "id": "c",
        "text": "ac",
        "inner": {"text": "bd", "list": [1, 2]},
        "list": [3],
    }
