"""`Carrier`: how the frames of a stream travel. Each module beside this one has one.

A protocol says what a frame means, its carrier where the frame begins and ends in the bytes. Law:
however the bytes are cut, they decode to the same frames.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Literal, Protocol

from mockllm.core.errors import WireError
from mockllm.core.events import Frame, LineEnd
from mockllm.core.record import record

CarrierName = Literal["sse", "json_array", "ndjson", "eventstream"]

Span = tuple[int, int]
"""Where a block of a stream begins and ends, in bytes from the beginning of the stream."""


class Scanner(Protocol):
    """Finds the blocks of one stream, whose bytes arrive in any pieces. A block has the bytes of
    one frame, or of none (a comment, a blank line)."""

    def read(self, data: bytes) -> Iterable[Span]:
        """The blocks that these bytes complete."""

    def close(self) -> Iterable[Span]:
        """The blocks that the end of the stream completes."""


class FrameDecoder(Protocol):
    """Decodes the bytes of one stream, cut anywhere, to frames. What the end of the stream leaves
    incomplete is no frame."""

    def decode(self, chunk: bytes) -> Iterable[Frame]:
        """The frames that these bytes complete, in order."""

    def close(self) -> Iterable[Frame]:
        """The frames that the end of the stream completes."""


def whole(block: bytes) -> Mapping[str, Span]:
    """The parts of a block that is text."""
    return {"payload": (0, len(block))}


def identity(block: bytes) -> bytes:
    """The block itself: nothing in it depends on the rest."""
    return block


@record
class Carrier:
    """One form in which frames travel.

    Args:
        content_type: of an answer in this form, without parameters.
        encode: the bytes of a frame; the line end counts only where the form has lines.
        scanner: finds the blocks of one stream.
        block: the frames of one whole block.
        parts: where the parts of a whole block are, by their names; text has a `payload` only.
        repair: a block whose payload was changed, with lengths and checksums that fit.
        own_decoder: of one stream, where frames are not decoded block by block.
    """

    name: CarrierName
    content_type: str
    encode: Callable[[Frame, LineEnd], bytes]
    scanner: Callable[[], Scanner]
    block: Callable[[bytes], list[Frame]]
    parts: Callable[[bytes], Mapping[str, Span]] = whole
    repair: Callable[[bytes], bytes] = identity
    own_decoder: Callable[[], FrameDecoder] | None = None

    def decoder(self) -> FrameDecoder:
        """Decodes one stream."""
        return self.own_decoder() if self.own_decoder else _Blocks(self.scanner(), self.block)

    def decode(self, data: bytes) -> list[Frame]:
        """The frames of a complete stream."""
        decoder = self.decoder()
        return [*decoder.decode(data), *decoder.close()]

    def readable(self, data: bytes) -> list[Frame]:
        """The frames of a stream up to bytes that are none: some are broken on purpose."""
        frames: list[Frame] = []
        with suppress(WireError):
            frames.extend(self.decoder().decode(data))
        return frames


def wrapping(
    outer: Carrier, wrap: Callable[[Frame], Frame], unwrap: Callable[[Frame], Frame]
) -> Carrier:
    """A carrier whose frames are inside of those of another one.

    Args:
        wrap: the frame of `outer` for a frame with data; `unwrap` is its inverse.
    """

    def encode(frame: Frame, line_end: LineEnd) -> bytes:
        if frame.data is None and frame.raw is None:
            return b""  # a comment
        return outer.encode(wrap(frame) if frame.raw is None else frame, line_end)

    def block(data: bytes) -> list[Frame]:
        return [unwrap(frame) for frame in outer.block(data)]

    return replace(outer, encode=encode, block=block)


class _Blocks:
    """Decodes a stream whose blocks mean the same wherever they stand in it."""

    def __init__(self, scanner: Scanner, block: Callable[[bytes], list[Frame]]) -> None:
        self._scanner = scanner
        self._block = block
        self._pending = bytearray()
        self._begin = 0

    def close(self) -> Iterator[Frame]:
        """The frame that the end of the stream completes, if its JSON is whole."""
        # The last line of Ollama needs no line feed, and a stream that was cut inside of a line has
        # no event there.
        for begin, end in self._scanner.close():
            block = self._pending[begin - self._begin : end - self._begin]
            yield from (frame for frame in self._block(bytes(block)) if _is_json(frame.data or ""))

    def decode(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that these bytes complete, in order: those before a broken one, too.

        Raises:
            WireError: a block is no frame of the carrier; the message says which bytes it has.
        """
        self._pending += chunk
        for begin, end in self._scanner.read(chunk):
            block = bytes(self._pending[begin - self._begin : end - self._begin])
            del self._pending[: end - self._begin]
            self._begin = end
            try:
                frames = self._block(block)
            except WireError as error:
                raise WireError(f"bytes {begin} to {end} of the stream: {error}") from error
            yield from frames


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
