"""The work for bytes from a network grows no faster than the bytes, whatever these are and however
they arrive: carriers, content codings and forms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import pytest

from mockllm.core import forms
from mockllm.core.errors import MockLLMError
from mockllm.core.http import TimedBytes
from mockllm.wire.framing import (
    carrier,
    content_coding,
    eventstream,
    frame_text,
    json_array,
    ndjson,
    sse,
)
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.content_coding import codings, decompress
from mockllm.wire.protocols.route_matching import CARRIERS
from tests.wire.framing.test_content_coding import PACKED
from tests.wire.framing.work import Work

_SIZE = 600
_MOST = 2.3
"""How much more work twice the bytes may take: what is begun once makes it less than 2, and buffers
that grow in steps make it a little more."""

_MESSAGE = eventstream.message([(":event-type", "chunk")], b"{}")
_UNENDED = eventstream.prelude(20_000_000, 100)

SHAPES: dict[str, tuple[bytes, bytes]] = {
    "text": (b"", b"a"),
    "zeros": (b"", b"\0"),
    "LF": (b"", b"\n"),
    "CR": (b"", b"\r"),
    "CRLF": (b"", b"\r\n"),
    "lines": (b"", b"data: a\n"),
    "lines with CR": (b"", b"data: a\r"),
    "one long line": (b"data: ", b"a"),
    "events": (b"", b"data: a\n\n"),
    "events with CRLF": (b"", b"id: 1\r\ndata: a\r\n\r\n"),
    "comments": (b"", b":\n"),
    "colons": (b"", b":"),
    "retry": (b"retry: ", b"9"),
    "objects": (b"[", b'{"a": 1},'),
    "open arrays": (b"", b"["),
    "open objects": (b"", b'{"a":'),
    "closed arrays": (b"", b"]"),
    "one long element": (b'[{"a": "', b"b"),
    "backslashes": (b'["', b"\\"),
    "quotes": (b"[", b'"'),
    "JSON lines": (b"", b'{"a": 1}\n'),
    "not UTF-8": (b"", b"\xff"),
    "half of characters": (b"", b"\xe2\x82"),
    "messages": (b"", _MESSAGE),
    "message without an end": (_UNENDED, b"a"),
    "headers": (eventstream.prelude(100_000, 90_000), b"\1a\0"),
}
shapes = pytest.mark.parametrize("shape", SHAPES)
piece_sizes = pytest.mark.parametrize("piece", [3, 100_000])


def _make(shape: str, size: int) -> bytes:
    begin, rest = SHAPES[shape]
    return begin + rest * (size // len(rest))


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def _assert_linear(work: Work, call: Callable[[int], object]) -> None:
    """The work of a call that is given a size, for two of them."""
    once, twice = (work.of(lambda size=size: call(size)) for size in (_SIZE, 2 * _SIZE))
    assert twice <= _MOST * once + 500, f"{once} for {_SIZE} bytes, {twice} for twice as many"


def _end_at_error(frames: Iterable[object]) -> None:
    """Reads up to the first error: what comes behind it is not read."""
    with suppress(MockLLMError):
        deque(frames, maxlen=0)


_FRAMING = (carrier, eventstream, frame_text, json_array, ndjson, sse)


@pytest.mark.parametrize("form", CARRIERS, ids=lambda form: form.name)
@shapes
@piece_sizes
def test_every_carrier(form: Carrier, shape: str, piece: int) -> None:
    """Decoders and scanners, in pieces of any size."""

    def frames(size: int) -> Iterator[object]:
        decoder = form.decoder()
        for data in _cut(_make(shape, size), piece):
            yield from decoder.decode(data)
        yield from decoder.close()

    def blocks(size: int) -> Iterator[object]:
        scanner = form.scanner()
        for data in _cut(_make(shape, size), piece):
            yield from scanner.read(data)
        yield from scanner.close()

    _assert_linear(Work(*_FRAMING), lambda size: _end_at_error(frames(size)))
    _assert_linear(Work(*_FRAMING), lambda size: _end_at_error(blocks(size)))


@shapes
@piece_sizes
def test_frames_that_are_shown(shape: str, piece: int) -> None:
    """The text of an event stream of AWS."""

    def lines(size: int) -> Iterable[object]:
        return frame_text.readable(list(_cut(_make(shape, size), piece)))

    _assert_linear(Work(*_FRAMING), lambda size: _end_at_error(lines(size)))


def _unpack(name: str, data: bytes, piece: int) -> None:
    coding, _ = PACKED[name]
    assert coding in codings()
    with suppress(MockLLMError):
        decompress(tuple(TimedBytes(0, part) for part in _cut(data, piece)), coding)


@pytest.mark.parametrize("name", PACKED)
@piece_sizes
def test_every_coding(name: str, piece: int) -> None:
    """Packed bytes, in one stream and in many."""
    _, pack = PACKED[name]
    work, alphabet = Work(content_coding), bytes(range(250))
    _assert_linear(work, lambda size: _unpack(name, pack(alphabet * (size // 50)), piece))
    _assert_linear(work, lambda size: _unpack(name, pack(b"a") * (size // 10), piece))


@pytest.mark.parametrize("name", PACKED)
@shapes
@piece_sizes
def test_bytes_that_are_not_packed(name: str, shape: str, piece: int) -> None:
    """They are refused, or end at an error."""
    work = Work(content_coding)
    _assert_linear(work, lambda size: _unpack(name, _make(shape, size), piece))


HEADS = {
    "open quotes": b'; a="',
    "semicolons": b";",
    "escapes": b'; a="\\',
    "quotes": b'"',
    "spaces": b" ",
    "spaces of parameters": b";  a  ",
    "equals": b"; =",
    "stars": b"; filename*=UTF-8''%e2",
    "percents": b"%",
    "names": b"; name=x",
    "continued": b"; filename*0=x",
    "header lines": b"\r\nx: y",
    "no colon": b"\r\nx",
    "CR": b"\r",
    "LF": b"\n",
    "not UTF-8": b"\xff",
}
BODIES = {
    "data": b"a",
    "line breaks": b"\r\n",
    "blank lines": b"\r\n\r\n",
    "dashes": b"\r\n--",
    "longer boundaries": b"\r\n--bound-",
    "padding": b"\r\n--bound ",
    "empty parts": b"\r\n--bound\r\n\r\n",
    "parts": b"\r\n--bound\r\ncontent-disposition: form-data; name=a\r\n\r\nb",
    "parts without headers": b"\r\n--bound\r\n",
}
_KIND = "multipart/form-data; boundary=bound"
_DISPOSITION = b"--bound\r\ncontent-disposition: form-data"
_END = b"\r\n--bound--"


@pytest.mark.parametrize("head", HEADS)
def test_headers_of_parts(head: str) -> None:
    """One part with long headers, and many parts with headers up to the bound."""
    one = HEADS[head]

    def part(size: int) -> bytes:
        return _DISPOSITION + one * (size // len(one)) + b"\r\n\r\nx\r\n"

    work = Work(forms)
    _assert_linear(work, lambda size: forms.form_parts(_KIND, part(size) + _END))
    _assert_linear(work, lambda size: forms.form_parts(_KIND, part(200) * (size // 200) + _END))
    text = one.decode("latin-1")
    _assert_linear(
        work,
        lambda size: forms.form_parts("multipart/form-data" + text * (size // len(text)), b""),
    )


@pytest.mark.parametrize("body", BODIES)
def test_bodies_of_forms(body: str) -> None:
    """Of one part, or of many, with an end or without one."""
    one, begin = BODIES[body], _DISPOSITION + b"; name=f\r\n\r\n"
    for end in (b"", _END):
        _assert_linear(
            Work(forms),
            lambda size, end=end: forms.form_parts(_KIND, begin + one * (size // len(one)) + end),
        )
