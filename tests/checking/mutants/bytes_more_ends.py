"""Bytes: more mistakes with end markers and with streams that are cut, for all APIs."""

from __future__ import annotations

import json

from mockllm.checking.probes import Delta
from tests.checking.mutants.bytes_more_events import Reader
from tests.checking.mutants.declared import mutant


@mutant("text-accumulates", api="chat", level="bytes", family="end marker")
class DoneAnywhere(Reader):
    """Ends the stream at data with `[DONE]` in them (smg-project/smg#1878)."""

    def _is_sentinel(self, data: str) -> bool:
        self._ended = self._ended or "[DONE]" in data
        return super()._is_sentinel(data)


@mutant("text-accumulates", api="gemini", level="bytes", family="end marker")
class DataAnywhere(Reader):
    """Splits events at `data: `, wherever it stands."""

    api = "gemini"

    def _line(self, line: str) -> Delta | None:
        if not line.startswith("data: "):
            return super()._line(line)
        for part in line.split("data: ")[1:]:
            super()._line(f"data: {part}")
        return None


@mutant("finish-and-usage", api="chat", level="bytes", family="end marker")
class DoneRequired(Reader):
    """Reports a stream without `[DONE]` as cut, although it has a finish reason
    (theopenco/llmgateway#1901; `chat-no-done`)."""

    def close(self) -> None:
        if not self._ended:
            self._fail("the stream ended without [DONE]")
        super().close()


@mutant("truncated-is-not-complete", api="chat", level="bytes", family="end marker")
class DoneIsEnough(Reader):
    """Treats a stream with `[DONE]` as complete, although it has no finish reason
    (can1357/oh-my-pi#9433; `chat-finish-never:done`)."""

    def close(self) -> None:
        answer = self._accumulator._answer
        answer.complete = answer.complete or self._ended
        super().close()


@mutant("finish-and-usage", api="chat", level="bytes", family="end marker")
class DoneIsJson(Reader):
    """Reports `[DONE]` as broken JSON (0xPlaygrounds/rig#613)."""

    def _is_sentinel(self, data: str) -> bool:
        return False


@mutant("finish-and-usage", api="chat", level="bytes", family="end marker")
class DoneWithoutSpaceUnknown(Reader):
    """Reads `data: [DONE]` and not `data:[DONE]` (continuedev/continue#5580;
    `sse-done-variants:no-space`)."""

    def _line(self, line: str) -> Delta | None:
        return super()._line("data: 0 [DONE]" if line == "data:[DONE]" else line)


@mutant("unknown-event", api="responses", level="bytes", family="end marker")
class DoneIsJsonElsewhere(Reader):
    """Parses `[DONE]` as JSON, which proxies add to other APIs (caozhiyuan/copilot-api#209;
    `resp-done-sentinel`)."""

    api = "responses"

    def _is_sentinel(self, data: str) -> bool:
        if data == "[DONE]":
            json.loads(data)
        return super()._is_sentinel(data)


@mutant("truncated-is-not-complete", api="chat", level="bytes", family="cut streams")
class CutEventCompleted(Reader):
    """Closes the JSON of an event that is cut, and handles it (`sse-cut`)."""

    def _unterminated_event(self, data: str) -> None:
        for end in ("", '"', '"}}]}', "}}]}", "}]}", "]}", "}"):
            try:
                payload = json.loads(data + end) if data else {}
            except ValueError:
                continue
            self._accumulator.feed(payload)
        self._accumulator._answer.complete = True


@mutant("truncated-is-not-complete", api="agui", level="bytes", family="cut streams")
class CutIsComplete(Reader):
    """Treats the end of the input as the end of the run (`sse-cut`)."""

    api = "agui"

    def close(self) -> None:
        self._accumulator._answer.complete = True
        super().close()
