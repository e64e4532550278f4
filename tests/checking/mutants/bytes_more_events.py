"""Bytes: more mistakes with fields and events, for all APIs."""

from __future__ import annotations

import json
from typing import Any

from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.probes import Delta
from tests.checking.mutants.declared import WATCHED, mutant


class Reader(ReferenceBytes):
    """The correct reader of an API."""

    api = "chat"

    def __init__(self) -> None:
        super().__init__(self.api)


# Fields


@mutant("chunking-free", "unknown-event", api="chat", level="bytes", family="fields")
class ColonAndSpaceSplit(Reader):
    """Splits each line at a colon with a space, and raises where there is none
    (openai/openai-python#559, coder/coder#28185; `sse-no-space`, `sse-bare-colon`)."""

    def _line(self, line: str) -> Delta | None:
        if line:
            _name, _value = line.split(": ", 1)
        return super()._line(line)


@mutant("chunking-free", api="anthropic", level="bytes", family="fields")
class DataWithSpaceOnly(Reader):
    """Reads `data: ` and ignores `data:` without a space (nullclaw/nullclaw#509,
    tashfeenahmed/freellmapi#1087, odysseus-dev/odysseus#1701; `sse-no-space`)."""

    api = "anthropic"

    def _line(self, line: str) -> Delta | None:
        return None if line.startswith("data:") and line[5:6] != " " else super()._line(line)


@mutant("unknown-event", api="gemini", level="bytes", family="fields")
class UnknownFieldRaises(Reader):
    """Raises on a line that is no `data` field (googleapis/go-genai#903; `sse-other-fields`,
    `gem-strict-framing`)."""

    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if line and not line.startswith(("data:", "{", "}", "[", "]", " ", '"', ",")):
            raise ValueError(f"invalid line {line[:40]!r}")
        return super()._line(line)


@mutant("unknown-event", api="responses", level="bytes", family="fields")
class CommentsAreJson(Reader):
    """Parses each line that is no field as JSON, comments included (deepnoodle-ai/dive#206,
    justlovemaki/AIClient2API#695, docker/docker-agent#2349; `sse-comments`)."""

    api = "responses"

    def _line(self, line: str) -> Delta | None:
        if line.startswith(":") and line.strip(": "):
            json.loads(line)
        return super()._line(line)


# An error may have an event line, too.
@mutant("unknown-event", "error-ends", api="chat", level="bytes", family="fields")
class BlockBeginsWithData(Reader):
    """Reads only events whose first line is `data` (`sse-other-fields`, `sse-id-then-comment`)."""

    def _line(self, line: str) -> Delta | None:
        first = self.__dict__.get("first", True)
        self.__dict__["first"] = not line
        if line and first:
            self.__dict__["read"] = line.startswith(("data", "{", "["))
        return super()._line(line) if self.__dict__.get("read") or not line else None


@mutant("unknown-event", api="chat", level="bytes", family="fields")
class EventNameStays(Reader):
    """Keeps the name of an event for the events that follow, and ignores named ones
    (`sse-event-without-data`)."""

    def _dispatch(self) -> Delta | None:
        name = self._event
        if name not in ("", "message", "error"):
            self._data.clear()
        delta = super()._dispatch()
        self._event = name
        return delta


@mutant("unknown-event", api="agui", level="bytes", family="fields")
class RetryIsANumberOfSeconds(Reader):
    """Ends the stream at a reconnection time, to connect again (`sse-retry-field`)."""

    api = "agui"

    def _line(self, line: str) -> Delta | None:
        self._ended = self._ended or line.startswith("retry:")
        return super()._line(line)


# Events


@mutant("unknown-event", api="anthropic", level="bytes", family="events")
class CommentEndsTheEvent(Reader):
    """Dispatches the event at a comment line, and loses the data after it; a comment may stand
    inside of an event."""

    api = "anthropic"

    def _line(self, line: str) -> Delta | None:
        return self._dispatch() if line.startswith(":") else super()._line(line)


@mutant("unknown-event", api="chat", level="bytes", family="events")
class EmptyDataIsTheEnd(Reader):
    """Ends the stream at an event whose data are empty (`sse-empty-data`)."""

    def _dispatch(self) -> Delta | None:
        self._ended = self._ended or self._data == [""]
        return super()._dispatch()


@mutant("unknown-event", api="responses", level="bytes", family="events")
class EmptyDataAreJson(Reader):
    """Parses empty data as JSON (caozhiyuan/copilot-api#88, netease-lcap/wave-agent#1326,
    openai/openai-python#2722; `sse-empty-data`)."""

    api = "responses"

    def _dispatch(self) -> Delta | None:
        if self._data and not "".join(self._data):
            json.loads("")
        return super()._dispatch()


@mutant("unknown-event", api="gemini", level="bytes", family="events")
class CommentAndBlankMakeAnEvent(Reader):
    """Dispatches an event at the blank line after a comment (theopenco/llmgateway#2334)."""

    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if line.startswith(":"):
            self.__dict__["seen"] = True
        elif not line and self.__dict__.pop("seen", False) and not self._data:
            json.loads("")
        return super()._line(line)


@mutant("error-ends", api="chat", level="bytes", family="events")
class BrokenDataWait(Reader):
    """Keeps data that do not parse, and appends the next event to them (`sse-malformed-json`)."""

    def _dispatch(self) -> Delta | None:
        kept = self.__dict__.pop("kept", "") + "\n".join(self._data)
        try:
            json.loads(kept or "0")
        except ValueError:
            if not self._is_sentinel(kept):
                self.__dict__["kept"], self._data = kept, []
                return None
        self._data = [kept] if kept else []
        return super()._dispatch()


@mutant("error-ends", api="anthropic", level="bytes", family="events")
class BrokenEventSkipped(Reader):
    """Skips an event whose data do not parse (`sse-malformed-json`)."""

    api = "anthropic"

    def _fail(self, message: str) -> None:
        self.__dict__["skipped"] = message


@mutant("finish-and-usage", api="chat", level="bytes", family="events")
class LastEventDiscarded(Reader):
    """Discards an event without its blank line at the end (openai/openai-node#2725,
    google-gemini/gemini-cli#29059, agentjido/req_llm#462; `sse-no-final-blank`)."""

    def close(self) -> None:
        self._data.clear()
        self._lines._partial = []
        super().close()


@mutant("finish-and-usage", api="gemini", level="bytes", family="events")
class LastLineDiscarded(Reader):
    """Discards a last line without a line end (nansen-ai/nansen-cli#618, devlawey/filar#50)."""

    api = "gemini"

    def close(self) -> None:
        self._lines._partial = []
        super().close()


@mutant("error-ends", api="chat", level="bytes", family="errors")
class PlainErrorIgnored(Reader):
    """Ignores an error that is sent as plain JSON with status 200 (`err-json-200`)."""

    def _plain_body(self, body: str) -> None:
        pass


@mutant("error-ends", api="gemini", level="bytes", family="errors")
class RawErrorLinesIgnored(Reader):
    """Ignores lines without `data:`, errors included (`gem-raw-error-lines`, `err-json-200`)."""

    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        return super()._line(line) if line.startswith(("data", ":", "event")) or not line else None


@mutant("arguments-concatenate", api="gemini", level="bytes", family="argument values")
class LargeNumbersRounded(Reader):
    """Parses integers as floating-point numbers, which loses digits above 2**53
    (earendil-works/pi#8943)."""

    api = "gemini"

    def _dispatch(self) -> Delta | None:
        try:
            value = json.loads("\n".join(self._data), parse_int=_rounded)
        except ValueError:
            return super()._dispatch()
        self._data = [json.dumps(value)]
        return super()._dispatch()


def _rounded(digits: str) -> Any:
    return int(float(digits))


@mutant("delta-first", api="chat", level="bytes", policy=WATCHED, family="deltas")
class LastDeltaOfARead(Reader):
    """Passes on what the last event of a read adds alone (`sse-chunk-boundaries`)."""

    def feed(self, data: bytes) -> Delta | None:
        if self._ended:
            return None
        deltas = [self._line(line) for line in self._lines.feed(data)]
        return next((delta for delta in reversed(deltas) if delta is not None), None)
