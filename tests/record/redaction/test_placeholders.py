"""Placeholders: how they look, how they are numbered, and how they are cut."""

from __future__ import annotations

import base64
import re

from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.placeholders import (
    PREFIXES,
    Placeholders,
    is_placeholder,
    placeholder_spans,
    proportional_parts,
    spread_out,
    wildcards,
)
from tests.cases import for_all


def test_secrets_are_numbered_by_first_appearance() -> None:
    """The same secret has the same placeholder; addresses are counted for themselves."""
    given_ = Placeholders()
    assert [given_.give(secret) for secret in ("a", "b", "a", "x@y.zz", "c")] == [
        "REDACTED-1",
        "REDACTED-2",
        "REDACTED-1",
        "hidden-1@mail.example",
        "REDACTED-3",
    ]
    assert given_.known == ("a", "b", "x@y.zz", "c")


def test_an_address_is_the_same_in_any_case() -> None:
    """Other secrets are not."""
    placeholders = Placeholders()
    assert placeholders.give("Eve@Corp.io") == placeholders.give("eve@corp.IO")
    assert placeholders.give("Key") != placeholders.give("key")
    assert placeholders.known[0] == "eve@corp.io"


@for_all(
    ("secret", "expected"),
    [
        ("x" * 10, "REDACTED-1"),
        ("x" * 11, "REDACTED-1" + "x" * 6),
        ("x" * 16, "REDACTED-1" + "x" * 6),
        ("x" * 17, "REDACTED-1" + "x" * 22),
        ("sk-ant-abc", "sk-ant-REDACTED-1"),
        ("sk-proj-" + "a" * 40, "sk-proj-REDACTED-1" + "x" * 30),
        ("sk-" + "a" * 40, "sk-REDACTED-1" + "x" * 35),
        ("a@b.c", "hidden-1@mail.example"),
        ("a" * 20 + "@b.c", "hidden-1" + "x" * 11 + "@mail.example"),
        ("a b@c.d", "REDACTED-1"),
        ("a@b@c.d", "REDACTED-1"),
        ("a@b", "REDACTED-1"),
    ],
)
def test_the_form_of_a_placeholder(secret: str, expected: str) -> None:
    """Kind and number; one that is too short is filled up to a multiple of 16."""
    assert Placeholders().give(secret) == expected
    assert len(expected) >= len(secret)


@for_all("prefix", PREFIXES)
def test_the_beginning_of_a_key_stays(prefix: str) -> None:
    """It says whose key it is, and is no secret; the longest one that fits counts."""
    placeholder = Placeholders().give(prefix + "0" * 30)
    assert placeholder.startswith(prefix + "REDACTED-1x")
    assert is_placeholder(placeholder)
    assert placeholder_spans(f"a {placeholder} b") == [(2, 2 + len(placeholder))]


def test_numbers_that_are_reserved_are_not_given() -> None:
    """Placeholders that are there already belong to other secrets."""
    reserved = ["x REDACTED-7 y REDACTED-3", "sk-REDACTED-12xx", "hidden-4@mail.example"]
    placeholders = Placeholders(reserved)
    assert placeholders.give("a") == "REDACTED-13"
    assert placeholders.give("a@b.c") == "hidden-5@mail.example"


def test_a_copy_goes_on_by_itself() -> None:
    """What it gives is not known to the original, and the other way round."""
    first = Placeholders()
    first.give("a")
    second = first.copy()
    assert second.give("b") == "REDACTED-2"
    assert first.give("c") == "REDACTED-2"
    assert (first.known, second.known) == (("a", "c"), ("a", "b"))
    assert second.give("a") == "REDACTED-1"


@for_all(
    ("text", "whole", "spans"),
    [
        ("REDACTED", True, []),
        ("REDACTED-1", True, [(0, 10)]),
        ("REDACTED-12xxx", True, [(0, 14)]),
        ("sk-REDACTED-1", True, [(0, 13)]),
        ("REDACTED-1REDACTED-2", True, [(0, 10), (10, 20)]),
        ("hidden-1@mail.example", True, [(0, 21)]),
        ("hidden-1xx@mail.example", True, [(0, 23)]),
        ("REDACTED-1 ", False, [(0, 10)]),
        ("xREDACTED-1", False, [(1, 11)]),
        ("REDACTED-", False, []),
        ("hidden-1", False, []),
        ("", False, []),
    ],
)
def test_what_is_a_placeholder(text: str, whole: bool, spans: list[tuple[int, int]]) -> None:
    """Nothing but placeholders, or the word alone, which stands for headers."""
    assert is_placeholder(text) == whole
    assert placeholder_spans(text) == spans


@for_all(
    ("text", "sizes", "parts"),
    [
        ("abcdef", [1, 1], ["abc", "def"]),
        ("abcdef", [1, 2], ["ab", "cdef"]),
        ("abcdef", [4, 1, 1], ["abcd", "e", "f"]),
        ("abcdef", [100, 1], ["abcde", "f"]),
        ("abcdef", [1, 100], ["a", "bcdef"]),
        ("abc", [1, 1, 1], ["a", "b", "c"]),
        ("ab", [1, 1, 1], ["", "a", "b"]),
        ("abc", [5], ["abc"]),
        ("abc", [0], ["abc"]),
        ("", [1, 2], ["", ""]),
    ],
)
def test_a_text_in_proportion(text: str, sizes: list[int], parts: list[str]) -> None:
    """No part is empty where the text is long enough."""
    assert proportional_parts(text, sizes) == parts


@given(st.text("abcdefgh", max_size=20), st.lists(st.integers(1, 30), min_size=1, max_size=6))
def test_parts_join_to_the_text(text: str, sizes: list[int]) -> None:
    """Whatever the sizes."""
    parts = proportional_parts(text, sizes)
    assert ("".join(parts), len(parts)) == (text, len(sizes))
    if len(text) >= len(sizes):
        assert all(parts)


@for_all(
    ("ends", "filled", "expected"),
    [
        ([0, 5], [True, True], [1, 5]),
        ([5, 5], [True, True], [4, 5]),
        ([0, 0, 5], [True, True, True], [1, 2, 5]),
        ([5, 5, 5], [True, True, True], [3, 4, 5]),
        ([5, 5, 5], [True, True, False], [4, 5, 5]),
        ([5, 5, 5], [True, False, True], [4, 4, 5]),
        ([0, 0, 5], [False, True, True], [0, 1, 5]),
        ([2, 3, 5], [True, True, True], [2, 3, 5]),
        ([0, 1], [True, True], [0, 1]),
        ([0, 2], [True, True], [1, 2]),
        ([], [], []),
    ],
)
def test_ends_are_spread_out(ends: list[int], filled: list[bool], expected: list[int]) -> None:
    """As little as it takes; what is too short stays as it is."""
    spread_out(ends, filled)
    assert ends == expected


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=8))
def test_what_is_to_be_filled_is_not_empty(parts: list[tuple[int, bool]]) -> None:
    """As far as the whole is long enough; the ends rise and the last one stays."""
    ends = [sum(size for size, _ in parts[: n + 1]) for n in range(len(parts))]
    filled = [fill for _, fill in parts]
    spread = list(ends)
    spread_out(spread, filled)
    assert spread == sorted(spread)
    assert spread[-1:] == ends[-1:]
    if ends and ends[-1] >= sum(filled):
        sizes = [end - start for start, end in zip([0, *spread], spread, strict=False)]
        assert all(size > 0 for size, fill in zip(sizes, filled, strict=True) if fill)


def found(pattern: str | None, text: str) -> bool:
    assert pattern is not None
    return re.fullmatch(pattern, text) is not None


def test_a_text_in_which_placeholders_may_be_anything() -> None:
    """Of their kind: an address has no white space, other secrets may be of several lines."""
    pattern = wildcards("key (REDACTED-1xx)!")
    assert found(pattern, "key (sk-abc)!")
    assert found(pattern, "key (two\nlines)!")
    assert not found(pattern, "key ()!")
    assert not found(pattern, "key xsk-abc)!")
    pattern = wildcards("to hidden-1@mail.example.")
    assert found(pattern, "to eve@corp.io.")
    assert not found(pattern, "to eve and bob.")
    assert wildcards("nothing here (.*)") is None
    assert wildcards("") is None


def test_adjacent_placeholders_are_one_wildcard() -> None:
    """Nothing says where one secret ends and the next one begins."""
    assert wildcards("a.REDACTED-1hidden-1@mail.exampleb") == r"a\.(?s:.+?)b"
    assert wildcards("REDACTED-1 REDACTED-2") == r"(?s:.+?)\ (?s:.+?)"


def test_placeholders_in_base64() -> None:
    """The whole of it may be anything without white space."""
    inner = base64.b64encode(b"user:REDACTED-1xxx").decode()
    assert wildcards(f"Basic {inner}!") == r"Basic\ \S+!"
    plain = base64.b64encode(b"user:password-plain").decode()
    assert wildcards(f"Basic {plain} REDACTED-1") == rf"Basic\ {re.escape(plain)}\ (?s:.+?)"
