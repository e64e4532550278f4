"""Bodies come out as they went in, whatever they are compressed with and however they are cut."""

import gzip
import subprocess
import sys
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import WireError
from mockllm.framing.content_coding import codings, decompressed


def brotli(data):
    return pytest.importorskip("brotli").compress(data)


def zstd(data):
    return pytest.importorskip("zstandard").compress(data)


def zstd_twice(data):
    """In two frames, as a server may that flushes so."""
    return zstd(data[:3]) + zstd(data[3:])


PACKED = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "br": ("br", brotli),
    "zstd": ("zstd", zstd),
    "zstd in frames": ("zstd", zstd_twice),
}
every_coding = pytest.mark.parametrize(("coding", "pack"), PACKED.values(), ids=PACKED)


def pieces(data, cuts):
    edges = [0, *sorted({cut for cut in cuts if cut < len(data)} - {0}), len(data)]
    return tuple(
        TimedBytes(number, data[start:end]) for number, (start, end) in enumerate(pairwise(edges))
    )


@every_coding
@given(data=st.binary(max_size=200), cuts=st.sets(st.integers(0, 250), max_size=5))
def test_what_was_packed_comes_out(coding, pack, data, cuts):
    """Cut anywhere, the chunks hold the body, each no later than its last byte was there."""
    found = decompressed(pieces(pack(data), cuts), coding)
    assert b"".join(piece.data for piece in found) == data
    assert all(piece.data for piece in found)
    assert [piece.at for piece in found] == sorted({piece.at for piece in found})


@every_coding
def test_what_is_not_packed_so(coding, pack):
    """Data that are not what the header says are told with their source."""
    pack(b"")  # or this is skipped
    with pytest.raises(WireError, match=f"a.har 3: the body is not {coding} as it says"):
        decompressed((TimedBytes(0, b"data: plain\n\n"),), coding, "a.har 3")


def test_without_the_packages():
    """Where a package is not there, its coding is unknown, and the error says what to install."""
    code = """
import sys
sys.modules["brotli"] = sys.modules["zstandard"] = None
from mockllm.framing.content_coding import codings, decompressed
print(codings())
decompressed((), "br", "x")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "('gzip', 'x-gzip', 'deflate')\n"
    assert "(or install 'mockllm-harness[compression]')" in done.stderr
    assert {"gzip", "deflate"} <= {*codings()}
