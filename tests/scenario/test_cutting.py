"""Fragments join to the text that was cut, and are always the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.tokens_and_fragments import RandomSplit, Split, fragments
from tests.cases import for_all
from tests.scenario.strategies import rules
from tests.strategies import texts


@given(st.lists(texts).map("".join), rules, texts)
def test_fragments_join(text: str, split: Split, seed: str) -> None:
    """Fragments by any rule join to the text, none of them is empty, and they depend on nothing
    else."""
    found = fragments(text, split, seed)
    assert "".join(found) == text
    assert all(found)
    assert fragments(text, split, seed) == found


@for_all(
    ("text", "split", "expected"),
    [
        ("Hello, big world", "words", ("Hello,", " big", " world")),
        ("  two  spaces \n", "words", ("  two", "  spaces", " \n")),
        ("ab\n\ncd", "words", ("ab", "\n\ncd")),
        ("héy", "chars", ("h", "é", "y")),
        ("👩‍🚀", "chars", ("👩", "\u200d", "🚀")),
        ("abcdefg", 3, ("abc", "def", "g")),
        ("abc", "whole", ("abc",)),
        ("", "whole", ()),
        ("", "chars", ()),
        ("abc", ("a", "", "bc"), ("a", "", "bc")),
        ("abcdef", RandomSplit(2, 2), ("ab", "cd", "ef")),
    ],
)
def test_rules(text: str, split: Split, expected: tuple[str, ...]) -> None:
    """Each rule cuts as the scenario language defines."""
    assert fragments(text, split, "seed") == expected


def test_random_sizes_are_fixed_for_all_time() -> None:
    """Random fragments are in range, differ by seed, and are the same in every version."""
    text = "x" * 1_000
    sizes = [len(fragment) for fragment in fragments(text, RandomSplit(1, 8), "a")]
    assert set(sizes[:-1]) == set(range(1, 9))
    assert sizes != [len(fragment) for fragment in fragments(text, RandomSplit(1, 8), "b")]
    assert sizes[:10] == [3, 7, 2, 7, 7, 7, 4, 1, 5, 5]
