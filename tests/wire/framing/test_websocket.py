"""Messages in their frames: written, as a client's parser reads them, and read from a sender."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from mockllm.core.errors import WireError
from mockllm.wire.framing.websocket import MessageReader, ReadMessage, encode_message


def read(data):
    """The frame that a client reads."""
    reader = StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    parsing = Frame.parse(reader.read_exact, mask=False)
    with pytest.raises(StopIteration) as done:
        next(parsing)
    return done.value.value


@given(st.text(max_size=300))
def test_any_text(text):
    frame = read(encode_message(text.encode("utf-8", "replace")))
    assert (frame.fin, frame.opcode, frame.data) == (True, 1, text.encode("utf-8", "replace"))


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65_535, 65_536, 70_000])
def test_every_form_of_the_length(size):
    assert read(encode_message(b"x" * size)).data == b"x" * size


def test_a_binary_message_has_its_opcode():
    frame = read(encode_message(b"{}", binary=True))
    assert (frame.opcode, frame.data) == (2, b"{}")


# Reading


def sent(messages, *, mask, deflates=False, fragments=1):
    """Bytes of a sender: of the library that clients and services use."""
    extensions = [PerMessageDeflate(False, False, 15, 15)] if deflates else []
    out = bytearray()
    for opcode, data in messages:
        pieces = [data] if opcode >= 8 or fragments == 1 else cut(data, fragments)
        for number, piece in enumerate(pieces):
            frame = Frame(
                Opcode(opcode if number == 0 else 0), piece, fin=number == len(pieces) - 1
            )
            out += frame.serialize(mask=mask, extensions=extensions)
    return bytes(out)


def cut(data, count):
    step = len(data) // count + 1
    return [data[at : at + step] for at in range(0, max(len(data), 1), step)]


MESSAGES = st.lists(
    st.tuples(st.sampled_from([1, 2, 9, 10]), st.binary(max_size=120)), min_size=1, max_size=8
)


@given(MESSAGES, st.booleans(), st.booleans(), st.integers(1, 3), st.data())
def test_any_cut_reads_the_same(messages, mask, deflates, fragments, data):
    """Masked or not, compressed or not, in one frame or several."""
    raw = sent(messages, mask=mask, deflates=deflates, fragments=fragments)
    at = data.draw(st.integers(0, len(raw)))
    reader = MessageReader(inflates=deflates, most=1000)
    found = [*reader.read(raw[:at]), *reader.read(raw[at:])]
    assert [(one.opcode, one.data) for one in found] == messages
    for one in found:
        assert sum(one.fragments) in (0, len(one.data))
    assert not reader.is_inside


@pytest.mark.parametrize("size", [125, 126, 65_535, 65_536, 70_000])
def test_reads_every_form_of_the_length(size):
    (read,) = MessageReader(inflates=False, most=size).read(encode_message(b"x" * size))
    assert read == ReadMessage(1, b"x" * size)


def test_a_part_of_a_message():
    reader = MessageReader(inflates=False, most=9)
    assert not list(reader.read(encode_message(b"xyz")[:-1]))
    assert reader.is_inside


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"\x81\x0a", "larger than 9 bytes"),
        (b"\x01\x05hello\x80\x05hello", "larger than 9 bytes"),
        (sent([(1, b"a" * 5000)], mask=False, deflates=True), "larger than 9 bytes"),
        (b"\xc1\x02\x00\x00", "not compressed as it says"),
        (b"\xa1\x00", "an extension that is not known"),
        (b"\x80\x00", "the opcode 0"),
        (b"\x01\x00\x01\x00", "the opcode 1"),
        (b"\x83\x00", "the opcode 3"),
        (b"\x09\x00", "the opcode 9"),
    ],
)
def test_what_cannot_be_read(raw, problem):
    with pytest.raises(WireError, match=problem):
        list(MessageReader(inflates=True, most=9).read(raw))


def test_compression_that_was_not_negotiated():
    with pytest.raises(WireError, match="an extension that is not known"):
        list(MessageReader(inflates=False, most=9).read(b"\xc1\x00"))
