"""Arguments in fragments: a JSON object to `partialArgs` and back.

https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling

Each element of `partialArgs` names a leaf of the object by a JSON Path, with its value or the next
characters of its string. Only that may live here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mockllm.wire.protocols.gemini_common import NO_JSON, compact, json_value
from mockllm.wire.protocols.records import Fields, Json

_Step = str | int
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STEP = re.compile(
    r"""\.([^.\[\]'"\s]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]""", re.DOTALL
)


def cut(arguments: Fields, count: int) -> list[list[Json]]:
    """The arguments as at most `count` lists of `partialArgs`, about equal in size. Strings are
    cut, other values are not, so there may be fewer lists. None at all for arguments that
    `partialArgs` cannot express: no arguments, or an empty object or array inside."""
    leaves = list(_leaves("$", arguments))
    if any(isinstance(leaf, (dict, list)) for _, leaf in leaves):
        return []
    total = sum(_size(leaf) for _, leaf in leaves)
    count = min(count, total)
    edges = [total * number // count for number in range(1, count + 1)]
    groups: list[list[Json]] = [[]]
    at = 0
    for path, leaf in leaves:
        start, size = 0, _size(leaf)
        while start < size:
            end = min(size, start + edges[len(groups) - 1] - at)
            groups[-1].append(_partial_arg(path, leaf, start, end))
            at += end - start
            start = end
            if at == edges[len(groups) - 1] and at < total:
                groups.append([])
    return groups


def _size(leaf: object) -> int:
    return max(1, len(leaf)) if isinstance(leaf, str) else 1


def _leaves(path: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            plain = _IDENTIFIER.match(key)
            yield from _leaves(f"{path}.{key}" if plain else f"{path}[{compact(key)}]", item)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{index}]", item)
    else:
        yield path, value


def _partial_arg(path: str, leaf: object, start: int, end: int) -> Json:
    match leaf:
        case None:
            return {"jsonPath": path, "nullValue": "NULL_VALUE"}
        case bool():
            return {"jsonPath": path, "boolValue": leaf}
        case str():
            goes_on = {"willContinue": True} if end < len(leaf) else {}
            return {"jsonPath": path, "stringValue": leaf[start:end], **goes_on}
    return {"jsonPath": path, "numberValue": leaf}


def parse_path(path: object) -> tuple[_Step, ...]:
    """The keys and indexes in a JSON Path; () if it is not the path of a single value."""
    if not isinstance(path, str) or not path.startswith("$"):
        return ()
    steps: list[_Step] = []
    at = 1
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            return ()
        name, index, quoted = match.groups()
        step: _Step | None = int(index) if index else name
        if quoted:
            step = _unquote(quoted)
        if step is None:
            return ()
        steps.append(step)
        at = match.end()
    return tuple(steps)


def _unquote(text: str) -> str | None:
    if text[0] == "'":
        inner = re.sub(r"\\.|\"", _change_quotes, text[1:-1], flags=re.DOTALL)
        text = f'"{inner}"'
    value = json_value(text)
    return None if value is NO_JSON else str(value)


def _change_quotes(match: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


class _Container:
    def __init__(self, array: bool) -> None:
        self.array = array
        self.keys: set[str] = set()
        self.count = 0

    def takes(self, step: _Step) -> bool:
        """Whether a value can come next under this key or index."""
        if isinstance(step, int):
            return self.array and step == self.count
        return not self.array and step not in self.keys

    def item(self, step: _Step) -> str:
        """The JSON text before the value: comma and key."""
        comma = "," if self.count else ""
        self.count += 1
        if isinstance(step, int):
            return comma
        self.keys.add(step)
        return f"{comma}{compact(step)}:"


class ArgumentsWriter:
    """Writes the JSON text of arguments while their `partialArgs` arrive, in document order."""

    def __init__(self) -> None:
        self._open: list[_Container] = []
        self._steps: list[_Step] = []
        self._string: tuple[_Step, ...] | None = None

    def add(self, partial_arg: Fields) -> str | None:
        """The text that an element adds; None, without any change, if it cannot come next."""
        path, token = parse_path(partial_arg.get("jsonPath")), _token(partial_arg)
        if not path or token is None:
            return None
        text = partial_arg.get("stringValue")
        if path == self._string and isinstance(text, str):
            return token
        before = self._enter(path)
        if before is None:
            return None
        if isinstance(text, str):
            self._string = path
            return f'{before}"{token}'
        return before + token

    def end(self) -> str:
        """The text that completes the arguments; "" where there are none."""
        text = self._close(0)
        self._open.clear()
        return text

    def brace_if_empty(self) -> str:
        """The text that makes arguments without any element those of an unfinished object."""
        return "" if self._open else "{"

    def _enter(self, path: tuple[_Step, ...]) -> str | None:
        """The text that closes and opens containers for a value at this path; None if it cannot
        come next."""
        shared = 0
        for ours, theirs in zip(self._steps, path[:-1], strict=False):
            if ours != theirs or type(ours) is not type(theirs):
                break
            shared += 1
        within = self._open[shared] if self._open else _Container(array=False)
        new = path[shared + 1 :]
        if not within.takes(path[shared]) or any(isinstance(i, int) and i for i in new):
            return None
        if not self._open:
            self._open.append(within)
            text = "{"
        else:
            text = self._close(shared + 1)
        text += within.item(path[shared])
        for step in new:
            inner = _Container(array=isinstance(step, int))
            self._open.append(inner)
            text += ("[" if inner.array else "{") + inner.item(step)
        self._steps = list(path[:-1])
        return text

    def _close(self, keep: int) -> str:
        """The text that ends the open string, and all containers but the outer `keep`."""
        text = "" if self._string is None else '"'
        self._string = None
        for container in reversed(self._open[keep:]):
            text += "]" if container.array else "}"
        del self._open[keep:]
        return text


def _token(partial_arg: Fields) -> str | None:
    """The value of an element as JSON text, a string without quotes; None if it has none."""
    match partial_arg:
        case {"stringValue": str(text)}:
            return compact(text)[1:-1]
        case {"boolValue": bool(value)}:
            return compact(value)
        case {"numberValue": bool()}:
            return None
        case {"numberValue": int() | float() as number}:
            return compact(number)
        case {"nullValue": _}:
            return "null"
    return None
