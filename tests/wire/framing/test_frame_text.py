"""Frames of AWS as text that people read: in `show`, on the live page and in reports."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.checking.cases.build import case
from mockllm.checking.reports.stream_text import format_stream
from mockllm.conformance.results import Stream
from mockllm.conformance.site.case_views import bytes_view
from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.play.quirks.samples import TEXT
from mockllm.play.replay.compilation.http_answer import bytes_answer
from mockllm.serve.ui.shown_answers import made_answer, stream_json
from mockllm.wire.framing.eventstream import EVENTSTREAM, encode, message
from mockllm.wire.framing.frame_text import readable
from mockllm.wire.protocols import PROTOCOLS
from tests.carried import CARRIED
from tests.cases import for_all

DELTA = encode(Frame('{"delta":{"text":"é"}}', "contentBlockDelta"))
LINE = 'event contentBlockDelta {"delta":{"text":"é"}}\n'
EVENT = '{"type":"ping"}'
CHUNK = json.dumps({"bytes": base64.b64encode(EVENT.encode()).decode(), "p": "ab"})


def shown(*writes: bytes) -> list[str]:
    return [text.decode() for text in readable(writes)]


def test_a_frame_is_a_line_with_its_kind_its_name_and_its_payload() -> None:
    """Also an exception, an error, a frame without a name; base64 is decoded below."""
    frames = [
        DELTA,
        encode(Frame('{"message":"slow"}', "throttlingException", kind="exception")),
        encode(Frame("it broke", "500", kind="error")),
        message([], b"{}"),
        encode(Frame(CHUNK, "chunk")),
    ]
    assert shown(*frames) == [
        LINE,
        'exception throttlingException {"message":"slow"}\n',
        "error 500 it broke\n",
        "event (no name) {}\n",
        f"event chunk {CHUNK}\n  {EVENT}\n",
    ]
    assert shown(b"".join(frames)) == ["".join(shown(*frames))]


@given(st.lists(st.integers(0, 3 * len(DELTA)), max_size=6))
def test_a_frame_is_shown_in_the_write_that_ends_it(cuts: list[int]) -> None:
    """As many texts as writes; what is not whole says how much has come."""
    data = DELTA * 3
    ends = sorted({*cuts, len(data)})
    writes = [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    texts = shown(*writes)
    assert len(texts) == len(writes)
    end = 0
    for write, text in zip(writes, texts, strict=True):
        whole = (end + len(write)) // len(DELTA) - end // len(DELTA)
        end += len(write)
        rest = end % len(DELTA)
        assert text.count(LINE) == whole
        of = f" of {len(DELTA)}" if rest >= 12 else ""
        assert text.replace(LINE, "") == (f"… {rest}{of} bytes of a frame\n" if rest else "")


def test_what_is_broken_is_said_and_the_rest_is_shown_as_bytes() -> None:
    wrong = DELTA[:-1] + bytes([DELTA[-1] ^ 1])
    (line,) = shown(wrong)
    assert line.startswith("! the checksum of the frame is ")
    assert line.endswith('{"delta":{"text":"é"}}\n')
    texts = list(readable([DELTA + b"<html>no frame</html>", b"<p>more"]))
    assert texts[0].startswith(f"{LINE}! byte {len(DELTA)} begins no frame".encode())
    assert texts[0].endswith(b"<html>no frame</html>")
    assert texts[1] == b"<p>more"


@given(st.lists(st.binary(max_size=30)))
def test_other_bodies_are_shown_as_they_are(writes: list[bytes]) -> None:
    assert list(readable(writes)) == writes
    assert list(readable([b'{"a":1}\n', b'{"b":2}\n'])) == [b'{"a":1}\n', b'{"b":2}\n']


def test_the_live_page_gets_frames_as_lines() -> None:
    """With the size of the bytes, and what is decoded in them."""
    headers = [("content-type", EVENTSTREAM.content_type)]
    parts = [TimedBytes(0, DELTA), TimedBytes(5, DELTA[:50])]
    answer = bytes_answer(200, headers, parts, streamed=True)
    found = stream_json(made_answer(answer, 1.0), None)["parts"]
    assert [part["size"] for part in found] == [len(DELTA), 50]
    texts = [part["lines"][0][0] for part in found]
    assert texts == [LINE.rstrip("\n"), f"… 50 of {len(DELTA)} bytes of a frame"]


def test_reports_show_frames() -> None:
    """The page of a case, with the sizes of the writes."""
    view = bytes_view(Stream((DELTA, DELTA)))
    first, second = view.first
    assert [piece.text for piece in first] == ["1", LINE.rstrip("\n"), "LF"]
    assert second[0].note == f"write 2: {len(DELTA)} bytes"
    assert [tick.label for tick in view.ticks] == [
        f"write 1: {LINE.rstrip()}",
        f"write 2: {LINE.rstrip()}",
    ]


def test_the_kit_shows_events_up_to_what_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is no frame does not break the report of it."""
    monkeypatch.setitem(PROTOCOLS, "chat-eventstream", CARRIED["chat-eventstream"])
    text = format_stream(case(TEXT, "chat-eventstream"))
    assert "data: {" in text
    assert "\\x00" not in text
    broken = format_stream(case(TEXT, "chat-eventstream", quirk="err-json-200"))
    assert "upstream provider failed" in broken


@for_all("api", list(CARRIED))
def test_the_kit_plays_events_that_a_quirk_changed(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the level of payloads, too: what no reader of the carrier can refuse has its events."""
    monkeypatch.setitem(PROTOCOLS, api, CARRIED[api])
    assert case(TEXT, api, quirk="sse-unicode-line-separators:line-separator").events is not None
    assert case(TEXT, api, quirk="err-json-200").events is None
