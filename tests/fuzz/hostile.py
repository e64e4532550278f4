"""Makes hostile requests from valid ones: at every path of the JSON body, in headers, in the
target, and in the bytes of the whole request. The same seed makes the same requests.
"""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.fuzz.valid import Valid
from tests.fuzz.values import (
    HEADER_VALUES,
    METHODS,
    ODD,
    PARAMETERS,
    QUERY_VALUES,
    SEGMENTS,
    TARGETS,
    VALUES,
    Raw,
)

_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Hostile:
    """A request as it is sent.

    Args:
        what: what was changed, for messages.
        whole: whether it is one complete HTTP request, so that an answer has to come.
    """

    data: bytes
    what: str
    whole: bool = True


# Writing requests


def _written(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes, version: str = "1.1"
) -> bytes:
    """A request as bytes; texts are Latin-1."""
    names = {name.lower() for name, _ in headers}
    own = [] if "host" in names else [("Host", "127.0.0.1")]
    if "content-length" not in names and "transfer-encoding" not in names and body:
        own.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/{version}"]
    lines += [f"{name}: {value}" for name, value in (*own, *headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def _body_bytes(body: Any, ascii: bool = False) -> bytes:
    """A body as JSON, with the `Raw` texts in it as they are."""
    if body is None:
        return b""
    raw: list[str] = []

    def other(value: object) -> str:
        assert isinstance(value, Raw)
        raw.append(value.text)
        return f"\x1araw{len(raw) - 1}\x1a"

    text = json.dumps(body, default=other, ensure_ascii=ascii)
    for index, part in enumerate(raw):
        text = text.replace(f'"\\u001araw{index}\\u001a"', part, 1)
    return text.encode("utf-8", "surrogatepass")


def _sent(valid: Valid, body: bytes | None = None, **changed: Any) -> bytes:
    return _written(
        changed.get("method", valid.method),
        changed.get("target", valid.target),
        changed.get("headers", list(valid.headers.items())),
        _body_bytes(valid.body) if body is None else body,
        changed.get("version", "1.1"),
    )


# Bodies


def _paths(value: Any, path: _Path = ()) -> Iterator[_Path]:
    """The paths of all values within a value, itself first."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, (*path, index))


def _get(value: Any, path: _Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _replaced(body: Any, path: _Path, new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(body)
    _get(changed, path[:-1])[path[-1]] = new
    return changed


def _with_key(body: Any, path: _Path, key: Any) -> Any:
    """The body with another name for the field at a path, or without it for None."""
    changed = copy.deepcopy(body)
    holder = _get(changed, path[:-1])
    value = holder.pop(path[-1])
    if key is not None and isinstance(holder, dict):
        holder[key] = value
    return changed


def _json_value(random: Random, valid: Valid, path: _Path) -> Hostile:
    """One value of the body is another one."""
    paths = list(_paths(valid.body))
    kind = random.random()
    if kind < 0.65 or not path:
        new = random.choice(VALUES)
        body, what = _replaced(valid.body, path, new), f"{getattr(new, 'text', new)!r:.60}"
    elif kind < 0.75:
        body, what = _with_key(valid.body, path, None), "left out"
    elif kind < 0.8:
        body, what = _with_key(valid.body, path, "\ud83c"), "renamed"
    elif kind < 0.9:
        other = random.choice(paths)
        body = _replaced(valid.body, path, copy.deepcopy(_get(valid.body, other)))
        what = f"the value of {'.'.join(map(str, other))}"
    elif kind < 0.95:
        body, what = _replaced(valid.body, path, [_get(valid.body, path)] * 3), "three times"
    else:
        body, what = _replaced(valid.body, path, {"x": _get(valid.body, path)}), "one level deeper"
    data = _body_bytes(body, ascii=random.random() < 0.2)
    return Hostile(_sent(valid, data), f"{valid.method} {valid.target} {path}: {what}")


def _two_values(random: Random, valid: Valid) -> Hostile:
    """Several values of the body are others."""
    body = valid.body
    for _ in range(random.randint(2, 5)):
        path = random.choice(list(_paths(body)))
        if path:
            body = _replaced(body, path, random.choice(VALUES[:34]))
    return Hostile(_sent(valid, _body_bytes(body)), f"{valid.target}: several values")


def _body_as_bytes(random: Random, valid: Valid) -> Hostile:
    """The body is cut, changed in a byte, or packed in another way than announced."""
    body = _body_bytes(valid.body) or b"{}"
    headers = list(valid.headers.items())
    kind = random.randrange(9)
    if kind == 0:
        body = body[: random.randrange(len(body))]
    elif kind == 1:
        at = random.randrange(len(body))
        body = body[:at] + bytes([random.randrange(256)]) + body[at + 1 :]
    elif kind == 2:
        body = random.choice([b"", b"null", b"\xff\xfe", b"\xef\xbb\xbf" + body, body * 2, b"[]"])
    elif kind == 3:
        body = json.dumps(valid.body).encode(random.choice(["utf-16", "utf-32", "utf-16-le"]))
    else:
        coding = random.choice(["gzip", "deflate", "br", "zstd", "x-gzip", "GZIP", "gzip, gzip"])
        headers.append(("Content-Encoding", coding))
        packed = random.choice([_gzip, zlib.compress])(body)
        body = random.choice([body, packed, packed[:-3], packed + b"x", b"\0" * 20, packed * 2])
    return Hostile(_sent(valid, body, headers=headers), f"{valid.target}: body of kind {kind}")


def _gzip(body: bytes) -> bytes:
    """Compressed without the time of day, so that a seed makes the same bytes."""
    return gzip.compress(body, mtime=0)


# Heads


def _header(random: Random, valid: Valid) -> Hostile:
    name = random.choice(list(HEADER_VALUES))
    value = random.choice((*HEADER_VALUES[name], *ODD))
    headers = list(valid.headers.items())
    kind = random.random()
    if kind < 0.7:
        headers = [pair for pair in headers if pair[0] != name]
    headers.insert(random.randrange(len(headers) + 1), (name, value))
    if kind > 0.95:
        headers += [(f"x-{number}", "y") for number in range(200)]
    framing = name in ("content-length", "transfer-encoding", "expect", "upgrade", "connection")
    what = f"{valid.method} {valid.target} with {name}: {value!r:.40}"
    return Hostile(_sent(valid, headers=headers), what, not framing)


def _target(random: Random, valid: Valid) -> Hostile:
    kind = random.random()
    path, mark, query = valid.target.partition("?")
    if kind < 0.25:
        target = random.choice(TARGETS)
    elif kind < 0.5:
        steps = path.split("/")
        steps[random.randrange(len(steps))] = random.choice(SEGMENTS)
        target = "/".join(steps) + mark + query
    elif kind < 0.75:
        name = random.choice(PARAMETERS)
        target = f"{valid.target}{'&' if mark else '?'}{name}={random.choice(QUERY_VALUES)}"
    elif query:
        pairs = query.split("&")
        at = random.randrange(len(pairs))
        pairs[at] = f"{pairs[at].partition('=')[0]}={random.choice(QUERY_VALUES)}"
        target = f"{path}?{'&'.join(pairs)}"
    else:
        target = random.choice(["/prefix", "/s/other", "http://x", "//", "/v1"]) + valid.target
    whole = " " not in target and bool(target)
    return Hostile(_sent(valid, target=target), f"{valid.method} {target!r:.80}", whole)


def _method(random: Random, valid: Valid) -> Hostile:
    method = random.choice(METHODS)
    version = random.choice(["1.1", "1.1", "1.0", "0.9", "2.0", "1.2", "x"])
    data = _sent(valid, method=method, version=version)
    return Hostile(data, f"{method} {valid.target} HTTP/{version}", False)


def _raw(random: Random, valid: Valid) -> Hostile:
    """Bytes of the whole request are changed, added or left out."""
    data = bytearray(_sent(valid))
    end = data.index(b"\r\n\r\n") + 4
    for _ in range(random.randint(1, 4)):
        at = random.randrange(max(1, min(end, len(data))))
        match random.randrange(4):
            case 0:
                data[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                data[at:at] = random.choice([b"\r\n", b"\0", b"\n", b" ", b":", b"\xff" * 3])
            case 2:
                del data[at : at + random.randint(1, 20)]
            case _:
                del data[random.randrange(len(data)) :]
        if not data:
            break
    return Hostile(bytes(data), f"{valid.target}: changed bytes", False)


def _as_it_is(_: Random, valid: Valid) -> Hostile:
    return Hostile(_sent(valid), f"{valid.method} {valid.target} as it is")


_KINDS: tuple[tuple[Callable[[Random, Valid], Hostile] | None, int], ...] = (
    (None, 50),  # `_json_value`
    (_two_values, 10),
    (_body_as_bytes, 10),
    (_header, 12),
    (_target, 6),
    (_method, 4),
    (_raw, 6),
    (_as_it_is, 2),
)


def hostile_requests(random: Random, valid: Sequence[Valid]) -> Iterator[Hostile]:
    """Hostile requests without an end. Each value of each body is changed once before any is
    changed again."""
    with_body = [one for one in valid if one.body is not None]
    every = [(one, path) for one in with_body for path in _paths(one.body)]
    deck: list[tuple[Valid, _Path]] = []
    kinds, weights = zip(*_KINDS, strict=True)
    while True:
        (make,) = random.choices(kinds, weights)
        if make is None:
            if not deck:
                deck = random.sample(every, len(every))
            yield _json_value(random, *deck.pop())
        else:
            yield make(random, random.choice(with_body if make is _two_values else valid))
