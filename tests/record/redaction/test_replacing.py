"""Edits of texts, and of the chunks and headers that carry them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.record.redaction.find.bodies import Edit, TextBody, edit_text
from mockllm.record.redaction.find.spans import Found, base64_runs
from mockllm.record.redaction.placeholders import Placeholders, edits, recut, with_length


def found(*parts: tuple[int, int], secret: str = "secret") -> Found:
    return Found("kind", secret, parts)


def placed(*secrets: Found) -> list[Edit]:
    return edits(secrets, Placeholders())


def test_edits_come_in_the_order_of_the_text() -> None:
    """However the secrets were found; each has its placeholder."""
    assert placed(found((9, 12), secret="b"), found((1, 4), secret="a")) == [
        Edit(1, 4, "REDACTED-2"),
        Edit(9, 12, "REDACTED-1"),
    ]


def test_a_secret_that_is_cut_has_its_placeholder_cut() -> None:
    """In proportion to its parts."""
    assert placed(found((1, 4), (10, 11))) == [Edit(1, 4, "REDACTE"), Edit(10, 11, "D-1")]
    (fixed,) = edits([Found("n", "", ((3, 5),), fixed="0")], Placeholders())
    assert fixed == Edit(3, 5, "0")


@pytest.mark.parametrize(
    ("first", "second", "rest"),
    [
        ((5, 10), (10, 12), [(10, 12)]),
        ((5, 10), (3, 5), [(3, 5)]),
        ((5, 10), (9, 12), [(10, 12)]),
        ((5, 10), (3, 6), [(3, 5)]),
        ((5, 10), (3, 12), [(3, 5), (10, 12)]),
        ((5, 10), (6, 9), []),
        ((5, 10), (5, 10), []),
        ((5, 10), (5, 11), [(10, 11)]),
        ((5, 10), (4, 10), [(4, 5)]),
    ],
)
def test_where_secrets_overlap(
    first: tuple[int, int], second: tuple[int, int], rest: list[tuple[int, int]]
) -> None:
    """The earlier found one is replaced whole, the later one where anything of it is left."""
    made = placed(found(first, secret="a"), found(second, secret="b"))
    assert Edit(*first, "REDACTED-1") in made
    assert [(one.start, one.end) for one in made if (one.start, one.end) != first] == rest
    if rest:
        assert "".join(one.text for one in made if (one.start, one.end) != first) == "REDACTED-2"


def test_what_is_left_between_several() -> None:
    """A long secret keeps what lies between those found before it."""
    made = placed(found((2, 4), secret="a"), found((6, 8), secret="b"), found((0, 10), secret="c"))
    assert [(one.start, one.end) for one in made] == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    made = placed(found((2, 4), secret="a"), found((6, 8), secret="b"), found((3, 7), secret="c"))
    assert [(one.start, one.end) for one in made] == [(2, 4), (4, 6), (6, 8)]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 8)), max_size=6))
def test_edits_cover_what_was_found(spans: list[tuple[int, int]]) -> None:
    """Each character of a secret exactly once, and no other character."""
    secrets = [
        found((start, start + size), secret=f"s{n}") for n, (start, size) in enumerate(spans)
    ]
    made = placed(*secrets)
    covered = [at for one in made for at in range(one.start, one.end)]
    assert covered == sorted({at for start, size in spans for at in range(start, start + size)})


def test_a_secret_in_base64_is_replaced_inside() -> None:
    """What is around it stays, in the same variant of base64."""
    written = base64.b64encode(b"user:hunter2hunter2").decode()
    (run,) = base64_runs(written)
    inner = Found("password", "hunter2hunter2", ((5, 19),))
    outer = Found("password", "", ((0, len(written)),), inner=(run, (inner,)))
    (made,) = edits([outer], Placeholders())
    assert base64.b64decode(made.text) == b"user:REDACTED-1xxxxxx"
    assert list(outer.secrets()) == ["hunter2hunter2"]


def test_a_text_with_edits() -> None:
    """All else stays."""
    text = "abcdefgh"
    assert edit_text(text, [Edit(0, 1, "X"), Edit(3, 5, ""), Edit(8, 8, "!")]) == "Xbcfgh!"
    assert edit_text(text, []) == text


# Chunks


def cut(*sizes: int, data: bytes = b"abcdefghijkl") -> list[TimedBytes]:
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [
        TimedBytes(n * 10, data[end - size : end])
        for n, (end, size) in enumerate(zip(ends, sizes, strict=True))
    ]


def after(chunks: list[TimedBytes], *changes: Edit) -> list[bytes]:
    """The edited chunks; their times stay."""
    text = b"".join(chunk.data for chunk in chunks).decode("utf-8", "surrogateescape")
    data, moved = TextBody(text).edit(changes)
    made = recut(chunks, moved, data)
    assert [chunk.at for chunk in made] == [chunk.at for chunk in chunks]
    assert b"".join(chunk.data for chunk in made) == data
    return [chunk.data for chunk in made]


def test_chunks_are_cut_where_they_were() -> None:
    """Before an edit, after it, and in proportion inside of it."""
    assert after(cut(4, 4, 4), Edit(1, 3, "12345")) == [b"a12345d", b"efgh", b"ijkl"]
    assert after(cut(4, 4, 4), Edit(4, 8, "1")) == [b"abcd", b"1", b"ijkl"]
    assert after(cut(4, 4, 4), Edit(2, 6, "12345678")) == [b"ab1234", b"5678gh", b"ijkl"]
    assert after(cut(4, 4, 4), Edit(3, 11, "12345678")) == [b"abc1", b"2345", b"678l"]
    assert after(cut(4, 4, 4), Edit(0, 1, "xyz"), Edit(9, 10, "")) == [b"xyzbcd", b"efgh", b"ikl"]


def test_no_chunk_becomes_empty() -> None:
    """As far as there are bytes enough; empty chunks stay empty."""
    assert after(cut(4, 4, 4), Edit(0, 12, "123")) == [b"1", b"2", b"3"]
    assert after(cut(4, 4, 4), Edit(0, 12, "12")) == [b"", b"1", b"2"]
    assert after(cut(4, 0, 8), Edit(0, 12, "123456")) == [b"12", b"", b"3456"]
    assert after(cut(12, 0), Edit(0, 4, "1")) == [b"1efghijkl", b""]


def test_edits_of_letters_of_several_bytes() -> None:
    """Positions in the text are not those in the bytes; invalid bytes count one."""
    data = "äbc€fg".encode() + b"\xffhi"
    assert after(cut(3, 4, 5, data=data), Edit(2, 3, "ö")) == [
        "äb".encode(),
        "ö€".encode(),
        b"fg\xffhi",
    ]


# Headers


HEADERS = (("a", "b"), ("Content-Length", "10"), ("c", "d"))


def test_the_length_of_a_body() -> None:
    """It is that of the new body, or changes by so much, or is left out."""
    assert with_length(HEADERS, 7) == (("a", "b"), ("Content-Length", "7"), ("c", "d"))
    assert with_length(HEADERS, 0)[1] == ("Content-Length", "0")
    assert with_length(HEADERS, None, 5)[1] == ("Content-Length", "15")
    assert with_length(HEADERS, None, -3)[1] == ("Content-Length", "7")
    assert with_length(HEADERS, None, 0)[1] == ("Content-Length", "10")
    assert with_length(HEADERS, None) == (("a", "b"), ("c", "d"))
    assert with_length((("content-length", "x"), ("a", "b")), None, 5) == (("a", "b"),)
    assert with_length((("content-length", "x"),), 3) == (("content-length", "3"),)
    assert with_length((("a", "b"),), 7) == (("a", "b"),)
