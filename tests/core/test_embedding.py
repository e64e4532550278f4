"""Vectors that are derived from texts."""

from __future__ import annotations

from math import isclose, sqrt

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.seeded import unit_vector

texts = st.text(max_size=40) | st.sampled_from(["", "\ud800", "hello world"])


def product(left: str, right: str, dimensions: int = 256) -> float:
    """The scalar product of the vectors of two texts."""
    pairs = zip(unit_vector(left, dimensions), unit_vector(right, dimensions), strict=True)
    return sum(a * b for a, b in pairs)


@given(texts, st.integers(1, 300))
def test_vectors_have_length_one(text: str, dimensions: int) -> None:
    """Every text has a vector of length 1, of the dimensions that were requested, each time the
    same."""
    vector = unit_vector(text, dimensions)
    assert len(vector) == dimensions
    assert isclose(sqrt(sum(value * value for value in vector)), 1, abs_tol=1e-5)
    assert vector == unit_vector(text, dimensions)


@given(texts, texts)
def test_other_texts_have_other_vectors(left: str, right: str) -> None:
    """Two texts have the same vector only if they are equal."""
    assert (unit_vector(left, 64) == unit_vector(right, 64)) is (left == right)


def test_texts_with_common_words_are_near_each_other() -> None:
    """A search by similarity finds the text that shares words with the query."""
    query = "How does the tax office compute interest?"
    near = product(query, "The tax office computes interest once a year.")
    far = product(query, "Cats sleep for most of their day.")
    assert near > far + 0.2
    assert product("hello", "Hello") > 0.9
