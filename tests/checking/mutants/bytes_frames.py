"""Mistakes with the bytes of Bedrock, Ollama, Cohere and Completions."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from examples.accumulators import frames
from examples.accumulators.frames import Frames
from mockllm.checking.probes import Delta
from tests.checking.mutants.bytes_events import Reader


class FrameReader(Reader):
    """The correct reader of Converse, with frames of a class."""

    api = "bedrock"
    frames: type[Frames] = Frames

    def __init__(self) -> None:
        super().__init__()
        self._frames = self.frames()


class CutFramePassedOver(FrameReader):
    def close(self) -> None:
        assert self._frames is not None
        self._frames.rest = b""
        answer = self._accumulator._answer
        answer.complete = answer.complete or not answer.failed
        super().close()


class ChecksumsIgnored(FrameReader):
    class frames(Frames):  # noqa: N801 - it stands in the place of the attribute
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            self.rest += data
            while len(self.rest) >= 12:
                size, headers, _ = struct.unpack_from(">III", self.rest)
                if len(self.rest) < size or size < 16:
                    return
                frame, self.rest = self.rest[:size], self.rest[size:]
                payload = frame[12 + headers : -4]
                yield from frames._event(frames._headers(frame[12:][:headers]), payload)


class AReadIsAFrame(FrameReader):
    class frames(Frames):  # noqa: N801
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            yield from super().feed(data)
            self.rest = b""


class FirstFrameOfARead(FrameReader):
    class frames(Frames):  # noqa: N801
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            yield from list(super().feed(data))[:1]


class EventNameIsTheFirstHeader(FrameReader):
    class frames(Frames):  # noqa: N801
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            before = self.rest + data
            for event in super().feed(data):
                name_size = before[12]
                if before[13:][:name_size] not in (b":event-type", b":exception-type"):
                    continue
                yield event


class ErrorFramesIgnored(FrameReader):
    class frames(Frames):  # noqa: N801
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            return (event for event in super().feed(data) if "error" not in event)


class BrokenFrameEndsInOrder(FrameReader):
    class frames(Frames):  # noqa: N801
        def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
            try:
                yield from super().feed(data)
            except frames.BrokenFrameError:
                self.rest = b""


class ObjectReader(Reader):
    """The correct reader of Ollama."""

    api = "ollama"


class BlankLineRaises(ObjectReader):
    def _line(self, line: str) -> Delta | None:
        json.loads(line)
        return super()._line(line)


class UnicodeLinesSplit(ObjectReader):
    def _line(self, line: str) -> Delta | None:
        deltas = [super(UnicodeLinesSplit, self)._line(part) for part in line.splitlines()]
        return next((delta for delta in deltas if delta is not None), None)


class LastLineNeedsItsEnd(ObjectReader):
    def close(self) -> None:
        self._lines._partial.clear()
        super().close()


class ALineIsARead(ObjectReader):
    def feed(self, data: bytes) -> Delta | None:
        deltas = [self._line(line) for line in data.decode(errors="replace").split("\n") if line]
        return next((delta for delta in deltas if delta is not None), None)


class EndOfEventsIsTheEnd(Reader):
    api = "cohere"

    def close(self) -> None:
        self._lines._partial.clear()
        self._data.clear()
        answer = self._accumulator._answer
        answer.complete = answer.complete or not answer.failed
        super().close()


class EndOfInteractionIsNotNeeded(EndOfEventsIsTheEnd):
    api = "interactions"


class DoneIsRequired(Reader):
    api = "completions"

    def close(self) -> None:
        if not self._ended:
            self._accumulator.fail("the stream was cut: it has no [DONE]", "truncated")
        super().close()
