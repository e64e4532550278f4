"""The model that llama.cpp is given."""

from __future__ import annotations

import struct

from tests.upstreams import gguf


def test_the_same_each_time(tmp_path):
    """A seed makes a model, and the same one whenever it is asked."""
    files = [tmp_path / name for name in ("one", "same", "other")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        gguf.write(file, seed)
    one, same, other = (file.read_bytes() for file in files)
    assert one == same != other
    assert len(one) == len(other) < 200_000


def test_head(tmp_path):
    """The file begins as the format says, in its third version."""
    gguf.write(tmp_path / "model")
    magic, version, tensors, fields = struct.unpack_from(
        "<4sIQQ", (tmp_path / "model").read_bytes()
    )
    assert (magic, version) == (b"GGUF", 3)
    assert (tensors, fields) == (12, 20)


def test_tokens():
    """Each token has its number."""
    assert [gguf.token(text) for text in ("<unk>", gguf.END, gguf.CALL)] == [0, 2, 4]
