"""Server-sent events: frames to bytes and bytes to frames, by the WHATWG rules.

https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream

The decoder separates lines from meaning: `_lines` cuts bytes at CR, LF and CRLF and nothing
else; `Decoder` gives lines their meaning. Comments come out as frames of their own, at once,
because a recorder must not lose them.
"""

from __future__ import annotations

import codecs

from mockllm.core.frame import Frame, LineEnd
from mockllm.errors import SSEError

__all__ = ["LINE_ENDS", "Decoder", "decode", "encode"]

LINE_ENDS: dict[LineEnd, str] = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}

MAX_LINE = 16 * 1024 * 1024
MAX_EVENT = 64 * 1024 * 1024
MAX_RETRY = 10**18


def encode(frame: Frame, line_end: LineEnd = "lf") -> bytes:
    """The bytes of a frame, its closing blank line included.

    Line breaks inside `data` or `comment` become several lines, as the format demands; a CR
    inside them cannot survive, and reads back as LF.

    Raises:
        ValueError: a line break inside `event` or `id`, for which the format has no way.
    """
    if frame.raw is not None:
        return frame.raw.encode()
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
    return end.join(lines).encode()


def _one_line(field: str, value: str) -> str:
    if "\n" in value or "\r" in value:
        raise ValueError(f"an SSE {field} cannot hold a line break, got {value!r}; use `raw`")
    return value


def _split(text: str) -> list[str]:
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


class Decoder:
    """Takes the bytes of a stream, cut anywhere, and gives the frames they complete.

    Args:
        max_line: longest line, in characters, before `SSEError`.
        max_event: most data in one event, in characters, before `SSEError`.

    `last_event_id` follows the specification: it is taken over when an event is complete, and
    stays until a later one has an `id` line. Bytes that are not UTF-8 become U+FFFD, as the
    specification asks. After an `SSEError` nothing that follows can be trusted: drop the decoder.
    """

    def __init__(self, *, max_line: int = MAX_LINE, max_event: int = MAX_EVENT) -> None:
        self._max_line = max_line
        self._max_event = max_event
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
        self.last_event_id = ""

    def decode(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes, in order."""
        text = self._utf8.decode(chunk)
        if self._first and text:
            self._first = False
            if text[0] == "\ufeff":
                text = text[1:]
        frames: list[Frame] = []
        for line in self._lines(text):
            self._line(line, frames)
        return frames

    @property
    def pending(self) -> bool:
        """Whether the stream, if it ended here, would end inside an event."""
        return bool(
            self._partial_size
            or self._data
            or self._event is not None
            or self._id is not None
            or self._retry is not None
            or self._utf8.getstate()[0]
        )

    def _lines(self, text: str) -> list[str]:
        """Complete lines of what came so far. Only CR, LF and CRLF end one."""
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
        if max(longest, self._partial_size + len(rest)) > self._max_line:
            raise SSEError(
                f"an SSE line is longer than {self._max_line} characters; "
                "is this an event stream? (Decoder(max_line=...) raises the bound)"
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
        if colon and value[:1] == " ":
            value = value[1:]
        if not name:
            frames.append(Frame(comment=value))
        elif name == "data":
            self._append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            if "\0" not in value:
                self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            # Bounded, because int() refuses thousands of digits and no client waits that long.
            self._retry = min(int(value.lstrip("0")[:19] or "0"), MAX_RETRY)

    def _append(self, value: str) -> None:
        size = self._data_size + len(value) + bool(self._data)
        if size > self._max_event:
            raise SSEError(
                f"the data of one SSE event is longer than {self._max_event} characters; "
                "is a blank line missing? (Decoder(max_event=...) raises the bound)"
            )
        self._data.append(value)
        self._data_size = size

    def _dispatch(self, frames: list[Frame]) -> None:
        if self._data or self._id is not None or self._retry is not None:
            data = "\n".join(self._data) if self._data else None
            frames.append(Frame(data, self._event, self._id, self._retry))
        if self._id is not None:
            self.last_event_id = self._id
        self._data, self._data_size = [], 0
        self._event = self._id = self._retry = None


def decode(data: bytes) -> list[Frame]:
    """The frames of a whole stream; an event without its closing blank line is discarded, as
    the specification asks."""
    return Decoder().decode(data)
