"""How bytes become the events that an accumulator is fed: server-sent events, and what comes
in their place.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

A name in backquotes is that of the quirk that a rule comes from.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection

from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.checking.reference import REFERENCES
from mockllm.checking.reference.answer import Malformed, MissingId

__all__ = ["MAX_EVENT", "Lines", "ReferenceBytes"]

MAX_EVENT = 64 * 1024 * 1024
"""The most characters of one event (`sse-huge-event`): what is longer is an error, so that no
stream can fill the memory."""


class Lines:
    """Takes bytes, cut anywhere (`sse-chunk-boundaries`), and gives the lines that they complete.

    Only CR, LF and CRLF end a line, also a CRLF that is cut in two (`sse-crlf`,
    `agui-crlf`). Other characters
    that some take for line ends are text (`sse-unicode-line-separators`).
    """

    def __init__(self) -> None:
        # `sse-utf8-split`: the bytes of a character may come one by one.
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False
        self._after_cr = False
        self._partial: list[str] = []
        self.size = 0
        """How many characters of an unfinished line wait."""

    def feed(self, data: bytes) -> list[str]:
        """The lines that these bytes complete, without their ends."""
        text = self._utf8.decode(data)
        if not text:
            return []
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")  # `sse-bom`: one, at the very beginning
        if self._after_cr:
            text = text.removeprefix("\n")  # the other half of a CRLF
            self._after_cr = False
        self._after_cr = text.endswith("\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if lines:
            lines[0] = "".join(self._partial) + lines[0]
            self._partial, self.size = [], 0
        if rest:
            self._partial.append(rest)
            self.size += len(rest)
        return lines

    def rest(self) -> str:
        """What stands behind the last line end."""
        return "".join(self._partial) + self._utf8.decode(b"", final=True)


class ReferenceBytes:
    """Puts the bytes of one stream together (`ByteProbe`), whatever content type they had
    (`sse-content-type`).

    Args:
        api: the API that is spoken.
        tools, malformed, missing_id: as of the accumulators.
    """

    def __init__(
        self,
        api: str,
        *,
        tools: Collection[str] | None = None,
        malformed: Malformed = "error",
        missing_id: MissingId = "synthesise",
    ) -> None:
        self._api = api
        self._sum = REFERENCES[api](tools=tools, malformed=malformed, missing_id=missing_id)
        self._lines = Lines()
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._body: list[str] = []
        self._over = False

    def feed(self, data: bytes) -> Delta | None:
        """What these bytes add, of all events that they complete."""
        if self._over:
            return None
        deltas = [self._line(line) for line in self._lines.feed(data)]
        if self._size + self._lines.size > MAX_EVENT:
            self._fail(f"an event is longer than {MAX_EVENT} characters")
        return _joined([delta for delta in deltas if delta is not None])

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._sum.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return self._sum.pending()

    def close(self) -> None:
        """Nothing more comes: what is there without its line end or blank line is looked at."""
        rest = self._lines.rest()
        if rest:
            self._line(rest)
        if not self._over:
            self._last("\n".join(self._data))
            self._whole("\n".join(self._body))
        self._sum.close()

    # Lines

    def _line(self, line: str) -> Delta | None:
        if self._over:
            return None
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        # `sse-no-space`: it may be missing; `sse-trim`: one is no part of the value, a second is.
        value = value.removeprefix(" ")
        if name == "data":
            # `sse-multiline-data`: all of them are one value.
            self._data.append(value)
            self._size += len(value) + 1
        elif name == "event":
            self._event = value
        elif name not in ("", "id", "retry") and (self._body or line[0] in "{["):
            # No field of an event, but JSON: an answer that is not streamed, or an error in the
            # place of one or behind it (`err-json-200`, `gem-raw-error-lines`,
            # `gem-array-form`).
            self._body.append(line)
        # The rest says nothing here: comments, which have no name (`sse-comments`,
        # `sse-bare-colon`), and other fields (`sse-other-fields`, `sse-retry-field`).
        return None

    def _dispatch(self) -> Delta | None:
        """Hands on the event that a blank line ends."""
        data, event = "\n".join(self._data), self._event
        self._data, self._size, self._event = [], 0, ""
        # Without data there is no event, whatever else there was (`sse-id-then-comment`,
        # `sse-event-without-data`, `sse-empty-data`).
        if not data or self._is_sentinel(data):
            return None
        try:
            payload = json.loads(data)  # spaces in it say nothing (`anth-padded-json`)
        except (ValueError, RecursionError) as error:
            # `sse-malformed-json`, `sse-single-newline`, `sse-keepalive-as-data`: passing over
            # it would lose a part of the answer without a word.
            self._fail(f"the data of an event are no JSON ({error}): {data[:200]!r}")
            return None
        return self._sum.feed(payload, event or None)

    def _is_sentinel(self, data: str) -> bool:
        """Whether it is `[DONE]` (`sse-done-variants`). Chat is over with it, whatever follows
        (`chat-data-after-done`); elsewhere it says nothing (`anth-done-sentinel`,
        `resp-done-sentinel`, `gem-strict-framing`, `agui-done-sentinel`)."""
        if data.rstrip() != "[DONE]":
            return False
        self._over = self._api == "chat"
        return True

    def _fail(self, message: str) -> None:
        self._sum.fail(message)
        self._over = True

    # The end of the input

    def _last(self, data: str) -> None:
        """An event without its blank line: taken where it is whole (`sse-no-final-blank`), for
        then nothing of it is missing; otherwise the stream was cut inside of it (`sse-cut`)."""
        if not self._data or self._is_sentinel(data):
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            self._sum.fail(f"the stream was cut inside of an event: {data[:200]!r}", "truncated")
        else:
            self._sum.feed(payload, self._event or None)

    def _whole(self, body: str) -> None:
        """JSON without events around it; each element of an array counts as an event. If it is
        cut, it says nothing, and so the stream has no end."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return
        for payload in value if isinstance(value, list) else [value]:
            self._sum.feed(payload)


def _joined(deltas: list[Delta]) -> Delta | None:
    """Several deltas as one."""
    if not deltas:
        return None
    calls: tuple[Call, ...] = tuple(call for delta in deltas for call in delta.tool_calls)
    text = "".join(delta.text for delta in deltas)
    return Delta(text, "".join(delta.reasoning for delta in deltas), calls)
