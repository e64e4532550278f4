"""Recordings of nock, as `nock.back` and `recorder.play()` with `output_objects` write them: JSON
lists, with an object for each exchange (lib/recorder.js): https://github.com/nock/nock.

A recording has each answer whole, without times.
"""

from __future__ import annotations

from typing import Any

from mockllm.core.errors import UsageError, WireError
from mockllm.core.http import host_in
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import (
    Entry,
    Unread,
    as_sent,
    body_bytes,
    from_hex,
    header_pairs,
    whole,
)
from mockllm.record.redaction.credentials import masked_url


def read(file: ForeignFile) -> list[Entry]:
    """The entries of a recording, in order.

    Raises:
        UsageError: the file is no recording.
    """
    if not isinstance(file.value, list):
        raise UsageError(f"{file.path} is no recording of nock: it is no list")
    return [_exchange(entry, f"{file.path}#{number}") for number, entry in enumerate(file.value, 1)]


def _exchange(entry: Any, source: str) -> Entry:
    match entry:
        case {"scope": str(scope), "method": str(method), "path": str(path)}:
            pass
        case _:
            return Unread(source, "it has no 'scope' with its 'method' and 'path'")
    # A scope names the usual port, too: https://api.openai.com:443.
    url = f"{scope.partition(':')[0]}://{host_in(scope)}{path}"
    sent = f"{method} {masked_url(url)}"
    try:
        status, headers = entry.get("status", 200), _headers(entry)
        if not isinstance(status, int):
            return Unread(source, "the answer has no status", sent)
        exchange = Captured(
            method,
            url,
            header_pairs(entry.get("reqheaders")),
            body_bytes(entry.get("body")),
            status,
            headers,
            whole(_answer(entry, headers)),
            source=source,
        )
        return as_sent(exchange)
    except WireError as error:
        return Unread(source, str(error), sent)


def _headers(entry: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The headers of an answer: a mapping before version 8 of nock, and since then a flat list of
    names and values, as Node.js has them."""
    raw = entry.get("rawHeaders", entry.get("headers"))
    if isinstance(raw, list):
        raw = [list(pair) for pair in zip(raw[::2], raw[1::2], strict=False)]
    return header_pairs(raw)


def _answer(entry: dict[str, Any], headers: tuple[tuple[str, str], ...]) -> bytes:
    """The body of an answer: the parsed value of JSON, digits of what is no text, and a list of
    such chunks where it is compressed."""
    body = entry.get("response")
    match body:
        case str(digits) if entry.get("responseIsBinary"):
            return from_hex(digits)
        case [*chunks] if any(name == "content-encoding" for name, _ in headers):
            return b"".join(from_hex(str(chunk)) for chunk in chunks)
    return body_bytes(body)
