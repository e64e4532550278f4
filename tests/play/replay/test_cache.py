"""Caches that are bounded in bytes."""

from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.compilation.http_answer import byte_bounded


def test_the_least_recently_used_is_evicted_first():
    """Reading a value counts as use."""
    cache = byte_bounded(6, len)
    cache["a"], cache["b"], cache["c"] = b"aa", b"bb", b"cc"
    assert cache.get("a") == b"aa"
    cache["d"] = b"dd"
    assert set(cache) == {"a", "c", "d"}
    assert cache.get("b") is None


def test_as_many_are_evicted_as_necessary():
    """A large value evicts several small ones."""
    cache = byte_bounded(6, len)
    cache["a"], cache["b"], cache["c"] = b"aa", b"bb", b"cc"
    cache["d"] = b"ddd"
    assert set(cache) == {"c", "d"}


def test_a_value_beyond_the_bound_is_kept_alone():
    """It is kept until another value is added, however small that is."""
    cache = byte_bounded(6, len)
    cache["a"] = b"aa"
    cache["large"] = bytes(100)
    assert dict(cache) == {"large": bytes(100)}
    cache["b"] = b"b"
    assert dict(cache) == {"b": b"b"}


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(min_size=1, max_size=12)), max_size=40))
def test_the_bound_holds(entries):
    """After each addition the values fit into the bound, or there is only one; the latest is always
    kept."""
    cache = byte_bounded(10, len)
    for key, value in entries:
        cache[key] = value
        assert cache.get(key) == value
        assert len(cache) == 1 or sum(map(len, cache.values())) <= 10
