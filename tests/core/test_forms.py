"""Forms with several parts are read as they were sent."""

from __future__ import annotations

import re
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.forms import MAX_HEAD, MAX_PARTS, FormPart, form_parts

_names = st.text("abcxyz_", min_size=1, max_size=8)


@given(st.dictionaries(_names, st.binary(max_size=200), min_size=1, max_size=4), st.data())
def test_a_client_writes_what_is_read(files: dict[str, bytes], data: st.DataObject) -> None:
    """Names, content types and bytes come back, whatever the bytes are; without the closing
    boundary there is nothing to read."""
    sent = {name: (f"{name}.bin", content, "a/b") for name, content in files.items()}
    request = httpx.Request("POST", "http://x", files=sent)
    kind, body = request.headers["content-type"], request.read()
    assert form_parts(kind, body) == [
        FormPart(name, f"{name}.bin", "a/b", content) for name, content in files.items()
    ]
    cut = data.draw(st.integers(0, len(body) - 5))
    assert form_parts(kind, body[:cut]) is None


def test_other_bodies_are_no_forms() -> None:
    """Neither is one whose header names no boundary."""
    assert form_parts("application/json", b"{}") is None
    assert form_parts("multipart/form-data", b"--x--") is None


def _form(head: str, data: str = "x", *, boundary: str = "b") -> bytes:
    return f"--{boundary}\r\n{head}\r\n\r\n{data}\r\n--{boundary}--\r\n".encode()


@pytest.mark.parametrize(
    ("parameters", "name", "filename"),
    [
        ("name=file; filename=a.txt", "file", "a.txt"),
        ('NAME="a;b"; filename = "c; name=d.txt"', "a;b", "c; name=d.txt"),
        (r'name="f"; filename="say \"hi\" \\ there.txt"', "f", r'say "hi" \ there.txt'),
        (r'name="f"; filename="a\b.txt"', "f", r"a\b.txt"),
        (r'name="f"; filename="C:\dir\a.txt"', "f", "a.txt"),
        (r'name="f"; filename="C:\\dir\\a.txt"', "f", "a.txt"),
        ("name=f; filename*=UTF-8''n%C3%A4me%20%22.txt", "f", 'näme ".txt'),
        ("name=f; filename*=iso-8859-1'en'%A3.txt; filename=fallback.txt", "f", "£.txt"),
        ("name=f; filename=\"fallback.txt\"; filename*=utf-8''%e2%82%ac", "f", "€"),
        ("name=f; filename*=unknown''%C3%A4", "f", "ä"),
        ("name=f; filename=a.txt; filename*=%C3%A4", "f", "a.txt"),
        ('name="f"; filename=""', "f", ""),
        ('name="ä"', "ä", None),
        ('name="f"; filename="open.txt', "f", "open.txt"),
        ('name="f"; filename="a%22b.txt"', "f", "a%22b.txt"),
        ("", "", None),
    ],
)
def test_names_are_read_as_services_read_them(
    parameters: str, name: str, filename: str | None
) -> None:
    """Quoted, escaped, with a charset, or as a path of Windows."""
    body = _form(f"content-type: a/b\r\nContent-Disposition: form-data; {parameters}")
    assert form_parts("multipart/form-data; boundary=b", body) == [
        FormPart(name, filename, "a/b", b"x")
    ]


@pytest.mark.parametrize("boundary", ['"a b"', r'"a\"b"', "b; charset=utf-8"])
def test_a_boundary_may_be_quoted(boundary: str) -> None:
    """As in any header with parameters."""
    plain = boundary.partition(";")[0].strip('"').replace("\\", "")
    body = _form("content-disposition: form-data; name=f", boundary=plain)
    parts = form_parts(f"Multipart/Form-Data; boundary={boundary}", body)
    assert parts == [FormPart("f", None, "", b"x")]


def test_only_lines_of_the_boundary_end_a_part() -> None:
    """The line of a longer boundary is data; padding, preamble and epilogue are not (RFC 2046,
    section 5.1.1)."""
    head = "content-disposition: form-data; name=f"
    body = _form(head, "x\r\n--bar\r\n--b-\r\n").replace(b"--b\r\n", b"--b \t\r\n")
    parts = form_parts("multipart/form-data; boundary=b", b"before\r\n" + body + b"after")
    assert parts == [FormPart("f", None, "", b"x\r\n--bar\r\n--b-\r\n")]


def test_a_part_without_headers_is_a_part() -> None:
    """It has no name."""
    parts = form_parts("multipart/form-data; boundary=b", b"--b\r\n\r\nx\r\n--b--")
    assert parts == [FormPart("", None, "", b"x")]
    assert form_parts("multipart/form-data; boundary=b", b"--b\r\nx\r\n--b--") is None


def test_headers_and_parts_are_bounded() -> None:
    """Up to the bound they are read; a form that has more is none."""
    kind, fits = "multipart/form-data; boundary=b", MAX_HEAD - len("x: \r\n\r\n") - 2
    assert form_parts(kind, _form(f"x: {'y' * fits}")) is not None
    assert form_parts(kind, _form(f"x: {'y' * (MAX_HEAD + 1)}")) is None
    part = b"--b\r\nx: y\r\n\r\n\r\n"
    parts = form_parts(kind, part * MAX_PARTS + b"--b--")
    assert parts is not None
    assert len(parts) == MAX_PARTS
    assert form_parts(kind, part * (MAX_PARTS + 1) + b"--b--") is None


_ODD = st.text(st.sampled_from("ab\";=\\ %*'\u20ac\r\n:,-"), max_size=12)


@given(_ODD, _ODD)
def test_what_libraries_write_is_read(name: str, filename: str) -> None:
    """httpx escapes backslashes and writes quotes as `%22`, as browsers do; so services read
    these."""
    request = httpx.Request("POST", "http://x", files={name: (filename, b"1", "a/b")})
    parts = form_parts(request.headers["content-type"], request.read())
    assert parts is not None
    (part,) = parts
    if not re.match(r"[A-Za-z]:\\|\\\\", filename):
        assert unquote(part.filename or "") == unquote(filename)
    assert unquote(part.name) == unquote(name)
