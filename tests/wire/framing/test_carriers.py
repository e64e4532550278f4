"""Every carrier: its blocks and frames, cut anywhere; the frames of AWS with their checksums."""

import json
import struct
import zlib
from collections.abc import Sequence

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.core.events import Frame, FrameKind
from mockllm.play.tapes.recorded_turn import carrier_of
from mockllm.wire.framing import eventstream
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.eventstream import EVENTSTREAM
from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.protocols.route_matching import CARRIERS
from tests.cases import for_all
from tests.corpus import CORPUS, needs_corpus

VALUES = st.lists(st.dictionaries(st.text(max_size=5), st.text() | st.integers(), max_size=3))
NAMES = st.text("abcdeXYZ", min_size=1)
KINDS: tuple[FrameKind, ...] = ("event", "exception")
CUTS = st.lists(st.integers(0, 5000))

MESSAGE_START = bytes.fromhex(
    "00000080000000525"
    "1a15f230b3a6576656e742d7479706507000c6d65737361676553746172740d3a636f6e74656e742d747970"
    "650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e74"
    "7b2270223a22616263222c22726f6c65223a22617373697374616e74227df29ed8da"
)
"""A frame of Bedrock, byte by byte."""


def encoded(carrier: Carrier, frames: Sequence[Frame]) -> bytes:
    """A stream of frames, with what an array has around its elements."""
    data = [carrier.encode(frame, "lf") for frame in frames]
    return b"[%b]" % b",\r\n".join(data) if carrier.name == "json_array" else b"".join(data)


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {len(data)})
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.name)
@given(VALUES, CUTS)
def test_any_cut_of_the_bytes_gives_the_same_frames(
    carrier: Carrier, values: list[dict[str, object]], cuts: list[int]
) -> None:
    frames = [Frame(json.dumps(value)) for value in values]
    if carrier is EVENTSTREAM:
        frames = [Frame(frame.data, "chunk") for frame in frames]
    data = encoded(carrier, frames)
    decoder, scanner = carrier.decoder(), carrier.scanner()
    found, spans = [], []
    for piece in pieces(data, cuts):
        found += decoder.decode(piece)
        spans += scanner.read(piece)
    spans += scanner.close()
    assert found == frames == carrier.decode(data)
    assert [frame for begin, end in spans for frame in carrier.block(data[begin:end])] == frames


@for_all(
    ("content_type", "name"),
    [
        ("text/event-stream; charset=utf-8", "sse"),
        ("application/x-ndjson", "ndjson"),
        ("application/vnd.amazon.eventstream", "eventstream"),
        ("application/json", None),
        ("", None),
    ],
)
def test_a_carrier_is_known_by_its_content_type(content_type: str, name: str | None) -> None:
    found = carrier_of(content_type)
    assert (found and found.name) == name


# JSON lines


def test_blank_lines_and_other_line_ends_are_passed_over() -> None:
    assert NDJSON.decode(b'\n{"a":1}\r\n\r\n{"b":2}\n') == [Frame('{"a":1}'), Frame('{"b":2}')]


def test_the_end_of_the_stream_ends_the_last_line() -> None:
    scanner = NDJSON.scanner()
    assert [*scanner.read(b"{}\n{"), *scanner.read(b"}"), *scanner.close()] == [(0, 3), (3, 5)]


# Frames of AWS


def test_a_frame_has_the_bytes_that_bedrock_sends() -> None:
    frame = Frame('{"p":"abc","role":"assistant"}', "messageStart")
    assert EVENTSTREAM.encode(frame, "lf") == MESSAGE_START
    assert EVENTSTREAM.decode(MESSAGE_START) == [frame]


@given(st.lists(st.tuples(NAMES, st.text(), st.sampled_from([*KINDS, "error"]))))
def test_frames_of_every_kind_come_back(values: list[tuple[str, str, FrameKind]]) -> None:
    frames = [Frame(data, name, kind=kind) for name, data, kind in values]
    assert EVENTSTREAM.decode(encoded(EVENTSTREAM, frames)) == frames


@given(st.integers(0, 8 * len(MESSAGE_START) - 1), st.integers(0, 3))
def test_a_flipped_bit_is_an_error_that_names_the_frame(bit: int, before: int) -> None:
    broken = bytearray(MESSAGE_START)
    broken[bit // 8] ^= 1 << bit % 8
    begin = before * len(MESSAGE_START)
    found: list[Frame] = []
    with pytest.raises(WireError, match=f"bytes? {begin} "):
        found.extend(EVENTSTREAM.decoder().decode(MESSAGE_START * before + bytes(broken) * 3))
    assert len(found) == before


def test_a_frame_that_is_not_whole_is_none() -> None:
    assert EVENTSTREAM.decode(MESSAGE_START + MESSAGE_START[:-1]) == EVENTSTREAM.decode(
        MESSAGE_START
    )


def test_headers_of_every_type_are_passed_over() -> None:
    values = {
        0: b"",
        1: b"",
        2: b"1",
        3: b"12",
        4: b"1234",
        5: b"12345678",
        6: b"\0\3abc",
        8: b"12345678",
        9: b"x" * 16,
    }
    own = b"".join(b"\1x%c%b" % (type, value) for type, value in values.items())
    own += b"\x0b:event-type\7\0\1e"
    prelude = struct.pack(">II", 16 + len(own) + 2, len(own))
    data = prelude + struct.pack(">I", zlib.crc32(prelude)) + own + b"{}"
    data += struct.pack(">I", zlib.crc32(data))
    assert EVENTSTREAM.decode(data) == [Frame("{}", "e")]


@for_all(
    "headers",
    [
        b"\x0b:event",
        b"\x0b:event-type",
        b"\x0b:event-type\7\0",
        b"\x0b:event-type\7\0\5e",
        b"\1x\4\0",
    ],
    ids=["name", "type", "length", "value", "number"],
)
def test_headers_that_end_too_early_are_an_error(headers: bytes) -> None:
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    data = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers
    data += struct.pack(">I", zlib.crc32(data))
    with pytest.raises(WireError, match="headers of the frame end too early"):
        EVENTSTREAM.decode(data)


def test_a_message_without_a_name_is_no_frame() -> None:
    assert EVENTSTREAM.decode(eventstream.message([(":message-type", "event")], b"{}")) == []


def test_a_header_has_a_bounded_size() -> None:
    with pytest.raises(ValueError, match="at most 65535 bytes, got 65536"):
        EVENTSTREAM.encode(Frame("x" * 65536, "code", kind="error"), "lf")


def test_a_last_line_is_a_frame_if_its_json_is_whole() -> None:
    """A line of JSON needs no LF after it; half an object is no frame."""
    assert NDJSON.decode(b'{"a":1}\n{"b":2}') == [Frame('{"a":1}'), Frame('{"b":2}')]
    assert NDJSON.decode(b'{"a":1}\n{"b":') == [Frame('{"a":1}')]


RECORDED = sorted((CORPUS / "wires").glob("bedrock-*-stream/*.yaml"))


@needs_corpus
def test_every_recorded_stream_is_written_again_byte_for_byte() -> None:
    frames = 0
    for file in RECORDED:
        for exchange in yaml.safe_load(file.read_text())["interactions"]:
            data = exchange["response"].get("body", {}).get("string")
            if isinstance(data, bytes):  # others are errors, or parsed
                found = EVENTSTREAM.decode(data)
                assert encoded(EVENTSTREAM, found) == data
                frames += len(found)
    assert frames > 100
