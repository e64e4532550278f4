"""Recordings of Go's httprr, which LangChainGo and others keep: https://pkg.go.dev/golang.org/x/oscar.

A first line is followed by the exchanges: the sizes of request and answer in a line, then both as
HTTP/1.1 writes them. A recording has each answer whole, without times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mockllm.core.errors import WireError
from mockllm.play.tapes.captured import Captured
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Entry, Unread, as_sent, header_lines, whole
from mockllm.record.redaction.credentials import masked_url

FIRST = b"httprr trace v1"

_SIZES = re.compile(rb"(\d{1,10}) (\d{1,10})\r?\n")
_MESSAGE = re.compile(rb"([^\r\n]+)\r?\n(.*?)\r?\n\r?\n", re.DOTALL)  # scrubbed lines end in `\n`
_CHUNK = re.compile(rb"(?:\r?\n)?([0-9a-fA-F]{1,8})[^\n]*\n")


def read(file: ForeignFile) -> list[Entry]:
    """The entries of a recording, in order. Where one is cut off, nothing after it is read."""
    return list(_entries(file))


def _entries(file: ForeignFile) -> Iterator[Entry]:
    data, number = file.data, 0
    _, _, rest = data.partition(b"\n")
    at = len(data) - len(rest)
    while at < len(data):
        number += 1
        source, sizes = f"{file.path}#{number}", _SIZES.match(data, at)
        middle = sizes.end() + int(sizes[1]) if sizes is not None else 0
        end = middle + int(sizes[2]) if sizes is not None else 0
        if sizes is None or end > len(data):
            yield Unread(source, "it is cut off, or its sizes are wrong")
            return
        yield _exchange(data[sizes.end() : middle], data[middle:end], source)
        at = end


def _exchange(request: bytes, answer: bytes, source: str) -> Entry:
    sent, got = _MESSAGE.match(request), _MESSAGE.match(answer)
    words = sent[1].decode("latin-1").split(" ") if sent is not None else []
    status = got[1].split(b" ")[1:2] if got is not None else []
    if sent is None or got is None or len(words) != 3 or not (status and status[0].isdigit()):
        return Unread(source, "it has no request with its response")
    method, url, _ = words
    body = answer[got.end() :]
    try:
        exchange = Captured(
            method,
            url,
            header_lines(sent[2]),
            request[sent.end() :],
            int(status[0]),
            header_lines(got[2]),
            whole(_join_chunks(body) if b"transfer-encoding: chunked" in got[2].lower() else body),
            source=source,
        )
        return as_sent(exchange)
    except WireError as error:
        return Unread(source, str(error), f"{method} {masked_url(url)}")


def _join_chunks(body: bytes) -> bytes:
    """A body without the sizes of its HTTP chunks."""
    parts, at = [], 0
    while (size := _CHUNK.match(body, at)) is not None and int(size[1], 16):
        at = size.end() + int(size[1], 16)
        parts.append(body[size.end() : at])
    return b"".join(parts)
