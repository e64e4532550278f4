"""Bytes: more mistakes with ends of lines, characters and reads, for all APIs."""

from __future__ import annotations

import re

from examples.accumulators.lines import Lines, ReferenceBytes
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import SHARED, mutant

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


@mutant("chunking-free", api="chat", level="bytes", family="line ends")
class LineFeedsOnly(_Reader):
    """Splits at LF alone, so that the blank line of a CRLF stream is not blank
    (hey-api/hey-api#3054, miruamel/xuan#194, inngest/inngest-js#1714; `sse-crlf`)."""

    lines = _LineFeeds


@mutant("chunking-free", api="anthropic", level="bytes", family="line ends")
class LoneReturnsUnknown(_Reader):
    """Splits at CRLF and LF, and not at CR (a2aproject/a2a-js#714, EdamAme-x/pentect#1438;
    `sse-crlf:cr`)."""

    api, lines = "anthropic", _NoLoneReturns


@mutant("chunking-free", api="responses", level="bytes", family="line ends")
class ReturnAndFeedAreTwoEnds(_Reader):
    """Splits at CR and at LF, so that each CRLF ends an empty line as well
    (whatwg/html#4411, zhu1090093659/deepseek-pp#471; `sse-crlf`)."""

    api, lines = "responses", _ReturnsAndFeeds


class _SplitPairs(Lines):
    def feed(self, data: bytes) -> list[str]:
        self._after_cr = False
        return super().feed(data)


@mutant("chunking-free", api="chat", level="bytes", family="line ends")
class PairCutByARead(_Reader):
    """Reads a CRLF that is cut by a read as two line ends (praxis-proxy/praxis#739,
    assistant-ui/assistant-ui#4819; `sse-crlf:split`)."""

    lines = _SplitPairs


class _WaitingReturns(Lines):
    def feed(self, data: bytes) -> list[str]:
        kept = self.__dict__.pop("kept", b"") + data
        ends = len(kept) - len(kept.rstrip(b"\r"))
        if ends:
            self.__dict__["kept"] = kept[-ends:]
        return super().feed(kept[: len(kept) - ends])


@mutant("finish-and-usage", api="chat", level="bytes", family="line ends")
class LastReturnWaits(_Reader):
    """Waits for the byte after a CR, and loses the last line end of a stream
    (universal-tool-calling-protocol/typescript-utcp#45; `sse-crlf:cr`)."""

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


@mutant("chunking-free", api="gemini", level="bytes", family="line ends")
class MixedEndsUnknown(_PairedEnds):
    """Ends an event at two equal line ends alone (openai/openai-node#2309; `sse-crlf:mixed`)."""


# Characters


class _Latin(Lines):
    def feed(self, data: bytes) -> list[str]:
        return super().feed(data.decode("latin-1").encode())


@mutant("text-accumulates", api="chat", level="bytes", family="characters")
class LatinBytes(_Reader):
    """Decodes bytes as Latin-1, the charset that HTTP had for text without one.

    Characters broken between reads: api7/aisix#111, musistudio/claude-code-router#1672,
    agentclientprotocol/python-sdk#135, jawah/urllib3.future#349.
    """

    lines = _Latin


class _IgnoresBytes:
    """Drops the bytes of each read that are no whole character."""

    def decode(self, data: bytes, final: bool = False) -> str:
        return data.decode(errors="ignore")


@mutant("chunking-free", api="responses", level="bytes", family="characters")
class CutCharactersLost(_Reader):
    """Drops a character that is cut by a read (braintrustdata/braintrust-sdk-javascript#2091;
    `sse-utf8-split`)."""

    api = "responses"

    def __init__(self) -> None:
        super().__init__()
        self._lines._utf8 = _IgnoresBytes()  # type: ignore[assignment]


class _MarkInOneRead(Lines):
    def feed(self, data: bytes) -> list[str]:
        if not self._started:
            self._started, data = True, data.removeprefix(_BOM.encode())
        return super().feed(data)


@mutant("chunking-free", api="chat", level="bytes", family="characters")
class MarkInOneRead(_Reader):
    """Removes a byte order mark only if one read has all of it (elizaOS/eliza#19260,
    vm0-ai/vm0#24687, openai/openai-python#3819; `sse-bom`)."""

    lines = _MarkInOneRead


class _NoMarks(Lines):
    def feed(self, data: bytes) -> list[str]:
        return [line.replace(_BOM, "") for line in super().feed(data)]


@mutant("text-accumulates", api="chat", level="bytes", family="characters")
class MarksRemovedEverywhere(_Reader):
    """Removes U+FEFF from the whole stream, and not from its beginning alone
    (a2aproject/a2a-python#1259)."""

    lines = _NoMarks


class _Unescaped(Lines):
    def feed(self, data: bytes) -> list[str]:
        return [line.replace("\\n", " ").replace("\\t", " ") for line in super().feed(data)]


@mutant("text-accumulates", api="anthropic", level="bytes", family="characters")
class EscapesReplaced(_Reader):
    """Replaces escaped line ends before it parses the JSON."""

    api, lines = "anthropic", _Unescaped


# Reads


@mutant("chunking-free", api="chat", level="bytes", family="buffers")
class CutLinesLost(_Reader):
    """Drops a line that is cut by a read (lobehub/lobehub#18640, pickle-com/glass#228,
    graniet/llm#90; `sse-chunk-boundaries`)."""

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        self._lines._partial = []
        return delta


@mutant("chunking-free", api="responses", level="bytes", family="buffers")
class OneEventARead(_Reader):
    """Handles one event of each read; the others wait for the next reads, or are lost
    (`sse-chunk-boundaries`)."""

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


@mutant("chunking-free", api="gemini", level="bytes", family="buffers")
class ReadsTrimmed(_Reader):
    """Trims every read (hydall/Glaze#247)."""

    api = "gemini"

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data.strip(b" "))


@mutant("chunking-free", api="chat", level="bytes", family="buffers")
class ReadsCut(_Reader):
    """Handles the first 4096 bytes of each read (`sse-huge-event`)."""

    def feed(self, data: bytes) -> Delta | None:
        return super().feed(data[:_MOST_BYTES])


@mutant("chunking-free", api="responses", level="bytes", family="buffers")
class LongLineEndsTheStream(_Reader):
    """Stops reading at a line of more than 64 KiB (openai/openai-go#368, infiniflow/ragflow#15381,
    mark3labs/mcp-go#61, cloudwego/hertz#1441; `sse-huge-event`)."""

    api = "responses"

    def _line(self, line: str) -> Delta | None:
        self._ended = self._ended or len(line) > _MOST_CHARACTERS
        return super()._line(line)


@mutant("chunking-free", api="agui", level="bytes", family="buffers")
class BufferOverwritten(_Reader):
    """Keeps the last 64 KiB of an unfinished line (`sse-huge-event`)."""

    api = "agui"

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = "".join(self._lines._partial)
        self._lines._partial = [rest[-_MOST_CHARACTERS:]]
        return delta


@mutant("chunking-free", api="anthropic", level="bytes", family="buffers")
class CutLinesTwice(_Reader):
    """Handles a line that is cut by a read, and once more when it is whole
    (`sse-chunk-boundaries`)."""

    api = "anthropic"

    def feed(self, data: bytes) -> Delta | None:
        delta = super().feed(data)
        rest = "".join(self._lines._partial)
        if rest.startswith("data:") and rest.endswith("}"):
            self._line(rest)
        return delta


_PARTIAL: list[str] = []
SHARED.append(_PARTIAL)


@mutant("stage-empties", api="chat", level="bytes", family="shared state")
class SharesTheBuffer(_Reader):
    """Keeps the unfinished line in one buffer for all streams."""

    def __init__(self) -> None:
        super().__init__()
        self._lines._partial = _PARTIAL

    def feed(self, data: bytes) -> Delta | None:
        self._lines._partial = list(_PARTIAL)
        delta = super().feed(data)
        _PARTIAL[:] = self._lines._partial
        return delta
