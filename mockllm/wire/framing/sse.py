"""Server-sent events: frames to bytes and back, as the WHATWG HTML standard specifies.

https://html.spec.whatwg.org/multipage/server-sent-events.html (sections 9.2.5 and 9.2.6)

`SSEDecoder._lines` splits text into lines (9.2.5), `SSEDecoder._line` interprets them (9.2.6).
Unlike in a browser, comments and blocks with only `id` or `retry` are returned as frames, because a
recorder must not lose them.
"""

from __future__ import annotations

import codecs
import re

from mockllm.core.errors import SSEError
from mockllm.core.events import Frame, LineEnd
from mockllm.core.jsontext import json_bytes
from mockllm.wire.framing.carrier import Carrier, Span

LINE_ENDS: dict[LineEnd, str] = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
"""The three that end a line (9.2.5, `end-of-line`)."""

MAX_LINE = 16 * 1024 * 1024
"""The longest line, in characters."""

MAX_EVENT = 64 * 1024 * 1024
"""The most data of one event, in characters."""

MAX_RETRY = 10**18


def encode(frame: Frame, line_end: LineEnd = "lf") -> bytes:
    """The bytes of a frame, with its closing blank line.

    Line breaks in `data` or `comment` become several lines, as the format requires; CR and CRLF
    there read back as LF.

    Raises:
        ValueError: a line break in `event` or `id`, which the format cannot express.
    """
    if frame.raw is not None:
        return json_bytes(frame.raw)
    end = LINE_ENDS[line_end]
    lines = []
    if frame.comment is not None:
        lines += [f": {line}" if line else ":" for line in _split(frame.comment)]
    if frame.event is not None:
        lines.append(f"event: {_one_line('event', frame.event)}")
    if frame.id is not None:
        lines.append(f"id: {_one_line('id', frame.id)}")
    if frame.retry is not None:
        lines.append(f"retry: {frame.retry}")
    if frame.data is not None:
        lines += [f"data: {line}" for line in _split(frame.data)]
    lines.append(end)
    return json_bytes(end.join(lines))


def _one_line(field: str, value: str) -> str:
    if "\n" in value or "\r" in value:
        raise ValueError(f"an SSE {field} cannot hold a line break, got {value!r}; use `raw`")
    return value


def _split(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


class SSEDecoder:
    """Decodes the bytes of a stream, cut anywhere, to frames.

    Bytes that are not UTF-8 become U+FFFD, because the specification decodes with "UTF-8 decode",
    which never fails. A decoder that raised `SSEError` must not be used again.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial: list[str] = []
        self._partial_size = 0
        self._first = True
        self._after_cr = False
        self._data: list[str] = []
        self._data_size = 0
        self._event: str | None = None
        self._id: str | None = None
        self._retry: int | None = None

    def decode(self, chunk: bytes) -> list[Frame]:
        """The frames that these bytes complete, in order.

        Raises:
            SSEError: a line, or the data of an event, is too long.
        """
        text = self._utf8.decode(chunk)
        # One leading byte order mark is dropped (9.2.5); .NET servers and proxies send it.
        if self._first and text:
            self._first = False
            if text[0] == "\ufeff":
                text = text[1:]
        frames: list[Frame] = []
        for line in self._lines(text):
            self._line(line, frames)
        return frames

    def close(self) -> list[Frame]:
        """Nothing: an event without its blank line is discarded (9.2.6)."""
        return []

    def _lines(self, text: str) -> list[str]:
        """The lines that the text completes, without their ends.

        Only CR, LF and CRLF end a line. `str.splitlines` would also split at U+2028, U+0085 and
        others, which JSON strings may contain.
        """
        # The LF of a CRLF that was cut in two does not end another line.
        if self._after_cr and text:
            self._after_cr = False
            if text[0] == "\n":
                text = text[1:]
        if not text:
            return []
        if text[-1] == "\r":
            self._after_cr = True
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if self._partial and len(lines) > 1:
            lines[0] = "".join(self._partial) + lines[0]
            self._partial, self._partial_size = [], 0
        rest = lines.pop()
        longest = max(map(len, lines), default=0)
        if max(longest, self._partial_size + len(rest)) > MAX_LINE:
            raise SSEError(
                f"an SSE line is longer than {MAX_LINE} characters; is this an event stream?"
            )
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
        return lines

    def _line(self, line: str, frames: list[Frame]) -> None:
        if not line:
            self._dispatch(frames)
            return
        name, colon, value = line.partition(":")
        # Exactly one space is removed (9.2.6); some servers send none (Kimi Code, Spring).
        if colon and value[:1] == " ":
            value = value[1:]
        if not name:
            frames.append(Frame(comment=value))
        elif name == "data":
            self._append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            # An id with U+0000 is ignored (9.2.6).
            if "\0" not in value:
                self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            # ASCII digits only (9.2.6). Bounded, because int() raises for thousands of digits.
            self._retry = min(int(value.lstrip("0")[:19] or "0"), MAX_RETRY)

    def _append(self, value: str) -> None:
        size = self._data_size + len(value) + bool(self._data)
        if size > MAX_EVENT:
            raise SSEError(
                f"the data of one SSE event is longer than {MAX_EVENT} characters; "
                "is a blank line missing?"
            )
        self._data.append(value)
        self._data_size = size

    def _dispatch(self, frames: list[Frame]) -> None:
        # A block without a `data` line is no event (9.2.6): one with only `event` is dropped. An
        # empty `data` line makes an event with "" as its data.
        if self._data or self._id is not None or self._retry is not None:
            data = "\n".join(self._data) if self._data else None
            frames.append(Frame(data, self._event, self._id, self._retry))
        self._data, self._data_size = [], 0
        self._event = self._id = self._retry = None


def decode(data: bytes) -> list[Frame]:
    """The frames of a complete stream; an event without its closing blank line is discarded, as the
    specification requires (9.2.6)."""
    return SSEDecoder().decode(data)


_BLANK = re.compile(rb"(?>\r\n|\r|\n)(?>\r\n|\r|\n)")
"""The end of a line, and the blank line after it: the end of an event (9.2.6)."""


class BlockScanner:
    """Finds the blocks of a stream, each with its blank line; the last one may have none."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._begin = self._searched = 0

    def read(self, data: bytes) -> list[Span]:
        """The blocks that these bytes complete."""
        self._pending += data
        return self._blocks(final=False)

    def close(self) -> list[Span]:
        """The blocks that the end of the stream completes."""
        spans = self._blocks(final=True)
        if self._pending.strip():
            spans.append((self._begin, self._begin + len(self._pending)))
        return spans

    def _blocks(self, *, final: bool) -> list[Span]:
        spans: list[Span] = []
        at = 0
        for blank in _BLANK.finditer(self._pending, self._searched):
            if not final and blank.end() == len(self._pending) and blank[0].endswith(b"\r"):
                break  # the first half of CRLF, perhaps
            spans.append((self._begin + at, self._begin + blank.end()))
            at = blank.end()
        del self._pending[:at]
        self._begin += at
        # Two line ends that are not whole yet have three bytes at most (CR LF CR).
        self._searched = max(0, len(self._pending) - 3)
        return spans


def block(data: bytes) -> list[Frame]:
    """The frames of a block, whether it has its blank line or not."""
    return decode(data if data[-1:] in (b"\r", b"\n") else data + b"\n\n")


SSE = Carrier("sse", "text/event-stream", encode, BlockScanner, block, own_decoder=SSEDecoder)
"""Most APIs."""
