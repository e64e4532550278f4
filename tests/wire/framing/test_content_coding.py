"""Bodies survive every compression, however the compressed bytes are cut."""

import gzip
import random
import subprocess
import sys
import tracemalloc
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import WireError
from mockllm.core.http import TimedBytes
from mockllm.wire.framing import content_coding
from mockllm.wire.framing.content_coding import codings, decompress
from tests.cases import for_all


def raw_deflate(data):
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


def brotli(data):
    return pytest.importorskip("brotli").compress(data)


def zstd(data):
    return pytest.importorskip("zstandard").compress(data)


PACKED = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli),
    "zstd": ("zstd", zstd),
}
every_coding = for_all(("coding", "pack"), PACKED.values(), ids=PACKED)
in_members = pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstd)], ids=["gzip", "zstd"]
)


def timed(data, cuts):
    edges = [0, *sorted({cut for cut in cuts if cut < len(data)} - {0}), len(data)]
    return tuple(
        TimedBytes(number, data[start:end]) for number, (start, end) in enumerate(pairwise(edges))
    )


def plain(data, coding, cuts=()):
    found = decompress(timed(data, cuts), coding, "a.har 3")
    return b"".join(part.data for part in found)


every_cut = st.sets(st.integers(0, 250), max_size=5) | st.just(range(400))


@every_coding
@given(data=st.binary(max_size=200), cuts=every_cut)
def test_decompression_at_any_cuts(coding, pack, data, cuts):
    """The chunks join to the body, and each has the time at which its last byte could be
    decompressed."""
    found = decompress(timed(pack(data), cuts), coding)
    assert b"".join(part.data for part in found) == data
    assert all(part.data for part in found)
    assert [part.at for part in found] == sorted({part.at for part in found})


@in_members
@given(parts=st.lists(st.binary(max_size=80), min_size=1, max_size=6), cuts=every_cut)
def test_members_one_after_the_other(coding, pack, parts, cuts):
    """All members of a body are read, empty ones too, wherever the bytes are cut. They were read to
    the end of the first."""
    assert plain(b"".join(map(pack, parts)), coding, cuts) == b"".join(parts)


@every_coding
# From 0x50 to 0x5f a skippable frame of zstandard may begin (RFC 8878, section 3.1.2).
@given(cuts=every_cut, garbage=st.binary(min_size=1, max_size=9).filter(lambda data: data[0] > 95))
def test_bytes_after_the_end(coding, pack, cuts, garbage):
    """What follows the compressed data cannot be read, and is an error, wherever it is cut."""
    with pytest.raises(WireError, match=f"content-encoding is {coding}, but the body is not"):
        plain(pack(b"data: one\n\n") + garbage, coding, cuts)


@every_coding
@given(size=st.integers(0, 120))
def test_a_body_that_ends_early(coding, pack, size):
    """Of a body that is cut anywhere, what has come is read; a few bytes may be no data at all."""
    data = random.Random(5).randbytes(100)
    try:
        found = plain(pack(data)[:size], coding)
    except WireError as error:
        assert "it is text" in str(error)  # noqa: PT017 - raised for some sizes only
    else:
        assert data.startswith(found)


@every_coding
@for_all("text", ["data: plain\n\n", '{"a":1}', "[1,2,3]", "a", "{}"])
def test_data_in_another_coding(coding, pack, text):
    """Text under the name of a coding is an error that names its source, also where its bytes could
    be the beginning of compressed data."""
    pack(b"")  # or this is skipped
    message = f"a.har 3: content-encoding is {coding}, but the body is not"
    with pytest.raises(WireError, match=message):
        plain(text.encode(), coding)


# Bounds


LARGE = bytes(5_000_000)


@every_coding
def test_the_bound_of_a_body(coding, pack, monkeypatch):
    """A body that unpacks to more than the bound is an error with the bound and what to do, in a
    bounded memory: of brotli a single byte may stand for 16 MiB."""
    monkeypatch.setattr(content_coding, "MAX_PLAIN", 1_000_000)
    monkeypatch.setattr(content_coding, "_MAX_RATIO", 10**9)
    packed = pack(LARGE)
    tracemalloc.start()
    with pytest.raises(WireError) as caught:
        plain(packed, coding)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most <= (2**24 if coding == "br" else 4_000_000)
    assert f"bytes of {coding} to more than 1000000 bytes, which is the most" in str(caught.value)
    assert f"without `accept-encoding: {coding}`" in str(caught.value)


@every_coding
def test_the_bound_of_the_ratio(coding, pack, monkeypatch):
    """A large body of a ratio that no text has is an error; a smaller one is read."""
    monkeypatch.setattr(content_coding, "_MAX_RATIO", 50)
    monkeypatch.setattr(content_coding, "_FREE", 1_000_000)
    assert plain(pack(LARGE[:1_000_000]), coding) == LARGE[:1_000_000]
    with pytest.raises(WireError, match="to more than 50 times its size, which is the most"):
        plain(pack(LARGE), coding)


def test_the_bounds():
    """256 MiB are the most, and 250 times the size above 16 MiB."""
    bounds = content_coding.MAX_PLAIN, content_coding._MAX_RATIO, content_coding._FREE
    assert bounds == (2**28, 250, 2**24)
    bomb = b"".join([gzip.compress(bytes(2**20), 9)] * 20)
    with pytest.raises(WireError, match="to more than 250 times its size"):
        plain(bomb, "gzip")


@pytest.mark.slow
@every_coding
def test_a_large_body_within_the_bounds(coding, pack):
    """A body of many slices is read whole."""
    data = random.Random(7).randbytes(600_000).hex().encode()
    assert plain(pack(data), coding) == data


def test_without_the_packages():
    """Without its package a coding is unknown, and the error names what to install."""
    code = """
import sys
sys.modules["brotli"] = sys.modules["zstandard"] = None
from mockllm.wire.framing.content_coding import codings, decompress
print(codings())
decompress((), "br", "x")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "('gzip', 'x-gzip', 'deflate')\n"
    assert "(or install 'mockllm-harness[compression]')" in done.stderr
    assert {"gzip", "deflate"} <= {*codings()}
