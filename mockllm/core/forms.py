"""Bodies of forms with several parts (`multipart/form-data`, RFC 7578)."""

from __future__ import annotations

from email.message import Message
from email.utils import collapse_rfc2231_value

from mockllm.core.record import record

MULTIPART = "multipart/form-data"


@record
class FormPart:
    """A part of a form.

    Args:
        filename: None for a field that is no file.
    """

    name: str
    filename: str | None
    content_type: str
    data: bytes


def is_multipart(content_type: str) -> bool:
    """Whether a body is declared as a form that may have files."""
    return content_type.partition(";")[0].strip().lower() == MULTIPART


def form_parts(content_type: str, body: bytes) -> list[FormPart] | None:
    """The parts of a body; None for one of another content type, or without an end."""
    if not is_multipart(content_type):
        return None
    boundary = _parameter(content_type, "boundary")
    if not boundary:
        return None
    between = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("utf-8", "replace"))
    if len(between) < 2 or not between[-1].startswith(b"--"):
        return None
    parts = []
    for part in between[1:-1]:
        head, gap, data = part.lstrip(b" \t").partition(b"\r\n\r\n")
        if not gap:
            return None
        parts.append(_part(head.removeprefix(b"\r\n"), data))
    return parts


def _part(head: bytes, data: bytes) -> FormPart:
    headers = {}
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    disposition = headers.get("content-disposition", "")
    name, filename = _parameter(disposition, "name") or "", _parameter(disposition, "filename")
    return FormPart(name, filename, headers.get("content-type", ""), data)


def _parameter(header: str, name: str) -> str | None:
    """A parameter of a header's value; None where it has none."""
    message = Message()
    message["content-disposition"] = header
    value = message.get_param(name, None, "content-disposition")
    return None if value is None else collapse_rfc2231_value(value)
