"""Digests of requests: equal for two requests that ask for the same, however they are written.

A recorded turn keeps the digest of its request (`recorded: {request: ...}`), so that the very same
request finds it again. What a client generates anew for each run does not count: the order of JSON
fields, the boundary of a multipart body, UUIDs. Strings that had secrets do not count either, since
the recording does not have them any more. Headers never count. Form bodies (`multipart/form-data`,
RFC 7578, and `x-www-form-urlencoded`) are read as JSON values. Pure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl

from mockllm.core.forms import FormPart, form_parts
from mockllm.core.request import Request
from mockllm.play.matching.hidden import hidden_parameters, hidden_pointers, is_file, pointer_keys
from mockllm.scenario.ignoring import normal_body, normal_text, normal_value
from mockllm.scenario.model import Ignored
from mockllm.wire.protocols.values import utf8_text

_SIZE = 8
"""Bytes of a digest."""

MAX_STRINGS = 32
"""How many strings of a request may be left out. A request with more secrets has no digest."""

_UUID = re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def request_digest(request: Request, redacted: Iterable[str] = (), ignore: Ignored = ()) -> str:
    """The digest of a request for an answer of a model, 16 hexadecimal digits.

    Args:
        redacted: JSON pointers (RFC 6901) to strings of the body that do not count.
        ignore: what else does not count.
    """
    body = normal_body(ignore, request, without(request.body, redacted))
    return _digest(request.api, request.model, request.stream, *sorted(request.traits), body)


def route_digest(
    method: str,
    path: str,
    query: str,
    content_type: str,
    body: bytes,
    redacted: Iterable[str] = (),
    ignore: Ignored = (),
) -> str:
    """The digest of a request for a route that calls no model, 16 hexadecimal digits.

    Args:
        path: without what stands before the route (`/openai` of `/openai/v1/embeddings`), with the
            placeholders of hidden segments.
        query: as in the URL; the order of its parameters does not count.
        redacted: the places of values that do not count (`mockllm.play.matching.hidden`).
    """
    redacted = tuple(redacted)
    hidden = hidden_parameters(redacted)
    pairs = sorted(
        (name, "" if name in hidden else normal_text(ignore, value))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    content = normal_value(ignore, without(_body(content_type, body), hidden_pointers(redacted)))
    return _digest(method.upper(), path, pairs, content)


def _body(content_type: str, body: bytes) -> Any:
    """The value of a JSON or form body; a digest of any other."""
    fields = form_fields(content_type, body)
    if fields is not None:
        return fields
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return blake2b(body, digest_size=_SIZE).hexdigest()


def _digest(*values: Any) -> str:
    text = "\n".join(map(_text, values)).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_SIZE).hexdigest()


def is_generated(text: str) -> bool:
    """Whether a text has a UUID, which clients generate anew."""
    return _UUID.search(text) is not None


def _text(value: Any) -> str:
    text = _canonical(value)
    if text.count("-") < 4:
        return text
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0].lower(), f"uuid {len(numbers)}")

    return _UUID.sub(number, text)


# Strings that do not count


def redacted_strings(value: Any, had_secret: Callable[[str], bool]) -> tuple[str, ...]:
    """JSON pointers to the strings of a JSON value that had secrets.

    Args:
        had_secret: whether a text is one from which a secret was removed.
    """
    if isinstance(value, str):
        return ("",) if had_secret(value) else ()
    pointers: list[str] = []
    for key, item in _items(value):
        inner = redacted_strings(item, had_secret)
        if inner:  # most strings had none, and need no pointer
            step = str(key).replace("~", "~0").replace("/", "~1")
            pointers += [f"/{step}{pointer}" for pointer in inner]
    return tuple(pointers)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list):
        return enumerate(value)
    return value.items() if isinstance(value, dict) else ()


def without(value: Any, pointers: Iterable[str]) -> Any:
    """A JSON value with None in place of the strings and files that JSON pointers lead to. A
    pointer that leads to neither changes nothing."""
    for pointer in pointers:
        value = _blank_text(value, pointer_keys(pointer), 0)
    return value


def _blank_text(value: Any, keys: list[str], depth: int) -> Any:
    if depth == len(keys):
        return None if isinstance(value, str) or is_file(value) else value
    key = keys[depth]
    if isinstance(value, Mapping) and key in value:
        return {**value, key: _blank_text(value[key], keys, depth + 1)}
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        items = list(value)
        items[int(key)] = _blank_text(items[int(key)], keys, depth + 1)
        return items
    return value


_FORM = "application/x-www-form-urlencoded"


def file_value(part: FormPart) -> Any:
    """A file of a form as a JSON value that does not have its content."""
    return {
        "filename": part.filename or "",
        "content_type": part.content_type,
        "size": len(part.data),
        "sha256": hashlib.sha256(part.data).hexdigest(),
    }


def form_fields(
    content_type: str, body: bytes, of_file: Callable[[FormPart], Any] = file_value
) -> dict[str, Any] | None:
    """The fields of a form by their names; None for a body that is no form, or a broken one, and
    for JSON that is sent as a form.

    A field is its text; a file is `{filename, content_type, size, sha256}`, with `filename` "" if
    the part is binary and has no name. A name that comes several times has the list of its values.

    Args:
        of_file: gives another value for a file.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _FORM and body.lstrip()[:1] not in (b"{", b"["):  # `curl -d` sends JSON as a form
        pairs: list[tuple[str, Any]] = [
            (name, value)
            for name, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        ]
        return _fields_by_name(pairs)
    parts = form_parts(content_type, body)
    if parts is None:
        return None
    return _fields_by_name((part.name, _field(part, of_file)) for part in parts)


def _fields_by_name(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _field(part: FormPart, of_file: Callable[[FormPart], Any]) -> Any:
    text = None if part.filename is not None else utf8_text(part.data)
    return of_file(part) if text is None else text
