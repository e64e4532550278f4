"""Code that Chat Completions and Responses share: errors, headers, and the checks of tools."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.request import CallEcho
from mockllm.core.turn import TokenUsage
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_common import (
    answer_headers,
    check_tool,
    error_body,
    error_headers,
    read_call,
    text_of,
)

REPLY = Reply("seed", "0" * 40, "gpt-9", None, TokenUsage(11, 7))


@pytest.mark.parametrize(
    ("error", "type_", "code"),
    [
        (RequestError("m", param="n"), "invalid_request_error", None),
        (RequestError("m", status=401), "invalid_request_error", "invalid_api_key"),
        (RequestError("m", status=404, code="model_not_found"), "invalid_request_error", None),
        (RequestError("m", status=429), "requests", "rate_limit_exceeded"),
        (RequestError("m", status=429, type="tokens"), "tokens", None),
        (RequestError("m", status=500), "server_error", None),
        (RequestError("m", status=529), "server_error", None),
    ],
)
def test_error_body(error: RequestError, type_: str, code: str | None) -> None:
    """An error has the four fields, with the usual type and code of its status."""
    body = error_body(error)["error"]
    assert list(body) == ["message", "type", "param", "code"]
    assert (body["type"], body["code"]) == (type_, error.code or code)
    assert body["param"] == error.param


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"arguments": "{}"}, "{}"), ({"arguments": {"n": 1}}, '{"n":1}'), ({}, "absent")],
)
def test_arguments_of_a_call(arguments: dict[str, Any], text: str) -> None:
    """Text is kept as it is, another value is written as JSON; the caller says what none are."""
    call = {"id": "c", "function": {"name": "f", **arguments}}
    assert read_call(call, absent="absent") == CallEcho("c", "f", text)


def test_error_headers() -> None:
    """A rate limit has the time to wait, in whole seconds and in milliseconds."""
    headers = error_headers("seed", RequestError("m", status=429, retry_after=0.25))
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "250")
    assert headers["x-ratelimit-remaining-requests"] == "0"
    assert headers["x-ratelimit-reset-requests"] == "250ms"
    assert headers["x-request-id"].startswith("req_")
    plain = error_headers("seed", RequestError("m"))
    assert not {"retry-after", "x-ratelimit-limit-requests"} & plain.keys()


def test_answer_headers() -> None:
    """A stream is an uncached event stream, a body is JSON; both carry the same request id."""
    stream, body = answer_headers(REPLY, True), answer_headers(REPLY, False)
    assert stream["content-type"] == "text/event-stream; charset=utf-8"
    assert stream["cache-control"] == "no-cache"
    assert body["content-type"] == "application/json"
    assert stream["x-request-id"] == body["x-request-id"]
    failed = error_headers("other", RequestError("m"))
    for name, begin in (("openai-organization", "user-"), ("openai-project", "proj_")):
        assert stream[name] == failed[name]
        assert len(stream[name]) == len(begin) + 24
        assert stream[name].startswith(begin)
    assert stream["openai-version"] == "2020-10-01"
    assert stream["x-ratelimit-remaining-tokens"] == str(30_000_000 - 18)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.006, "6ms"), (1, "1s"), (1.5, "1.5s"), (360, "6m0s"), (3600, "1h0m0s")],
)
def test_reset_durations(seconds: float, text: str) -> None:
    """Rate limits reset after a duration as the service writes it."""
    headers = error_headers("seed", RequestError("m", status=429, retry_after=seconds))
    assert headers["x-ratelimit-reset-tokens"] == text


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": True, "b": {"anyOf": []}}, "required": ["a"]},
    ],
)
def test_schemas_that_pass(schema: Any) -> None:
    """Parameters may be left out, or be the schema of an object."""
    check_tool("find-it_2", schema, "tools[0]")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["object", "null"]},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": 1}},
        {"type": "object", "required": "a"},
        {"type": "object", "required": [1]},
    ],
)
def test_schemas_that_do_not_pass(schema: Any) -> None:
    """A schema of another shape is refused with the function's name and the path."""
    with pytest.raises(RequestError, match="Invalid schema for function 'find'") as caught:
        check_tool("find", schema, "tools[3]")
    assert caught.value.param == "tools[3].parameters"


def test_lenient_text() -> None:
    """A value without text is an empty text, unless strict."""
    assert text_of([1, "a", {"text": "b"}, {"type": "text"}]) == "ab"
    assert text_of(5) == ""
