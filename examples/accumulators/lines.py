"""How to turn the bytes of a stream into events for an accumulator.

Most bytes are server-sent events; those of AWS are in `frames`:
https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
Ollama sends a JSON object a line (https://github.com/ndjson/ndjson-spec). Some servers send plain
JSON instead, such as an error. A name in backquotes is the quirk that a
rule is there for; `mockllm list quirks NAME` shows it.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Collection, Iterator

from examples.accumulators import REFERENCES
from examples.accumulators.answer import Malformed, MissingId
from examples.accumulators.frames import BrokenFrameError, Frames
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.wire.protocols import PROTOCOLS

__all__ = ["MAX_EVENT", "Lines", "ReferenceBytes"]

MAX_EVENT = 64 * 1024 * 1024
"""The most characters of one event. A longer one is an error, so that no stream can fill the
memory; a much lower bound would refuse valid streams (`sse-huge-event`)."""


class Lines:
    """Splits bytes into lines; the bytes may be cut anywhere (`sse-chunk-boundaries`).

    Only CR, LF and CRLF end a line, also a CRLF that is cut in two (`sse-crlf`, `agui-crlf`).
    Others, such as U+2028, are text, although `str.splitlines` splits there
    (`sse-unicode-line-separators`).
    """

    def __init__(self) -> None:
        # A character may be cut between its bytes (`sse-utf8-split`).
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._started = False
        self._after_cr = False
        self._partial: list[str] = []
        self.size = 0
        """The length of the unfinished line, in characters."""

    def feed(self, data: bytes) -> list[str]:
        """The lines that these bytes complete, without their ends."""
        text = self._utf8.decode(data)
        if not text:
            return []
        if not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")  # one, at the very beginning (`sse-bom`)
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
        """The text after the last line end."""
        return "".join(self._partial) + self._utf8.decode(b"", final=True)


class ReferenceBytes:
    """Puts the bytes of one stream together (a `ByteProbe`).

    The content type of the answer is not needed, since it may be wrong (`sse-content-type`).

    Args:
        api: the name of the API.
        tools, malformed, missing_id: see the accumulators.
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
        self._accumulator = REFERENCES[api](tools=tools, malformed=malformed, missing_id=missing_id)
        self._lines = Lines()
        self._json_lines = PROTOCOLS[api].usual.name == "ndjson"
        self._frames = Frames() if PROTOCOLS[api].usual.name == "eventstream" else None
        self._event = ""
        self._data: list[str] = []
        self._size = 0
        self._body: list[str] = []
        self._ended = False

    def feed(self, data: bytes) -> Delta | None:
        """What these bytes add: the sum over all events that they complete."""
        if self._ended:
            return None
        if self._frames is not None:
            return _join(list(self._binary(self._frames, data)))
        deltas = [self._line(line) for line in self._lines.feed(data)]
        if self._size + self._lines.size > MAX_EVENT:
            self._fail(f"an event is longer than {MAX_EVENT} characters")
        return _join([delta for delta in deltas if delta is not None])

    def outcome(self) -> Outcome:
        """The answer so far."""
        return self._accumulator.outcome()

    def pending(self) -> int:
        """How many calls have begun and not surfaced."""
        return self._accumulator.pending()

    def close(self) -> None:
        """Ends the input. An unfinished line or event may still be complete; a frame is not."""
        if self._frames is not None and self._frames.rest and not self._ended:
            # HTTP may end properly there (`bedrock-truncated-frame`).
            self._accumulator.fail("the stream was cut inside of a frame", "truncated")
        rest = self._lines.rest()
        if rest and self._json_lines:
            self._data = [rest]
        elif rest:
            self._line(rest)
        if not self._ended:
            self._unterminated_event("\n".join(self._data))
            self._plain_body("\n".join(self._body))
        self._accumulator.close()

    def _binary(self, frames: Frames, data: bytes) -> Iterator[Delta]:
        """What the frames add that these bytes complete."""
        try:
            for payload in frames.feed(data):
                delta = self._accumulator.feed(payload)
                if delta is not None:
                    yield delta
        except BrokenFrameError as error:
            # What was read before it counts (`bedrock-wrong-checksum`).
            self._fail(str(error))

    # Lines

    def _line(self, line: str) -> Delta | None:
        if self._ended:
            return None
        if self._json_lines:
            # Proxies put blank lines between objects (`ollama-blank-lines`), or end lines in CRLF
            # (`ollama-line-ends`). U+2028 ends none (`ollama-line-separators`).
            self._data = [line.strip()]
            return self._dispatch()
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        # At most one space after the colon is not part of the value (`sse-no-space`, `sse-trim`).
        value = value.removeprefix(" ")
        if name == "data":
            # Several data lines are one value (`sse-multiline-data`).
            self._data.append(value)
            self._size += len(value) + 1
        elif name == "event":
            self._event = value
        elif name not in ("", "id", "retry") and (self._body or line[0] in "{["):
            # JSON without `data:` is an answer that is not streamed, or an error, alone or after
            # events (`err-json-200`, `gem-raw-error-lines`, `gem-array-form`).
            self._body.append(line)
        # Comments have an empty name (`sse-comments`, `sse-bare-colon`). They are ignored, as are
        # other fields (`sse-other-fields`, `sse-retry-field`).
        return None

    def _dispatch(self) -> Delta | None:
        """Feeds the event that a blank line ends."""
        data, event = "\n".join(self._data), self._event
        self._data, self._size, self._event = [], 0, ""
        # A block without data is not an event (`sse-id-then-comment`, `sse-event-without-data`,
        # `sse-empty-data`).
        if not data or self._is_sentinel(data):
            return None
        try:
            payload = json.loads(data)  # also with whitespace around it (`anth-padded-json`)
        except (ValueError, RecursionError) as error:
            # To ignore it would lose a part of the answer silently (`sse-malformed-json`,
            # `sse-single-newline`, `sse-keepalive-as-data`).
            self._fail(f"the data of an event are no JSON ({error}): {data[:200]!r}")
            return None
        return self._accumulator.feed(payload, event or None)

    def _is_sentinel(self, data: str) -> bool:
        """Whether the data are the end marker of the API or `[DONE]`, also with spaces after it
        (`sse-done-variants`).

        After the API's own end marker everything is ignored (`chat-data-after-done`). In other
        APIs `[DONE]` has no meaning, and proxies add it (`anth-done-sentinel`,
        `resp-done-sentinel`, `gem-strict-framing`, `agui-done-sentinel`).
        """
        marker = data.rstrip()
        self._ended = self._ended or marker == PROTOCOLS[self._api].end_data
        return self._ended or marker == "[DONE]"

    def _fail(self, message: str) -> None:
        self._accumulator.fail(message)
        self._ended = True

    # The end of the input

    def _unterminated_event(self, data: str) -> None:
        """Feeds an event without its blank line, if its JSON is complete (`sse-no-final-blank`).
        Otherwise the stream was cut inside the event (`sse-cut`)."""
        if not self._data or self._is_sentinel(data):
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            self._accumulator.fail(
                f"the stream was cut inside of an event: {data[:200]!r}", "truncated"
            )
        else:
            self._accumulator.feed(payload, self._event or None)

    def _plain_body(self, body: str) -> None:
        """Feeds JSON that is not in events: an object, or each element of an array.

        Incomplete JSON is ignored, so that the stream has no end and counts as cut.
        """
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return
        for payload in value if isinstance(value, list) else [value]:
            self._accumulator.feed(payload)


def _join(deltas: list[Delta]) -> Delta | None:
    """Several deltas as one."""
    if not deltas:
        return None
    calls: tuple[Call, ...] = tuple(call for delta in deltas for call in delta.tool_calls)
    fragments = tuple(fragment for delta in deltas for fragment in delta.tool)
    text = "".join(delta.text for delta in deltas)
    return Delta(text, "".join(delta.reasoning for delta in deltas), calls, fragments)
