"""Derived values are the same on every machine and in every release."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.seeded import derive, derive_int, derive_unit
from mockllm.core.tokens_and_fragments import tokens


def test_values_never_change() -> None:
    """Ids in recordings, in tests of users and in the documentation are such values."""
    assert derive("seed") == "LvApipqevCRNYZu29qis0llA"
    assert derive("seed", "a", 1) == "mHVVU6NCVt7JNOxIsZT4Sj36"
    assert derive("seed", "a", 1, length=64, hex=False) == (
        "mHVVU6NCVt7JNOxIsZT4Sj36D99LFKsksOmhsFcDFOwuxLL9vaPaE01OeG1e8dpJ"
    )
    assert derive("seed", "a", 1, length=8, hex=True) == "f640d819"
    assert [derive_int("s", n, below=10) for n in range(6)] == [0, 9, 4, 7, 7, 4]
    assert derive_int("s", "x", below=10**18) == 16492589568577788
    assert [derive_unit("s", n) for n in range(2)] == [-0.10290448775411676, -0.5883257146492582]


def test_a_value_depends_on_all_arguments_in_their_order() -> None:
    """The digest is that of the arguments, each after U+001F; 64 bytes of BLAKE2b."""
    digest = hashlib.blake2b(b"seed\x1fa\x1f1", digest_size=64)
    assert derive("seed", "a", 1, length=128, hex=True) == digest.hexdigest()
    assert len({derive("s", "ab"), derive("sa", "b"), derive("s", "a", "b")}) == 3


@given(st.text(), st.integers(1, 1000))
def test_numbers_are_in_their_range(seed: str, below: int) -> None:
    """Whole numbers are below the bound, the others from -1 up to 1."""
    assert 0 <= derive_int(seed.encode("utf-8", "replace").decode(), below=below) < below
    assert -1 <= derive_unit(seed.encode("utf-8", "replace").decode()) < 1


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1), ("ééé", 2), ("\ud800", 1)],
)
def test_tokens(text: str, count: int) -> None:
    """Four bytes of UTF-8 are a token, and so is what is left; half of a pair counts three."""
    assert tokens(text) == count
