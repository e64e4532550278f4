"""Bytes: mistakes in reading server-sent events."""

from __future__ import annotations

import codecs
import json

from examples.accumulators.lines import Lines, ReferenceBytes
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import mutant


class Chat(ReferenceBytes):
    """The correct reader, for chat."""

    def __init__(self) -> None:
        super().__init__("chat")


class Messages(ReferenceBytes):
    """The correct reader, for anthropic."""

    def __init__(self) -> None:
        super().__init__("anthropic")


class _SplitLines(Lines):
    def feed(self, data: bytes) -> list[str]:
        return [part for line in super().feed(data) for part in line.splitlines() or [""]]


@mutant("chunking-free", api="chat", level="bytes", family="line ends")
class SplitLines(Chat):
    """Splits lines with `str.splitlines`, which splits at more characters than SSE does
    (`sse-unicode-line-separators`)."""

    def __init__(self) -> None:
        super().__init__()
        self._lines = _SplitLines()


class _NoDecoder:
    """Decodes each chunk as if it were the whole text."""

    def __init__(self, errors: str) -> None:
        self._errors = errors

    def decode(self, data: bytes, final: bool = False) -> str:
        return data.decode(errors=self._errors)


@mutant("chunking-free", api="chat", level="bytes", family="characters")
class DecodesEachChunk(Chat):
    """Decodes the bytes of each chunk alone, with U+FFFD where it cannot (`sse-utf8-split`)."""

    def __init__(self) -> None:
        super().__init__()
        self._lines._utf8 = _NoDecoder("replace")  # type: ignore[assignment]


@mutant("chunking-free", api="gemini", level="bytes", family="characters")
class DecodesEachChunkStrictly(ReferenceBytes):
    """Decodes the bytes of each chunk alone, and raises where it cannot (`sse-utf8-split`)."""

    def __init__(self) -> None:
        super().__init__("gemini")
        self._lines._utf8 = _NoDecoder("strict")  # type: ignore[assignment]


@mutant("chunking-free", api="responses", level="bytes", family="line ends")
class SplitsOnTwoNewlines(ReferenceBytes):
    r"""Splits on "\n\n" alone, and not on other ends of an event (`sse-crlf`)."""

    def __init__(self) -> None:
        super().__init__("responses")
        self.text, self.utf8 = "", codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Delta | None:
        *events, self.text = (self.text + self.utf8.decode(data)).split("\n\n")
        for event in events:
            super().feed(f"{event}\n\n".encode())
        return None


@mutant("chunking-free", api="chat", level="bytes", family="fields")
class SpaceRequired(Chat):
    """Reads `data: ` and not `data:` (`sse-no-space`)."""

    def _line(self, line: str) -> Delta | None:
        return None if line[:5] == "data:" and line[:6] != "data: " else super()._line(line)


@mutant("chunking-free", "unknown-event", api="chat", level="bytes", family="fields")
class LastDataLine(Chat):
    """Reads the last `data` line of an event alone (`sse-multiline-data`)."""

    def _line(self, line: str) -> Delta | None:
        if line.startswith("data:"):
            self._data.clear()
        return super()._line(line)


@mutant("chunking-free", "unknown-event", api="agui", level="bytes", family="events")
class EachDataLine(ReferenceBytes):
    """Reads each `data` line as an event (`sse-multiline-data`)."""

    def __init__(self) -> None:
        super().__init__("agui")

    def _line(self, line: str) -> Delta | None:
        delta = super()._line(line)
        return self._dispatch() if line.startswith("data:") else delta


@mutant("chunking-free", api="chat", level="bytes", family="characters")
class MarkIsText(Chat):
    """Keeps a byte order mark at the beginning of the stream (`sse-bom`)."""

    def __init__(self) -> None:
        super().__init__()
        self._lines._started = True


@mutant("chunking-free", api="chat", level="bytes", family="buffers")
class ChunkIsAnEvent(Chat):
    """Expects every chunk of bytes to hold whole events (`sse-chunk-boundaries`)."""

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = self._lines.rest()
        self._lines._partial = []
        return delta if not rest else self._line(rest)


@mutant("chunking-free", api="anthropic", level="bytes", family="buffers")
class LongEventsLost(Messages):
    """Ignores lines of more than 64 KiB (`sse-huge-event`)."""

    def _line(self, line: str) -> Delta | None:
        return super()._line(line) if len(line) < 65536 else None


@mutant("unknown-event", api="chat", level="bytes", family="fields")
class CommentsAreData(Chat):
    """Reads the text of a comment as data (`sse-comments`)."""

    def _line(self, line: str) -> Delta | None:
        return super()._line(f"data{line}" if line[:1] == ":" else line)


@mutant("unknown-event", api="chat", level="bytes", family="events")
class IdMakesAnEvent(Chat):
    """Dispatches an event for an id alone, whose empty data are not JSON
    (`sse-id-then-comment`)."""

    def _line(self, line: str) -> Delta | None:
        if line.startswith(("id:", "retry:")):
            self.__dict__["has_id"] = True
        if not line and self.__dict__.get("has_id") and not self._data:
            json.loads("")
        return super()._line(line)


@mutant("unknown-event", api="anthropic", level="bytes", family="events")
class EmptyDataParsed(Messages):
    """Parses the data of an event that has none (`sse-event-without-data`)."""

    def _dispatch(self) -> Delta | None:
        if (self._event or self._data) and not "".join(self._data):
            json.loads("")
        return super()._dispatch()


@mutant("error-ends", api="chat", level="bytes", family="errors")
class BrokenDataPassedOver(Chat):
    """Ignores an event whose data are not JSON (`sse-malformed-json`)."""

    def _fail(self, message: str) -> None:
        pass


@mutant("finish-and-usage", api="chat", level="bytes", family="end marker")
class SentinelToTheLetter(Chat):
    """Reads `[DONE]` only without trailing spaces (`sse-done-variants`)."""

    def _is_sentinel(self, data: str) -> bool:
        return super()._is_sentinel(data) if data == "[DONE]" else False


@mutant("unknown-event", api="anthropic", level="bytes", family="end marker")
class SentinelUnknown(Messages):
    """Parses `[DONE]` as JSON (`anth-done-sentinel`)."""

    def _is_sentinel(self, data: str) -> bool:
        return False


@mutant("text-accumulates", api="chat", level="bytes", family="end marker")
class GoesOnAfterDone(Chat):
    """Appends the data after `[DONE]` (`chat-data-after-done`)."""

    def _is_sentinel(self, data: str) -> bool:
        sentinel = super()._is_sentinel(data)
        self._ended = False
        return sentinel


@mutant("truncated-is-not-complete", api="chat", level="bytes", family="cut streams")
class EndOfInputIsTheEnd(Chat):
    """Treats the end of the input as the end of the answer (`sse-cut`)."""

    def close(self) -> None:
        self._accumulator._answer.complete = True
        super().close()
