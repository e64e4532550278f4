"""Mistakes with lines, characters and reads of the bytes of a stream, in all APIs."""

from __future__ import annotations

import codecs
import json
import re

from examples.accumulators.lines import Lines, ReferenceBytes
from mockllm.checking.probes import Delta
from tests.checking.mutants.altered import SHARED


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


class SplitLines(Chat):
    def __init__(self) -> None:
        super().__init__()
        self._lines = _SplitLines()


class _NoDecoder:
    """Decodes each chunk as if it were the whole text."""

    def __init__(self, errors: str) -> None:
        self._errors = errors

    def decode(self, data: bytes, final: bool = False) -> str:
        return data.decode(errors=self._errors)


class DecodesEachChunk(Chat):
    def __init__(self) -> None:
        super().__init__()
        self._lines._utf8 = _NoDecoder("replace")  # type: ignore[assignment]


class DecodesEachChunkStrictly(ReferenceBytes):
    def __init__(self) -> None:
        super().__init__("gemini")
        self._lines._utf8 = _NoDecoder("strict")  # type: ignore[assignment]


class SplitsOnTwoNewlines(ReferenceBytes):
    def __init__(self) -> None:
        super().__init__("responses")
        self.text, self.utf8 = "", codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Delta | None:
        *events, self.text = (self.text + self.utf8.decode(data)).split("\n\n")
        for event in events:
            super().feed(f"{event}\n\n".encode())
        return None


class SpaceRequired(Chat):
    def _line(self, line: str) -> Delta | None:
        return None if line[:5] == "data:" and line[:6] != "data: " else super()._line(line)


class LastDataLine(Chat):
    def _line(self, line: str) -> Delta | None:
        if line.startswith("data:"):
            self._data.clear()
        return super()._line(line)


class EachDataLine(ReferenceBytes):
    def __init__(self) -> None:
        super().__init__("agui")

    def _line(self, line: str) -> Delta | None:
        delta = super()._line(line)
        return self._dispatch() if line.startswith("data:") else delta


class MarkIsText(Chat):
    def __init__(self) -> None:
        super().__init__()
        self._lines._started = True


class ChunkIsAnEvent(Chat):
    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = self._lines.rest()
        self._lines._partial = []
        return delta if not rest else self._line(rest)


class LongEventsLost(Messages):
    def _line(self, line: str) -> Delta | None:
        return super()._line(line) if len(line) < 65536 else None


class CommentsAreData(Chat):
    def _line(self, line: str) -> Delta | None:
        return super()._line(f"data{line}" if line[:1] == ":" else line)


class IdMakesAnEvent(Chat):
    def _line(self, line: str) -> Delta | None:
        if line.startswith(("id:", "retry:")):
            self.__dict__["has_id"] = True
        if not line and self.__dict__.get("has_id") and not self._data:
            json.loads("")
        return super()._line(line)


class EmptyDataParsed(Messages):
    def _dispatch(self) -> Delta | None:
        if (self._event or self._data) and not "".join(self._data):
            json.loads("")
        return super()._dispatch()


class BrokenDataPassedOver(Chat):
    def _fail(self, message: str) -> None:
        pass


class SentinelToTheLetter(Chat):
    def _is_sentinel(self, data: str) -> bool:
        return super()._is_sentinel(data) if data == "[DONE]" else False


class SentinelUnknown(Messages):
    def _is_sentinel(self, data: str) -> bool:
        return False


class GoesOnAfterDone(Chat):
    def _is_sentinel(self, data: str) -> bool:
        sentinel = super()._is_sentinel(data)
        self._ended = False
        return sentinel


class EndOfInputIsTheEnd(Chat):
    def close(self) -> None:
        self._accumulator._answer.complete = True
        super().close()


_MOST_BYTES = 4096

_MOST_CHARACTERS = 64 * 1024

_BOM = "\ufeff"


class _Reader(ReferenceBytes):
    """The correct reader of an API, whose lines are split by a subclass of `Lines`."""

    api = "chat"
    lines: type[Lines] = Lines

    def __init__(self) -> None:
        super().__init__(self.api)
        self._lines = self.lines()


class _Regex(Lines):
    """Splits where a pattern matches, once more text has come."""

    ends = re.compile(r"\r\n|\n|\r")

    def feed(self, data: bytes) -> list[str]:
        text = "".join(self._partial) + self._utf8.decode(data)
        if not self._started and text:
            self._started, text = True, text.removeprefix(_BOM)
        *lines, rest = self.ends.split(text)
        self._partial = [rest]
        return lines


# Ends of lines


class _LineFeeds(_Regex):
    ends = re.compile(r"\n")


class _NoLoneReturns(_Regex):
    ends = re.compile(r"\r\n|\n")


class _ReturnsAndFeeds(_Regex):
    ends = re.compile(r"\r|\n")


class LineFeedsOnly(_Reader):
    lines = _LineFeeds


class LoneReturnsUnknown(_Reader):
    api, lines = "anthropic", _NoLoneReturns


class ReturnAndFeedAreTwoEnds(_Reader):
    api, lines = "responses", _ReturnsAndFeeds


class _SplitPairs(Lines):
    def feed(self, data: bytes) -> list[str]:
        self._after_cr = False
        return super().feed(data)


class PairCutByARead(_Reader):
    lines = _SplitPairs


class _WaitingReturns(Lines):
    def feed(self, data: bytes) -> list[str]:
        kept = self.__dict__.pop("kept", b"") + data
        ends = len(kept) - len(kept.rstrip(b"\r"))
        if ends:
            self.__dict__["kept"] = kept[-ends:]
        return super().feed(kept[: len(kept) - ends])


class LastReturnWaits(_Reader):
    lines = _WaitingReturns

    def close(self) -> None:
        self._data.clear()
        super().close()


class _PairedEnds(ReferenceBytes):
    """Splits events by a pattern, then lines by `splitlines`."""

    ends = re.compile("\n\n|\r\r|\r\n\r\n")

    def __init__(self) -> None:
        super().__init__("gemini")
        self.text = ""

    def feed(self, data: bytes) -> Delta | None:
        *events, self.text = self.ends.split(self.text + self._lines._utf8.decode(data))
        for event in events:
            for line in re.split("\r\n|\r|\n", event.removeprefix(_BOM)):
                self._line(line)
            self._line("")
        return None

    def close(self) -> None:
        for line in re.split("\r\n|\r|\n", self.text):
            self._line(line)
        super().close()


class MixedEndsUnknown(_PairedEnds):
    pass


# Characters


class _Latin(Lines):
    def feed(self, data: bytes) -> list[str]:
        return super().feed(data.decode("latin-1").encode())


class LatinBytes(_Reader):
    lines = _Latin


class _IgnoresBytes:
    """Drops the bytes of each read that are no whole character."""

    def decode(self, data: bytes, final: bool = False) -> str:
        return data.decode(errors="ignore")


class CutCharactersLost(_Reader):
    api = "responses"

    def __init__(self) -> None:
        super().__init__()
        self._lines._utf8 = _IgnoresBytes()  # type: ignore[assignment]


class _MarkInOneRead(Lines):
    def feed(self, data: bytes) -> list[str]:
        if not self._started:
            self._started, data = True, data.removeprefix(_BOM.encode())
        return super().feed(data)


class MarkInOneRead(_Reader):
    lines = _MarkInOneRead


class _NoMarks(Lines):
    def feed(self, data: bytes) -> list[str]:
        return [line.replace(_BOM, "") for line in super().feed(data)]


class MarksRemovedEverywhere(_Reader):
    lines = _NoMarks


class _Unescaped(Lines):
    def feed(self, data: bytes) -> list[str]:
        return [line.replace("\\n", " ").replace("\\t", " ") for line in super().feed(data)]


class EscapesReplaced(_Reader):
    api, lines = "anthropic", _Unescaped


# Reads


class CutLinesLost(_Reader):
    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        self._lines._partial = []
        return delta


class OneEventARead(_Reader):
    api = "responses"

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[str] = []

    def feed(self, data: bytes) -> Delta | None:
        self.waiting += self._lines.feed(data)
        while self.waiting:
            line = self.waiting.pop(0)
            self._line(line)
            if not line:
                break
        return None


class ReadsTrimmed(_Reader):
    api = "gemini"

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data.strip(b" "))


class ReadsCut(_Reader):
    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data[:_MOST_BYTES])


class LongLineEndsTheStream(_Reader):
    api = "responses"

    def _line(self, line: str) -> Delta | None:
        self._ended = self._ended or len(line) > _MOST_CHARACTERS
        return super()._line(line)


class BufferOverwritten(_Reader):
    api = "agui"

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = "".join(self._lines._partial)
        self._lines._partial = [rest[-_MOST_CHARACTERS:]]
        return delta


class CutLinesTwice(_Reader):
    api = "anthropic"

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = "".join(self._lines._partial)
        if rest.startswith("data:") and rest.endswith("}"):
            self._line(rest)
        return delta


_PARTIAL: list[str] = []

SHARED.append(_PARTIAL)


class SharesTheBuffer(_Reader):
    def __init__(self) -> None:
        super().__init__()
        self._lines._partial = _PARTIAL

    def feed(self, data: bytes) -> Delta | None:
        self._lines._partial = list(_PARTIAL)
        delta = super().feed(data)
        _PARTIAL[:] = self._lines._partial
        return delta
