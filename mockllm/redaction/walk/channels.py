"""Which strings of an event stream a client joins: those with the same path are a channel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mockllm.redaction.walk.json_strings import StringValue, api_fields

_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Channel:
    """Strings that a client joins.

    Args:
        exact: whether the client joins these and no others; otherwise they are a guess, which is
            right where a service names its items in the first event only.
        whole: whether its strings are fragments, which mean nothing alone.
    """

    values: tuple[StringValue, ...]
    exact: bool
    whole: bool

    def __iter__(self) -> Iterator[StringValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


def channels_of(values: Iterable[StringValue], *, whole: bool, top: int = 0) -> tuple[Channel, ...]:
    """The channels of the values of a document, the exact ones first.

    Args:
        whole: whether fragments mean nothing alone, as in events.
        top: how many first steps of the paths only count the documents.
    """
    fragments, constants = api_fields().fragments, api_fields().labels | api_fields().opaque
    exact: dict[_Key, list[StringValue]] = {}
    loose: dict[_Key, dict[_Key, list[StringValue]]] = {}
    for value in values:
        field = value.field
        if field.name in constants or field.kind not in ("string", "payload"):
            continue
        if top and len(field.path) == top:
            continue  # a document that is a string, as in a list of ids
        key = (field.kind, field.path[top:], value.ids)
        if key not in exact:
            exact[key] = []
            if field.name in fragments:
                names = tuple(step for step in field.path[top:] if isinstance(step, str))
                loose.setdefault((names, value.ids[0]), {})[key] = exact[key]
        exact[key].append(value)
    channels = [
        Channel(tuple(group), True, whole and group[0].field.name in fragments)
        for group in exact.values()
    ]
    for groups in loose.values():
        if len(groups) > 1:
            joined = [value for group in groups.values() for value in group]
            joined.sort(key=lambda value: value.start)
            channels.append(Channel(tuple(joined), False, False))
    return tuple(channels)
