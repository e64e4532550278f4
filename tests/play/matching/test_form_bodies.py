"""Form bodies as JSON values."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.matching.fingerprint import form_fields

NAMES = st.text("abcdefgh_[]", min_size=1, max_size=8)
TEXTS = st.text(max_size=40).filter(lambda text: "--b0undary" not in text)


def body_of(pairs: list[tuple[str, str]], boundary: str) -> bytes:
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    ]
    return "".join([*parts, f"--{boundary}--\r\n"]).encode()


@given(st.lists(st.tuples(NAMES, TEXTS), min_size=1, max_size=5))
def test_the_fields_of_a_form_are_its_texts(pairs: list[tuple[str, str]]) -> None:
    """Each field is there with its text, a repeated one with all of them in order."""
    expected: dict[str, Any] = {}
    for name, value in pairs:
        expected.setdefault(name, []).append(value)
    kind = "Multipart/Form-Data; charset=utf-8; boundary=b0undary"
    found = form_fields(kind, body_of(pairs, "b0undary"))
    assert found == {
        name: values[0] if len(values) == 1 else values for name, values in expected.items()
    }


def test_a_file_is_its_name_type_size_and_digest() -> None:
    """The content itself is not in the value."""
    body = (
        b"--x\r\ncontent-type: audio/wav\r\n"
        b"content-disposition: form-data; name=\"file\"; filename*=utf-8''gr%C3%BC%C3%9Fe.wav\r\n"
        b"\r\nRIFF\r\n\xff\r\n--x--\r\n"
    )
    found = form_fields("multipart/form-data; boundary=x", body)
    assert found is not None
    assert found["file"] == {
        "filename": "grüße.wav",
        "content_type": "audio/wav",
        "size": 7,
        "sha256": hashlib.sha256(b"RIFF\r\n\xff").hexdigest(),
    }


def test_what_is_no_form_has_no_fields() -> None:
    """Another content type, a missing boundary and a form that breaks off are no form."""
    whole = body_of([("a", "1")], "b")
    assert form_fields("application/json", whole) is None
    assert form_fields("multipart/form-data", whole) is None
    assert form_fields("multipart/form-data; boundary=b", whole[:-6]) is None
    assert form_fields("multipart/form-data; boundary=c", whole) is None


def test_json_that_is_sent_as_a_form_is_no_form() -> None:
    """`curl -d` gives any body the content type of a form."""
    assert form_fields("application/x-www-form-urlencoded", b' {"a": 1}') is None


def test_a_url_encoded_form_has_its_fields() -> None:
    """`+` is a space; empty values stay."""
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    assert form_fields(kind, b"a=1+2&b=&a=%C3%BC") == {"a": ["1 2", "ü"], "b": ""}
