"""The smallest part of a request's body that tells it from other requests: `match.body`. Pure.

The history is left out: it grows with each turn, and a condition on it would not hold for the later
requests of the conversation. So are fields with large values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from mockllm.core.request import Request
from mockllm.matching.conditions import check_partial
from mockllm.protocols import PROTOCOLS
from mockllm.redaction.placeholders import wildcards
from mockllm.scenario.jsontext import compact

_MOST_FIELDS = 3
_MOST_TRIED = 24
_LONGEST = 160
"""The longest value of a field in a condition, in characters of JSON."""


def distinguishing_fields(request: Request, others: Sequence[Request]) -> dict[str, Any] | None:
    """The fewest fields of a request's body of which each other body lacks at least one; None
    where no such fields are there.

    Nested fields are nested here, too: `{"reasoning": {"effort": "low"}}`.
    """
    if not others:
        return None
    paths = [path for path in _fields(request, request.body, ()) if _differs(path, request, others)]
    for count in range(1, _MOST_FIELDS + 1):
        for some in combinations(paths[:_MOST_TRIED], count):
            body = _part(request.body, some)
            holds = check_partial("body", body, request.body) is None
            if holds and all(check_partial("body", body, one.body) is not None for one in others):
                return body
    return None


_Path = tuple[str | int, ...]


def _fields(request: Request, value: Any, path: _Path) -> Iterator[_Path]:
    """The paths of short values, those nearer to the top first."""
    deeper: list[tuple[Any, _Path]] = []
    for key, item in _items(value):
        here = (*path, key)
        if not path and (_is_history(str(key), item) or key in ("user", "metadata")):
            continue
        if isinstance(item, Mapping | list) and item:
            deeper.append((item, here))
        elif len(compact(item)) <= _LONGEST and not (isinstance(item, str) and wildcards(item)):
            yield here
    for item, here in deeper:
        yield from _fields(request, item, here)


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


_TOOLS = frozenset(
    field for protocol in PROTOCOLS.values() for field in protocol.client.tool_fields
)


def _is_history(name: str, value: Any) -> bool:
    """Whether a field holds messages: a list of objects that is no list of tools."""
    if name in _TOOLS or not isinstance(value, list):
        return False
    return any(isinstance(item, Mapping) for item in value)


_ABSENT = object()


def _differs(path: _Path, request: Request, others: Sequence[Request]) -> bool:
    mine = _at(request.body, path)
    return any(_at(other.body, path) != mine for other in others)


def _at(value: Any, path: _Path) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return _ABSENT
    return value


def _part(body: Mapping[str, Any], paths: Sequence[_Path]) -> dict[str, Any]:
    """The part of a body that has the values at some paths; lists keep their length."""
    part: dict[str, Any] = {}
    for path in paths:
        target: Any = part
        source: Any = body
        for key, following in zip(path, [*path[1:], None], strict=True):
            source = source[key]
            if following is None:
                target[key] = source
            elif isinstance(source, list):
                known = target[key] if key in _keys(target) and target[key] != {} else None
                # A condition on one item needs the others, too: lists are compared item by item.
                any_ = [{} if isinstance(item, Mapping) else item for item in source]
                target[key] = known if known is not None else any_
                target = target[key]
            else:
                target[key] = target[key] if key in _keys(target) else {}
                target = target[key]
    return part


def _keys(value: Any) -> Any:
    return value if isinstance(value, Mapping) else range(len(value))
