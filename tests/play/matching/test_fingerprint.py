"""Digests of requests: what counts, and what does not."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.request import Request
from mockllm.play.matching.fingerprint import (
    redacted_strings,
    request_digest,
    route_digest,
    without,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
BODIES = st.dictionaries(st.text(), JSON, max_size=4)


def chat(body: dict[str, Any], **fields: Any) -> Request:
    return Request("chat", "gpt", body, **fields)


@given(BODIES)
def test_the_order_of_fields_does_not_count(body: dict[str, Any]) -> None:
    """A client may write the fields of its objects in any order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert request_digest(chat(body)) == request_digest(chat(turned(body)))


@given(BODIES, BODIES)
def test_different_bodies_have_different_digests(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    """Any difference counts, wherever it is; 1 and true are different."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (request_digest(chat(one)) == request_digest(chat(other))) is same


def test_model_stream_and_api_count() -> None:
    """Gemini has model and streaming in its path: they count although the bodies are equal."""
    digests = {
        request_digest(Request(api, model, {}, stream=stream))
        for api in ("chat", "gemini")
        for model in ("a", "b")
        for stream in (False, True)
    }
    assert len(digests) == 8


def test_uuids_do_not_count_but_their_sameness_does() -> None:
    """Clients make up UUIDs in each run. Two equal ones stay equal."""
    first, second = "0F8FAD5B-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
    other = "16fd2706-8baf-433b-82eb-8c7fada847da"
    digest = request_digest(chat({"run": f"r-{first}", "parent": first.lower()}))
    assert digest == request_digest(chat({"run": f"r-{other}", "parent": other}))
    assert digest != request_digest(chat({"run": f"r-{first}", "parent": second}))


@given(BODIES, st.text())
def test_redacted_strings_do_not_count(body: dict[str, Any], secret: str) -> None:
    """The digest of a request is the same with the secret and with what replaced it."""
    sent = {**body, "messages": [{"content": f"mail {secret}", "a/b~c": secret}]}
    kept = {**body, "messages": [{"content": "mail REDACTED-1", "a/b~c": "REDACTED-1"}]}
    pointers = ("/messages/0/content", "/messages/0/a~1b~0c")
    assert redacted_strings(kept["messages"], lambda text: "REDACTED" in text) == (
        "/0/content",
        "/0/a~1b~0c",
    )
    assert request_digest(chat(sent), pointers) == request_digest(chat(kept), pointers)
    assert without(sent, ["/nowhere/0", "/messages/7/content", "/messages"]) == sent


def form(boundary: str, *, name: str = "a.png", content: bytes = b"\x89PNG") -> bytes:
    return (
        (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nvision\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: image/png\r\n\r\n"
        ).encode()
        + content
        + f"\r\n--{boundary}--\r\n".encode()
    )


def upload(boundary: str, **more: Any) -> str:
    kind = f'multipart/form-data; boundary="{boundary}"'
    return route_digest("POST", "/v1/files", "", kind, form(boundary, **more))


def test_the_boundary_of_a_form_does_not_count() -> None:
    """Each upload has another boundary. File name and content count."""
    assert upload("abc") == upload("xyz-9")
    assert len({upload("b"), upload("b", name="b.png"), upload("b", content=b"GIF")}) == 3


def test_the_query_of_a_route_counts_but_not_its_order() -> None:
    """`?a=1&b=2` is `?b=2&a=1`, and not `?a=1`."""

    def get(query: str, method: str = "GET") -> str:
        return route_digest(method, "/v1/models", query, "", b"")

    assert get("a=1&b=2") == get("b=2&a=1")
    assert len({get(""), get("a=1"), get("a=2"), get("", "DELETE")}) == 4
