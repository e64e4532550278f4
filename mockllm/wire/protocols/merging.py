"""Objects added up, as clients add up the events of a stream."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy

from mockllm.wire.protocols.records import Fields, Json


def merge(target: Json, fields: Fields, growing: Collection[str] = ()) -> None:
    """Puts fields into an object. Objects inside of it are merged. Texts and lists whose names are
    in `growing` are appended to those that are there, and null adds nothing to them. All else is
    replaced."""
    for key, value in fields.items():
        match target.get(key), value:
            case dict() as known, dict():
                merge(known, value, growing)
            case str() as known, str() if key in growing:
                target[key] = known + value
            case list() as known, list() if key in growing:
                target[key] = known + value
            case ((str() | list()), None) if key in growing:
                pass
            case _:
                target[key] = deepcopy(value)
