"""Mistakes with the events that lines become, and with end markers, in all APIs."""

from __future__ import annotations

import json
from typing import Any

from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.probes import Delta


class Reader(ReferenceBytes):
    """The correct reader of an API."""

    api = "chat"

    def __init__(self) -> None:
        super().__init__(self.api)


# Fields


class ColonAndSpaceSplit(Reader):
    def _line(self, line: str) -> Delta | None:
        if line:
            _name, _value = line.split(": ", 1)
        return super()._line(line)


class DataWithSpaceOnly(Reader):
    api = "anthropic"

    def _line(self, line: str) -> Delta | None:
        return None if line.startswith("data:") and line[5:6] != " " else super()._line(line)


class UnknownFieldRaises(Reader):
    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if line and not line.startswith(("data:", "{", "}", "[", "]", " ", '"', ",")):
            raise ValueError(f"invalid line {line[:40]!r}")
        return super()._line(line)


class CommentsAreJson(Reader):
    api = "responses"

    def _line(self, line: str) -> Delta | None:
        if line.startswith(":") and line.strip(": "):
            json.loads(line)
        return super()._line(line)


class BlockBeginsWithData(Reader):
    def _line(self, line: str) -> Delta | None:
        first = self.__dict__.get("first", True)
        self.__dict__["first"] = not line
        if line and first:
            self.__dict__["read"] = line.startswith(("data", "{", "["))
        return super()._line(line) if self.__dict__.get("read") or not line else None


class EventNameStays(Reader):
    def _dispatch(self) -> Delta | None:
        name = self._event
        if name not in ("", "message", "error"):
            self._data.clear()
        delta = super()._dispatch()
        self._event = name
        return delta


class RetryIsANumberOfSeconds(Reader):
    api = "agui"

    def _line(self, line: str) -> Delta | None:
        self._ended = self._ended or line.startswith("retry:")
        return super()._line(line)


# Events


class CommentEndsTheEvent(Reader):
    api = "anthropic"

    def _line(self, line: str) -> Delta | None:
        return self._dispatch() if line.startswith(":") else super()._line(line)


class EmptyDataIsTheEnd(Reader):
    def _dispatch(self) -> Delta | None:
        self._ended = self._ended or self._data == [""]
        return super()._dispatch()


class EmptyDataAreJson(Reader):
    api = "responses"

    def _dispatch(self) -> Delta | None:
        if self._data and not "".join(self._data):
            json.loads("")
        return super()._dispatch()


class CommentAndBlankMakeAnEvent(Reader):
    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if line.startswith(":"):
            self.__dict__["seen"] = True
        elif not line and self.__dict__.pop("seen", False) and not self._data:
            json.loads("")
        return super()._line(line)


class BrokenDataWait(Reader):
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


class BrokenEventSkipped(Reader):
    api = "anthropic"

    def _fail(self, message: str) -> None:
        self.__dict__["skipped"] = message


class LastEventDiscarded(Reader):
    def close(self) -> None:
        self._data.clear()
        self._lines._partial = []
        super().close()


class LastLineDiscarded(Reader):
    api = "gemini"

    def close(self) -> None:
        self._lines._partial = []
        super().close()


class PlainErrorIgnored(Reader):
    def _plain_body(self, body: str) -> None:
        pass


class RawErrorLinesIgnored(Reader):
    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        return super()._line(line) if line.startswith(("data", ":", "event")) or not line else None


class LargeNumbersRounded(Reader):
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


class LastDeltaOfARead(Reader):
    def feed(self, data: bytes) -> Delta | None:
        if self._ended:
            return None
        deltas = [self._line(line) for line in self._lines.feed(data)]
        return next((delta for delta in reversed(deltas) if delta is not None), None)


class DoneAnywhere(Reader):
    def _is_sentinel(self, data: str) -> bool:
        self._ended = self._ended or "[DONE]" in data
        return super()._is_sentinel(data)


class DataAnywhere(Reader):
    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if not line.startswith("data: "):
            return super()._line(line)
        for part in line.split("data: ")[1:]:
            super()._line(f"data: {part}")
        return None


class DoneRequired(Reader):
    def close(self) -> None:
        if not self._ended:
            self._fail("the stream ended without [DONE]")
        super().close()


class DoneIsEnough(Reader):
    def close(self) -> None:
        answer = self._accumulator._answer
        answer.complete = answer.complete or self._ended
        super().close()


class DoneIsJson(Reader):
    def _is_sentinel(self, data: str) -> bool:
        return False


class DoneWithoutSpaceUnknown(Reader):
    def _line(self, line: str) -> Delta | None:
        return super()._line("data: 0 [DONE]" if line == "data:[DONE]" else line)


class DoneIsJsonElsewhere(Reader):
    api = "responses"

    def _is_sentinel(self, data: str) -> bool:
        if data == "[DONE]":
            json.loads(data)
        return super()._is_sentinel(data)


class CutEventCompleted(Reader):
    def _unterminated_event(self, data: str) -> None:
        for end in ("", '"', '"}}]}', "}}]}", "}]}", "]}", "}"):
            try:
                payload = json.loads(data + end) if data else {}
            except ValueError:
                continue
            self._accumulator.feed(payload)
        self._accumulator._answer.complete = True


class CutIsComplete(Reader):
    api = "agui"

    def close(self) -> None:
        self._accumulator._answer.complete = True
        super().close()


# Reads and lines


class PairsOnly(Reader):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def feed(self, data: bytes) -> Delta | None:
        *lines, self.text = (self.text + self._lines._utf8.decode(data)).split("\r\n")
        for line in lines:
            self._line(line.removeprefix("\ufeff"))
        return None


class SixCharactersCut(Reader):
    api = "anthropic"

    def _line(self, line: str) -> Delta | None:
        data = line.startswith("data:")
        return super()._line(f"data: {line[6:]}" if data else line)


class IdIsANumber(Reader):
    api = "agui"

    def _line(self, line: str) -> Delta | None:
        if line.startswith("id:"):
            int(line[3:])
        return super()._line(line)


class FirstReadLost(Reader):
    api = "responses"

    def feed(self, data: bytes) -> Delta | None:
        first = not self.__dict__.get("begun")
        self.__dict__["begun"] = True
        return None if first else super().feed(data)


class NamedEventsIgnored(Reader):
    api = "gemini"

    def _dispatch(self) -> Delta | None:
        if self._event:
            self._data.clear()
        return super()._dispatch()


class EventLineIsTheType(Reader):
    api = "responses"

    def _dispatch(self) -> Delta | None:
        if not self._event:
            self._data.clear()
        return super()._dispatch()


class NextDataEndsTheEvent(Reader):
    def _line(self, line: str) -> Delta | None:
        if line.startswith("data:") and self._data:
            self._dispatch()
        return super()._line(line)


class ArrayUnknown(Reader):
    api = "gemini"

    def _plain_body(self, body: str) -> None:
        if not body.lstrip().startswith("["):
            super()._plain_body(body)


class CohereNameStays(Reader):
    api = "cohere"

    def _dispatch(self) -> Delta | None:
        name = self._event
        data = "\n".join(self._data)
        if data.startswith("{") and name and f'"{name}"' not in data:
            self._data.clear()
        delta = super()._dispatch()
        self._event = name
        return delta


class ReadsBehindDone(Reader):
    api = "completions"

    def _is_sentinel(self, data: str) -> bool:
        return data.strip() == "[DONE]"
