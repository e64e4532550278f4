"""Bodies survive every compression, however the compressed bytes are cut."""

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
    """In two frames, as a server sends that flushes so."""
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


def timed(data, cuts):
    edges = [0, *sorted({cut for cut in cuts if cut < len(data)} - {0}), len(data)]
    return tuple(
        TimedBytes(number, data[start:end]) for number, (start, end) in enumerate(pairwise(edges))
    )


@every_coding
@given(data=st.binary(max_size=200), cuts=st.sets(st.integers(0, 250), max_size=5))
def test_decompression_at_any_cuts(coding, pack, data, cuts):
    """The chunks join to the body, and each has the time at which its last byte could be
    decompressed."""
    found = decompressed(timed(pack(data), cuts), coding)
    assert b"".join(part.data for part in found) == data
    assert all(part.data for part in found)
    assert [part.at for part in found] == sorted({part.at for part in found})


@every_coding
def test_data_in_another_coding(coding, pack):
    """Data that are not in the coding of the header are an error that names their source."""
    pack(b"")  # or this is skipped
    message = f"a.har 3: content-encoding is {coding}, but the body is not"
    with pytest.raises(WireError, match=message):
        decompressed((TimedBytes(0, b"data: plain\n\n"),), coding, "a.har 3")


def test_without_the_packages():
    """Without its package a coding is unknown, and the error names what to install."""
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
