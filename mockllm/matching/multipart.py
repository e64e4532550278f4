"""Reads form bodies (`multipart/form-data`, RFC 7578, and `x-www-form-urlencoded`) as JSON values.

Pure. The boundary and the order of the headers of a part do not show in the value.
"""

from __future__ import annotations

import hashlib
from email.message import Message
from email.utils import collapse_rfc2231_value
from typing import Any
from urllib.parse import parse_qsl

_MULTIPART = "multipart/form-data"
_FORM = "application/x-www-form-urlencoded"


def form_fields(content_type: str, body: bytes) -> dict[str, Any] | None:
    """The fields of a form by their names; None for a body that is no form, or a broken one, and
    for JSON that is sent as a form.

    A field is its text; a file is `{filename, content_type, size, sha256}`, with `filename` "" if
    the part is binary and has no name. A name that comes several times has the list of its values.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _FORM and body.lstrip()[:1] not in (b"{", b"["):  # `curl -d` sends JSON as a form
        pairs: list[tuple[str, Any]] = [
            (name, value)
            for name, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        ]
        return _collected(pairs)
    if kind != _MULTIPART:
        return None
    boundary = _parameter(content_type, "boundary")
    parts = _parts(body, boundary.encode("utf-8", "replace")) if boundary else None
    return None if parts is None else _collected([_field(head, data) for head, data in parts])


def _collected(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


def _parts(body: bytes, boundary: bytes) -> list[tuple[bytes, bytes]] | None:
    """Head and data of each part; None where the closing boundary is missing."""
    between = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if len(between) < 2 or not between[-1].startswith(b"--"):
        return None
    parts = []
    for part in between[1:-1]:
        head, gap, data = part.lstrip(b" \t").partition(b"\r\n\r\n")
        if not gap:
            return None
        parts.append((head.removeprefix(b"\r\n"), data))
    return parts


def _field(head: bytes, data: bytes) -> tuple[str, Any]:
    headers = {}
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    disposition = headers.get("content-disposition", "")
    name = _parameter(disposition, "name") or ""
    filename = _parameter(disposition, "filename")
    text = None if filename is not None else _as_text(data)
    if text is not None:
        return name, text
    return name, {
        "filename": filename or "",
        "content_type": headers.get("content-type", ""),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _parameter(header: str, name: str) -> str | None:
    """A parameter of a header's value; None where it has none."""
    message = Message()
    message["content-disposition"] = header
    value = message.get_param(name, None, "content-disposition")
    return None if value is None else collapse_rfc2231_value(value)
