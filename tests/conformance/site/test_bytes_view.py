"""Bytes on pages: every byte is visible, and the page holds all of them exactly."""

from __future__ import annotations

import base64
import gzip

from hypothesis import given
from hypothesis import strategies as st

from mockllm.conformance.results import Stream
from mockllm.conformance.site.case_views import BytesView, bytes_view

ENDS = {"CR LF": "\r\n", "CR": "\r", "LF": "\n"}


def unpacked(view: BytesView) -> bytes:
    data = base64.b64decode(view.packed)
    return gzip.decompress(data) if view.packing == "gzip" else data


def shown(view: BytesView) -> bytes:
    """The bytes that the visible pieces stand for."""
    found = b""
    for line in (*view.first, *view.folded, *view.last):
        for piece in line:
            if piece.kind == "end":
                found += ENDS[piece.text].encode()
            elif piece.kind == "escape":
                code = 9 if piece.text == "\\t" else int(piece.text.lstrip("\\xu"), 16)
                is_byte = piece.note == "a byte that is not UTF-8"
                found += bytes([code]) if is_byte else chr(code).encode()
            elif piece.kind != "cut":
                found += piece.text.encode()
    return found


odd = st.sampled_from([b"\r", b"\n", b"\r\n", b"\0", b"\xff", "é".encode(), b"data: x", b"\t"])
writes = st.lists(st.lists(odd | st.binary(max_size=4), max_size=6).map(b"".join), max_size=8)


@given(writes)
def test_the_visible_pieces_and_the_packed_bytes_are_the_stream(parts: list[bytes]):
    """Whatever the bytes and the cuts, nothing is left out, added or changed."""
    view = bytes_view(Stream(tuple(parts)))
    data = b"".join(parts)
    assert unpacked(view) == data
    assert shown(view) == data
    assert view.size == len(data)
    assert sum(p.kind == "cut" for line in view.first for p in line) == len(parts)


def test_a_line_end_in_two_writes_stays_one_line_and_a_cut_begins_the_next():
    """The line feed of a cut CR LF is on the line of its carriage return."""
    view = bytes_view(Stream((b"a\r", b"\nb\r", b"c")))
    texts = [[(p.kind, p.text) for p in line] for line in view.first]
    assert texts == [
        [("cut", "1"), ("text", "a"), ("end", "CR"), ("cut", "2"), ("end", "LF")],
        [("text", "b"), ("end", "CR")],
        [("cut", "3"), ("text", "c")],
    ]


def test_long_streams_are_folded_and_limited_but_packed_whole():
    """A page of a long stream stays small."""
    data = b"data: x\n\n" * 20_000
    view = bytes_view(Stream((data,)))
    assert unpacked(view) == data
    assert view.folded
    assert view.unshown == len(data) - 48 * 1024
    one = bytes_view(Stream((b"data: " + b"x" * 5000 + b"\n",)))
    folds = [p for line in one.first for p in line if p.kind == "fold"]
    assert [p.note for p in folds] == ["4,306 more characters"]


def test_bytes_that_are_no_text_are_known():
    """A clipboard holds text: neither broken UTF-8 nor NUL."""
    assert bytes_view(Stream((b"caf\xc3", b"\xa9"))).is_text
    assert not bytes_view(Stream((b"caf\xc3",))).is_text
    assert not bytes_view(Stream((b"a\0b",))).is_text


def test_the_axis_has_times_or_the_order():
    """Writes that are due at once are placed by their order."""
    timed = bytes_view(Stream((b"a", b"b", b"c"), (0, 500_000, 2_000_000)))
    assert [tick.left for tick in timed.ticks] == [0, 25, 100]
    assert timed.duration == "2 s"
    assert bytes_view(Stream((b"a", b"b"), (0, 1_000_000))).duration == "1 s"
    assert bytes_view(Stream((b"a", b"b"), (0, 999_500))).duration == "999.5 ms"
    assert "500 ms" in timed.ticks[1].label
    order = bytes_view(Stream((b"a", b"b", b"c"), (0, 0, 0)))
    assert [tick.left for tick in order.ticks] == [0, 50, 100]
    assert not order.timed
