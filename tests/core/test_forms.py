"""Forms with several parts are read as they were sent."""

from __future__ import annotations

import httpx
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.forms import FormPart, form_parts

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
