"""Server-sent events by the WHATWG rules, in both directions and cut anywhere."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mockllm.core.errors import SSEError, StreamFormatError
from mockllm.core.events import Frame
from mockllm.wire.framing import sse
from mockllm.wire.framing.sse import LINE_ENDS, SSEDecoder, decode, encode
from tests.cases import for_all

BOM = b"\xef\xbb\xbf"

SPECIFICATION = {
    "messages": (
        b"data: This is the first message.\n\n"
        b"data: This is the second message, it\ndata: has two lines.\n\n"
        b"data: This is the third message.\n\n",
        [
            Frame("This is the first message."),
            Frame("This is the second message, it\nhas two lines."),
            Frame("This is the third message."),
        ],
    ),
    "event types": (
        b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\n",
        [Frame("73857293", event="add"), Frame("2153", event="remove")],
    ),
    "three data lines": (b"data: YHOO\ndata: +2\ndata: 10\n\n", [Frame("YHOO\n+2\n10")]),
    "four blocks": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\n"
        b"data:  third event\n\n",
        [
            Frame(comment="test stream"),
            Frame("first event", id="1"),
            Frame("second event", id=""),
            Frame(" third event"),
        ],
    ),
    "empty data": (b"data\n\ndata\ndata\n\ndata:", [Frame(""), Frame("\n")]),
    "optional space": (b"data:test\n\ndata: test\n\n", [Frame("test"), Frame("test")]),
}

STREAMS = {
    **SPECIFICATION,
    "every kind of line": (
        BOM + b": hello\r\nid: 7\rretry: 20\nevent: x\r\ndata: a\rdata:\r\ndata: b\n\r\n"
        b"what: is this\nno colon\n\ndata: last\r\r\n",
        [
            Frame(comment="hello"),
            Frame("a\n\nb", event="x", id="7", retry=20),
            Frame("last"),
        ],
    ),
    "unicode": (
        "data: 你好 👩\u200d👩\u200d👧 e\u0301 שלום\n\n: ƒ\n\n".encode(),
        [Frame("你好 👩\u200d👩\u200d👧 e\u0301 שלום"), Frame(comment="ƒ")],
    ),
    "not UTF-8": (
        b"data: \xff \xe2\x82 \xf0\x9f \xed\xa0\x80 ok\n\n",
        [Frame("\ufffd \ufffd \ufffd \ufffd\ufffd\ufffd ok")],
    ),
}
streams = for_all(("stream", "frames"), STREAMS.values(), ids=STREAMS.keys())

one_line = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\n"), max_size=9)
ids = one_line.filter(lambda text: "\0" not in text)
any_text = st.text(
    st.one_of(
        st.characters(exclude_categories=("Cs",)),
        st.sampled_from([*"\r\n :\ufeff\0\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"]),
    ),
    max_size=12,
)
comments = st.builds(Frame, comment=one_line)
events = st.builds(
    Frame,
    any_text,
    st.none() | one_line,
    st.none() | ids,
    st.none() | st.integers(0, 10**18),
)
settings_only = st.builds(Frame, st.none(), st.none(), ids)
line_ends = st.sampled_from(list(LINE_ENDS))
tokens = (
    b"data|:| |id|retry|event|1|\r|\n|\r\n|\n\n|\0|\xff|\xf0\x9f|\xe2\x80\xa8|\xed\xa0|\xc3\xa9"
)
soup = st.lists(
    st.sampled_from([BOM, *tokens.split(b"|")]) | st.binary(max_size=4), max_size=24
).map(b"".join)


def in_chunks(chunks):
    decoder = SSEDecoder()
    return [frame for chunk in chunks for frame in decoder.decode(chunk)]


def cut(stream, cuts):
    edges = [0, *sorted(at for at in cuts if at < len(stream)), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


def as_read(frame):
    """A frame as it reads back: a CR in the data is a line break too."""
    data = frame.data
    if data is not None:
        data = data.replace("\r\n", "\n").replace("\r", "\n")
    return Frame(data, frame.event, frame.id, frame.retry, frame.comment)


@streams
def test_whole(stream, frames):
    """The specification's own examples, and others, decoded from one chunk."""
    assert decode(stream) == frames


@streams
def test_one_byte_at_a_time(stream, frames):
    """Bytes that arrive one by one, inside characters and between CR and LF too, decode the
    same."""
    assert in_chunks(bytes([byte]) for byte in stream) == frames


@streams
def test_cut_in_two_at_every_byte(stream, frames):
    """A stream in two chunks decodes the same, wherever it is cut."""
    for at in range(len(stream) + 1):
        assert in_chunks([stream[:at], stream[at:]]) == frames, at


@streams
@for_all("line_end", [b"\r\n", b"\r"])
def test_line_ends_are_equivalent(stream, frames, line_end):
    """LF, CRLF and CR mean the same."""
    other = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", line_end)
    assert decode(other) == frames
    assert in_chunks(bytes([byte]) for byte in other) == frames


@given(soup, st.sets(st.integers(0, 80)))
@example(b"\xef\xbb\xbfdata: x\r\n\r\n", {1, 2, 11, 13})
def test_every_split_decodes_the_same(stream, cuts):
    """Any bytes, valid or not, cut anywhere, give the same frames."""
    assert in_chunks(cut(stream, cuts)) == in_chunks([stream])
    ended = stream + b"\n\n"  # so that an event that the stream leaves incomplete is compared
    assert in_chunks(cut(ended, cuts)) == in_chunks([ended])


@given(st.lists(events | comments | settings_only, max_size=5), line_ends, st.booleans())
def test_decode_is_the_inverse_of_encode(frames, line_end, bom):
    """Frames survive encoding, with every line end."""
    stream = b"".join(encode(frame, line_end) for frame in frames)
    assert decode(BOM + stream if bom else stream) == [as_read(frame) for frame in frames]


@given(st.lists(events, max_size=4), line_ends, st.sets(st.integers(0, 200)))
def test_decode_is_the_inverse_of_encode_at_any_cuts(frames, line_end, cuts):
    """Frames survive encoding, however the bytes are cut."""
    stream = b"".join(encode(frame, line_end) for frame in frames)
    assert in_chunks(cut(stream, cuts)) == [as_read(frame) for frame in frames]


@for_all("char", [*"\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\x1f\0\ufeff"])
def test_only_cr_and_lf_end_lines(char):
    """Other Unicode line breaks stay inside the data."""
    assert decode(f"data: a{char}b\n\n".encode()) == [Frame(f"a{char}b")]
    assert decode(encode(Frame(f"{char}a{char}"))) == [Frame(f"{char}a{char}")]


def test_byte_order_mark():
    """One byte order mark at the start is dropped, also when it is cut; a second one is not."""
    assert decode(BOM + b"data: x\n\n") == [Frame("x")]
    assert in_chunks([b"\xef", b"\xbb", b"\xbf", b"data: x\n\n"]) == [Frame("x")]
    assert in_chunks([b"", BOM, b"", b"data: x\n\n"]) == [Frame("x")]
    assert decode(BOM + BOM + b"data: x\n\n") == []
    assert decode(b"\n" + BOM + b"data: x\n\n") == []


def test_one_space_is_dropped():
    """Exactly one space after the colon is dropped, and nothing else."""
    assert decode(b"data:x\n\ndata: x\n\ndata:  x \n\ndata:\tx\n\n") == [
        Frame("x"),
        Frame("x"),
        Frame(" x "),
        Frame("\tx"),
    ]


def test_comments_come_at_once():
    """A comment is a frame of its own, inside an event too, without waiting for a blank line."""
    decoder = SSEDecoder()
    assert decoder.decode(b": ping\n") == [Frame(comment="ping")]
    assert decoder.decode(b"data: a\n:\n:  two\ndata: b\n") == [
        Frame(comment=""),
        Frame(comment=" two"),
    ]
    assert decoder.decode(b"\n") == [Frame("a\nb")]


def test_field_names_are_exact():
    """Unknown fields, and known ones in another case, are ignored."""
    assert decode(b"Data: x\n data: x\ndata : x\nfoo\nfoo: bar\n\n") == []
    assert decode(b"Data: x\ndata: y\n\n") == [Frame("y")]


def test_a_colon_in_the_value_is_part_of_it():
    """Only the first colon of a line is a separator."""
    assert decode(b"data: a: b:c\ndata::\n\n") == [Frame("a: b:c\n:")]


def test_event_without_data():
    """A type without data is no event and does not leak into the next one; blank lines are
    nothing."""
    assert decode(b"event: x\n\ndata: y\n\n\n\n\n") == [Frame("y")]


def test_the_last_of_several_fields_holds():
    """Type, id and retry may be repeated inside an event; the last one counts."""
    stream = b"event: a\nevent: b\nid: 1\nid: 2\nretry: 1\nretry: 2\ndata: x\n\n"
    assert decode(stream) == [Frame("x", event="b", id="2", retry=2)]


def test_an_id_is_one_of_its_event():
    """An id with NUL is ignored, and an empty one resets that of the stream, so it is kept."""
    stream = b"id: 1\ndata: a\n\ndata: b\n\nid: 2\0\ndata: c\n\nid\n\n"
    assert decode(stream) == [Frame("a", id="1"), Frame("b"), Frame("c"), Frame(id="")]


@for_all("value", ["", "1.5", "-1", "+1", "1e3", " 5", "5 ", "x", "\u0665", "²"])
def test_retry_accepts_digits_only(value):
    """A reconnection time that is not ASCII digits is ignored."""
    assert decode(f"retry: {value}\ndata: x\n\n".encode()) == [Frame("x")]


def test_retry_of_any_length():
    """Leading zeros do not matter, and a number with thousands of digits is accepted."""
    assert decode(b"retry: " + b"0" * 5000 + b"30\n\n") == [Frame(retry=30)]
    assert decode(b"retry:0\n\n") == [Frame(retry=0)]
    assert decode(b"retry: " + b"9" * 5000 + b"\n\n") == [Frame(retry=10**18)]


@pytest.mark.parametrize("tail", [b"data: x", b"data: x\n", b"id: 1\n", b"retry: 1\n", b"\xe2"])
def test_unfinished_event_is_discarded(tail):
    """An event without its blank line is never returned."""
    decoder = SSEDecoder()
    assert decoder.decode(b"data: a\n\n" + tail) == [Frame("a")]
    assert decoder.close() == []


@pytest.mark.parametrize("stream", [b"", BOM, b"data: a\n\n", b"data: a\r\r", b": c\n", b"\r\n"])
def test_nothing_is_pending_between_events(stream):
    """After a blank line, or a comment, a further blank line completes nothing."""
    assert in_chunks([stream, b"\n\n"]) == decode(stream)


def test_cr_completes_an_event_at_once():
    """An event that ends in CR does not wait for an LF, which would not be a line of its own."""
    decoder = SSEDecoder()
    assert decoder.decode(b"data: a\r\n\r") == [Frame("a")]
    assert decoder.decode(b"\ndata: b\r") == []
    assert decoder.decode(b"") == []
    assert decoder.decode(b"\n") == []
    assert decoder.decode(b"\n") == [Frame("b")]


def test_bad_utf8_is_replaced():
    """Invalid UTF-8 becomes U+FFFD, and the rest of the stream is decoded."""
    assert decode(b"data: \xc3(\n\ndata: \xff\n\ndata: \xe2\x82\n\n") == [
        Frame("\ufffd("),
        Frame("\ufffd"),
        Frame("\ufffd"),
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_has_a_bound(size, monkeypatch):
    """A line that never ends is an error that names the bound."""
    monkeypatch.setattr(sse, "MAX_LINE", 100)
    with pytest.raises(SSEError, match=r"line is longer than 100 characters"):
        in_chunks([b"x" * size] * 200)


def test_the_bound_of_a_line_is_exact(monkeypatch):
    """A line as long as the bound is decoded, in one chunk or many; one character more is an
    error."""
    monkeypatch.setattr(sse, "MAX_LINE", 100)
    line = b"data: " + b"x" * 94
    assert in_chunks([line, b"\n\n"]) == [Frame("x" * 94)]
    assert in_chunks([bytes([byte]) for byte in line + b"\n\n"])
    for chunks in ([line + b"x\n\n"], [line, b"x\n\n"], [line, b"x", b"\n\n"]):
        with pytest.raises(SSEError):
            in_chunks(chunks)


def test_an_event_has_a_bound(monkeypatch):
    """An event whose blank line never comes is an error, with empty data lines too."""
    monkeypatch.setattr(sse, "MAX_EVENT", 10)
    with pytest.raises(SSEError, match=r"longer than 10 characters"):
        in_chunks([b"data\n"] * 20)
    assert issubclass(SSEError, StreamFormatError)


def test_the_bound_of_an_event_is_exact_and_for_each_event(monkeypatch):
    """Data as long as the bound are decoded, for each event anew; one character more is an
    error."""
    event = b"data: 1234\ndata: 56789\n\n"
    monkeypatch.setattr(sse, "MAX_EVENT", 10)
    assert in_chunks([event * 3]) == [Frame("1234\n56789")] * 3
    monkeypatch.setattr(sse, "MAX_EVENT", 9)
    with pytest.raises(SSEError):
        in_chunks([event])


def test_memory_is_bounded_after_an_error(monkeypatch):
    """However much is fed after the error, the decoder holds no more than its bounds."""
    monkeypatch.setattr(sse, "MAX_LINE", 100)
    monkeypatch.setattr(sse, "MAX_EVENT", 100)
    decoder = SSEDecoder()
    for chunk in [b"x" * 60, b"data\n" * 60] * 50:
        for _ in range(3):
            with suppress(SSEError):
                decoder.decode(chunk)
    held = [part for name in ("_partial", "_data") for part in getattr(decoder, name)]
    assert sum(map(len, held)) <= 200
    assert len(held) <= 210


def test_bytes_of_a_frame():
    """The fields are in the order in which services send them, with a blank line at the end."""
    frame = Frame('{"a":1}', event="x", id="7", retry=5, comment="hi")
    assert encode(frame) == b': hi\nevent: x\nid: 7\nretry: 5\ndata: {"a":1}\n\n'
    assert encode(Frame("x"), "crlf") == b"data: x\r\n\r\n"
    assert encode(Frame("x"), "cr") == b"data: x\r\r"
    assert encode(Frame("")) == b"data: \n\n"
    assert encode(Frame("a\nb\r\nc\rd")) == b"data: a\ndata: b\ndata: c\ndata: d\n\n"
    assert encode(Frame(comment="")) == b":\n\n"
    assert encode(Frame(comment="a\n\nb")) == b": a\n:\n: b\n\n"
    assert encode(Frame(id="7")) == b"id: 7\n\n"


def test_raw_is_sent_unchanged():
    """`raw` text gets no field name, no line end and no blank line."""
    assert encode(Frame(raw="data: x\r\n"), "cr") == b"data: x\r\n"
    assert encode(Frame(raw="")) == b""


@pytest.mark.parametrize("field", ["event", "id"])
@pytest.mark.parametrize("value", ["a\nb", "a\rb"])
def test_fields_of_one_line(field, value):
    """A line break in a field that cannot hold one is an error."""
    with pytest.raises(ValueError, match=f"an SSE {field} cannot hold a line break"):
        encode(Frame("x", **{field: value}))
