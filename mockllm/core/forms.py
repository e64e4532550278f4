"""Bodies of forms with several parts (`multipart/form-data`, RFC 7578).

The work is linear in the bytes, whatever they are: what a part may spend on headers is bounded, and
no pattern here goes back. No parser of mail reads them: `email` takes quadratic time for a header.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from mockllm.core.record import record

MULTIPART = "multipart/form-data"

MAX_HEAD = 8192
"""The most bytes of a part's headers; aiohttp has the same bound for a header of a request."""

MAX_PARTS = 2000
"""The most parts of a form; Starlette reads 1,000 fields and 1,000 files."""

MALFORMED = (
    "The body is not the form that its content type declares: each part begins with a line of the "
    f"boundary and at most {MAX_HEAD} bytes of headers with a blank line behind them, the line "
    f"after the last part ends with '--', and there are at most {MAX_PARTS} parts."
)
"""The message about a body that has no `form_parts`, though its content type is `MULTIPART`."""


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
    """The parts of a body; None for one of another content type, without an end, with more than
    `MAX_PARTS`, or with a part whose headers do not end or exceed `MAX_HEAD`."""
    if not is_multipart(content_type):
        return None
    boundary = _parameters(content_type).get("boundary")
    if not boundary:
        return None
    parts: list[FormPart] = []
    begin: int | None = None
    body = b"\r\n" + body
    delimiter = re.escape(b"\r\n--" + boundary.encode("utf-8", "replace"))
    for line in re.finditer(delimiter + _LINE, body):
        if begin is not None:
            part = body[begin : line.start()]
            head = part.find(b"\r\n\r\n", 0, MAX_HEAD)
            if head < 0 or len(parts) == MAX_PARTS:
                return None
            parts.append(_part(part[:head], part[head + 4 :]))
        if line[1]:
            return parts
        begin = line.end()
    return None


_LINE = rb"(?:(--)|[ \t]*+(?=\r\n))"
"""How a line of the boundary ends: the last one, and others, with the padding that RFC 2046 allows
(5.1.1). The line of a longer boundary is data."""


def _part(head: bytes, data: bytes) -> FormPart:
    headers = {}
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.strip().lower()] = value.strip()
    parameters = _parameters(headers.get("content-disposition", ""))
    filename = parameters.get("filename")
    # Browsers of the past sent the whole path, of which services keep the name.
    if filename is not None and _WINDOWS_PATH.match(filename):
        filename = filename.rpartition("\\")[2]
    return FormPart(parameters.get("name", ""), filename, headers.get("content-type", ""), data)


_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\|\\\\")
_PARAMETER = re.compile(
    r""";\s*+([^\s;="]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)(?:"|\\?\Z)|([^;]*+))""", re.DOTALL
)
"""A parameter (RFC 9110, section 5.6.6). A quoted value that has no end takes the rest."""

_ESCAPE = re.compile(r'\\(["\\])')
"""What a backslash escapes: Windows paths are sent with other characters behind one."""

_EXTENDED = re.compile(r"([A-Za-z0-9!#$%&+^_`{}~-]+)'[^']*'(.*)", re.DOTALL)
"""A value with its charset and language (RFC 8187, section 3.2)."""


def _parameters(header: str) -> dict[str, str]:
    """The parameters of a header's value, their names in lower case.

    RFC 7578 forbids `filename*` (4.2), but clients send it, and services read it. It precedes the
    `filename` for those that do not (RFC 6266, section 4.3).
    """
    plain: dict[str, str] = {}
    extended: dict[str, str] = {}
    for found in _PARAMETER.finditer(header):
        name, quoted, token = found[1].lower(), found[2], found[3]
        value = token.strip() if quoted is None else _ESCAPE.sub(r"\1", quoted)
        if not name.endswith("*"):
            plain[name] = value
        elif (parts := _EXTENDED.fullmatch(value)) is not None:
            extended[name[:-1]] = _decode(parts[2], parts[1])
    return plain | extended


def _decode(text: str, charset: str) -> str:
    try:
        return unquote(text, charset, "replace")
    except LookupError:  # no charset that Python knows
        return unquote(text)
