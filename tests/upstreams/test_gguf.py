"""The generated GGUF model for llama.cpp."""

from __future__ import annotations

import struct

from tests.upstreams import gguf


def test_the_same_each_time(tmp_path):
    """The same seed gives the same file, and another seed another file of the same size."""
    files = [tmp_path / name for name in ("one", "same", "other")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        gguf.write(file, seed)
    one, same, other = (file.read_bytes() for file in files)
    assert one == same != other
    assert len(one) == len(other) < 200_000


def test_head(tmp_path):
    """The file begins with the header of GGUF version 3."""
    gguf.write(tmp_path / "model")
    magic, version, tensors, fields = struct.unpack_from(
        "<4sIQQ", (tmp_path / "model").read_bytes()
    )
    assert (magic, version) == (b"GGUF", 3)
    assert (tensors, fields) == (12, 20)


def test_tokens():
    """`token` returns the number of a token."""
    assert [gguf.token(text) for text in ("<unk>", gguf.END, gguf.CALL)] == [0, 2, 4]
