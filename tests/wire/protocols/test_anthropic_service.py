"""Anthropic Messages: credentials, headers, errors, models and token counts."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from anthropic.types import ModelInfo

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.turn import TokenUsage
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from mockllm.wire.protocols.base import Lookup, Reply
from tests.cases import for_all
from tests.wire.protocols.strict import problems


def test_headers_of_an_answer() -> None:
    """An answer has the service's headers: a request id and the remaining limits."""
    reply = Reply("seed", "0" * 40, "m", None, TokenUsage(100, 50))
    headers = PROTOCOL.headers(reply, True)
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["request-id"].startswith("req_01")
    own = headers["anthropic-organization-id"]
    assert str(UUID(own)) == own
    failed = PROTOCOL.error_headers("other", RequestError("m"))
    assert failed["anthropic-organization-id"] == own
    assert headers["anthropic-ratelimit-input-tokens-remaining"] == "399900"
    assert re.fullmatch(
        r"2026-\d\d-\d\dT\d\d:\d\d:\d\dZ", headers["anthropic-ratelimit-tokens-reset"]
    )
    assert PROTOCOL.headers(reply, False)["content-type"] == "application/json"


@for_all(
    ("status", "type"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (409, "conflict_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_by_status(status: int, type: str) -> None:
    """Each status has its error type, and the same request id in the body as in the header."""
    error = RequestError("No.", status=status)
    body = PROTOCOL.error_body(error)
    assert body["type"] == "error"
    assert body["error"] == {"type": type, "message": "No."}
    assert PROTOCOL.error_headers("seed", error)["request-id"] == body["request_id"]


def test_errors_have_identifiers_of_their_own() -> None:
    """Two errors of one status have different request ids."""
    ids = {PROTOCOL.error_body(RequestError(text))["request_id"] for text in ("No.", "Never.")}
    assert len(ids) == 2


def test_rate_limit_headers() -> None:
    """A 429 has `retry-after`, and remaining limits of 0."""
    error = RequestError("No.", status=429, retry_after=0.25)
    headers = PROTOCOL.error_headers("seed", error)
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "250")
    assert headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert "anthropic-ratelimit-output-tokens-reset" in headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"anthropic-version": "2023-06-01"}, 401),
        ({"x-api-key": "k"}, 400),
        ({"x-api-key": "k", "anthropic-version": "2023-06-01"}, None),
        ({"authorization": "Bearer k", "anthropic-version": "2026-10-21"}, None),
    ],
)
def test_guard(headers: dict[str, str], status: int | None) -> None:
    """A credential of either kind and a version are required; any value is accepted."""
    assert PROTOCOL.guard is not None
    if status is None:
        PROTOCOL.guard(headers, NO_TARGET)
        return
    with pytest.raises(RequestError) as caught:
        PROTOCOL.guard(headers, NO_TARGET)
    assert caught.value.status == status


def test_models_are_typed() -> None:
    """The list of models is paged and has this API's shape."""
    names = ("a", "b", "c")
    page = PROTOCOL.lookups["models"](Lookup(models=names, target=Target(query={"limit": "2"})))
    assert [problems(ModelInfo, item) for item in page["data"]] == [[], []]
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("a", "b", True)
    rest = PROTOCOL.lookups["models"](Lookup(models=names, target=Target(query={"after_id": "b"})))
    assert ([item["id"] for item in rest["data"]], rest["has_more"]) == (["c"], False)
    back = PROTOCOL.lookups["models"](
        Lookup(models=names, target=Target(query={"before_id": "c", "limit": "1"}))
    )
    assert ([item["id"] for item in back["data"]], back["has_more"]) == (["b"], True)
    with pytest.raises(RequestError, match="limit"):
        PROTOCOL.lookups["models"](Lookup(target=Target(query={"limit": "many"})))


def test_one_model() -> None:
    """A model is looked up by name; an unknown one is a 404 where only served models are
    answered."""
    assert PROTOCOL.lookups["model"](Lookup(Target({"model": "x"})))["id"] == "x"
    with pytest.raises(RequestError) as caught:
        PROTOCOL.lookups["model"](Lookup(Target({"model": "x"}), any_model=False))
    assert caught.value.status == 404


def test_count_tokens() -> None:
    """Every text of the request is counted, those of calls, results and tools included."""

    def counted(**fields: Any) -> int:
        count = PROTOCOL.lookups["count_tokens"](Lookup(request={"model": "m", **fields}))
        assert list(count) == ["input_tokens"]
        return int(count["input_tokens"])

    user = {"role": "user", "content": "12345678"}
    assert counted(messages=[user]) == 2
    assert counted(messages=[user], system="1234") == 3
    use = {"type": "tool_use", "id": "t", "name": "name", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "four"}
    history = [
        user,
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    assert counted(messages=history) == 5
    assert counted(messages=[user], tools=[{"name": "name", "input_schema": {}}]) == 4
    with pytest.raises(RequestError, match="messages: Field required"):
        counted()
