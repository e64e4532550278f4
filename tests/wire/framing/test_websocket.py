"""Messages in their frames, as a client's parser reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame
from websockets.streams import StreamReader

from mockllm.wire.framing.websocket import encode_message


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
