"""Encodings inside a text: what they hold, and where in the original each character is."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.record.redaction.find.bodies import Edit, TextBody
from mockllm.record.redaction.find.spans import (
    Base64Run,
    View,
    base64_runs,
    decode_percent,
    unescape_json,
)


@pytest.mark.parametrize(
    ("text", "plain", "starts"),
    [
        (r"a\nb", "a\nb", [0, 1, 3, 4]),
        (r"\u0041x\ud83d\ude00y", "Ax😀y", [0, 6, 7, 19, 20]),
        (r"\uDBFF\uDFFF", "\U0010ffff", [0, 12]),
        (r"\"q\"\\\/", '"q"\\/', [0, 2, 3, 5, 7, 9]),
        (r"\b\f\r\t", "\b\f\r\t", [0, 2, 4, 6, 8]),
        (r"\ud83d", "\ud83d", [0, 6]),
        (r"\ud83d\n", "\ud83d\n", [0, 6, 8]),
        (r"x\y\n", "x\\y\n", [0, 1, 2, 3, 5]),
    ],
)
def test_escapes_of_json(text: str, plain: str, starts: list[int]) -> None:
    """A pair of surrogates is one character; what is no escape stays."""
    view = unescape_json(text)
    assert view is not None
    assert (view.text, list(view.starts)) == (plain, starts)


@pytest.mark.parametrize("text", ["", "plain", r"\x", "\\", r"\u12"])
def test_a_text_without_escapes(text: str) -> None:
    """There is no other text in it."""
    assert unescape_json(text) is None


def consistent(view: View, original: str) -> None:
    """Positions rise, and characters that are not escaped are where they were."""
    starts = list(view.starts)
    assert (starts[0], starts[-1]) == (0, len(original))
    assert len(starts) == len(view.text) + 1
    assert starts == sorted(set(starts))
    for index, char in enumerate(view.text):
        if starts[index + 1] == starts[index] + 1:
            assert original[starts[index]] == char


@given(st.text(), st.booleans())
def test_any_json_string_is_unescaped(text: str, ascii_only: bool) -> None:
    """The inverse of `json.dumps`."""
    original = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
    view = unescape_json(original)
    if view is None:
        assert original == text
        return
    assert view.text == json.loads(f'"{original}"')
    consistent(view, original)


@pytest.mark.parametrize(
    ("text", "plain", "starts"),
    [
        ("a%41b", "aAb", [0, 1, 4, 5]),
        ("%7e%7F", "~\x7f", [0, 3, 6]),
        ("%zz%41", "%zzA", [0, 1, 2, 3, 6]),
        ("%C3%A9%40", "%C3%A9@", [0, 1, 2, 3, 4, 5, 6, 9]),
    ],
)
def test_escapes_of_urls(text: str, plain: str, starts: list[int]) -> None:
    """Those that stand for ASCII; others stay."""
    view = decode_percent(text)
    assert view is not None
    assert (view.text, list(view.starts)) == (plain, starts)


@pytest.mark.parametrize("text", ["", "plain", "100%", "%2", "%80", "%gg"])
def test_a_text_without_escapes_of_urls(text: str) -> None:
    """There is no other text in it."""
    assert decode_percent(text) is None


@given(st.text(st.characters(max_codepoint=127)))
def test_any_ascii_is_percent_decoded(text: str) -> None:
    """The inverse of `quote`."""
    original = quote(text, safe="")
    view = decode_percent(original)
    if view is None:
        assert original == text
    else:
        assert view.text == text
        consistent(view, original)


TEXT = "hello world!!"
LETTERS = "ÿÿ>>>???" * 3


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("x aGVsbG8gd29ybGQhIQ== y", Base64Run(2, 22, TextBody(TEXT), False, True)),
        ("aGVsbG8gd29ybGQhIQ", Base64Run(0, 18, TextBody(TEXT), False, False)),
        (
            base64.b64encode(LETTERS.encode()).decode(),
            Base64Run(0, 40, TextBody(LETTERS), False, True),
        ),
        (
            base64.urlsafe_b64encode(LETTERS.encode()).decode(),
            Base64Run(0, 40, TextBody(LETTERS), True, True),
        ),
    ],
)
def test_base64(text: str, run: Base64Run) -> None:
    """Of either alphabet, padded or not."""
    assert list(base64_runs(text)) == [run]
    assert run.edit([]) == text[run.start : run.end]


@pytest.mark.parametrize(
    "text",
    [
        "aGVsbG8gd29ybGQ",  # 15 characters could be a word
        "_" * 16,
        "aaaaaaaaaaaaaaaaa",  # 17 are no base64
        "aGVsbG8gd29ybGQhIQ/_",  # of both alphabets
        base64.b64encode(bytes(range(128, 200))).decode(),
        base64.b64encode(b"text" * 20 + b"\xff").decode(),
        base64.b64encode(b"\xff" + b"text" * 20).decode(),
    ],
)
def test_what_is_no_text_in_base64(text: str) -> None:
    """Short words, other bytes, at the beginning or at the end."""
    assert list(base64_runs(text)) == []


@pytest.mark.parametrize("before", ["", "a", "ab"])
@pytest.mark.parametrize("letter", ["é", "€", "😀"])
def test_a_long_text_is_cut_anywhere(before: str, letter: str) -> None:
    """Its first characters are looked at first, which may end inside of a letter."""
    text = before + letter * 100
    written = base64.b64encode(text.encode()).decode()
    assert [run.text for run in base64_runs(f"({written})")] == [text]


@given(st.text(min_size=12, max_size=90), st.booleans(), st.booleans())
def test_a_text_is_encoded_in_the_same_variant(text: str, url_safe: bool, padded: bool) -> None:
    """Another text in its place has the same alphabet and padding."""
    run = Base64Run(0, 0, TextBody(""), url_safe, padded)
    written = run.edit([Edit(0, 0, text)])
    data = base64.urlsafe_b64decode(written + "===") if url_safe else base64.b64decode(
        written + "==="
    )  # fmt: skip
    assert data.decode() == text
    assert (len(written) % 4 == 0) or not padded
    assert padded or not written.endswith("=")
    assert set("+/").isdisjoint(written) if url_safe else set("-_").isdisjoint(written)


def test_bytes_that_are_no_utf_8_are_encoded_back() -> None:
    """Bodies have them as surrogates."""
    run = Base64Run(0, 0, TextBody(""), False, True)
    assert run.edit([Edit(0, 0, "a\udcff")]) == base64.b64encode(b"a\xff").decode()
