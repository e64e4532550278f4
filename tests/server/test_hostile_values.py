"""Values that fuzzing found (`python -m tests.fuzz`): each was a 500, and is now refused in the form
of its API, or answered."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from mockllm.protocols import PROTOCOLS
from mockllm.protocols.anthropic_messages import PROTOCOL as ANTHROPIC
from mockllm.protocols.gemini import PROTOCOL as GEMINI
from mockllm.server.control import Control
from mockllm.server.handler import Handler
from tests.conftest import Served

ECHO = "{scenario: any, match: any, turns: [{auto: true}]}"
KEYS = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k"}
DIGITS = "9" * 4400
LEVELS = 950


@pytest.fixture
def served(serve: Callable[..., Served], caplog: pytest.LogCaptureFixture) -> Any:
    """A server that echoes; the test fails if a traceback is logged, or if an entry is `failed`."""
    found = serve(ECHO, grace=0)
    yield found
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert all(one["outcome"] != "failed" for one in found.journal())
    found.http.get("/_mockllm/verify").raise_for_status()


def send(served: Served, api: str, **fields: Any) -> httpx.Response:
    """Sends a request with further fields; a value in `Raw` is JSON text."""
    protocol = PROTOCOLS[api]
    body = {**protocol.client.first_request("m", "hello"), **fields}
    text = json.dumps(body, default=lambda value: f"\x1a{value.text}\x1a")
    text = text.replace('"\\u001a', "").replace('\\u001a"', "")
    headers = {**KEYS, **protocol.client.headers, "content-type": "application/json"}
    return served.http.post(protocol.client.path_of("m"), content=text, headers=headers)


class Raw:
    """A JSON text."""

    def __init__(self, text: str) -> None:
        self.text = text


@pytest.mark.parametrize("number", [DIGITS, f"-{DIGITS}", "NaN", "-Infinity", "1e400"])
@pytest.mark.parametrize("api", PROTOCOLS)
def test_a_number_that_cannot_be_read(served: Served, api: str, number: str) -> None:
    """The request is refused as one whose body is not JSON, by each API in its own form."""
    answer = send(served, api, temperature=Raw(number))
    assert answer.status_code in (400, 422)
    found = answer.json()
    error = PROTOCOLS[api].decode_error(found[0] if isinstance(found, list) else found)
    assert error is not None
    assert "number" in error.message or "digits" in error.message or "JSON" in error.message


@pytest.mark.parametrize("api", PROTOCOLS)
def test_a_body_that_is_nested_deeply(served: Served, api: str) -> None:
    """It is answered or refused, also where Python reads it and cannot walk through it."""
    for levels in (90, 300, LEVELS, 100_000):
        deep = Raw('{"a":' * levels + "1" + "}" * levels)
        assert send(served, api, metadata=deep).status_code in (200, 400, 422)
    tools = PROTOCOLS[api].client.tools([])
    assert send(served, api, **{name: deep for name in tools}).status_code in (200, 400, 422)


@pytest.mark.parametrize(
    "tools",
    [
        {"functionDeclarations": [{"name": "f", "parameters": {"type": "object", "required": 5}}]},
        {
            "functionDeclarations": [
                {"name": "f", "parameters": {"type": "object", "required": [{}]}}
            ]
        },
        {
            "functionDeclarations": [
                {"name": "f", "parameters": {"type": "object", "maxItems": DIGITS}}
            ]
        },
    ],
)
def test_tools_of_gemini(served: Served, tools: dict[str, Any]) -> None:
    """`required` is a list of strings, and a count is an int64."""
    answer = send(served, "gemini", tools=[tools])
    assert answer.status_code == (200 if "maxItems" in str(tools) else 400)


@pytest.mark.parametrize("config", [{"allowedFunctionNames": [{}], "mode": "ANY"}, {"mode": [{}]}])
def test_a_choice_of_gemini(served: Served, config: dict[str, Any]) -> None:
    """The mode is a string, and the functions are named by strings."""
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    answer = send(served, "gemini", tools=declared, toolConfig={"functionCallingConfig": config})
    assert answer.status_code == 400
    assert GEMINI.decode_error(answer.json()) is not None


def test_a_choice_of_chat(served: Served) -> None:
    """The type of a choice is a string."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    answer = send(served, "chat", tools=tools, tool_choice={"type": [None]})
    assert answer.status_code == 400


def test_numbers_in_queries(served: Served) -> None:
    """Python reads at most 4,300 digits."""
    version = {**KEYS, "anthropic-version": "2023-06-01"}
    for path in ("/_mockllm/verify?depth=", "/_mockllm/journal?session=default&after="):
        assert served.http.get(f"{path}{DIGITS}").status_code == 400
    answer = served.http.get(f"/v1/models?limit=00001{'0' * 4400}", headers=version)
    assert answer.status_code == 400
    assert ANTHROPIC.decode_error(answer.json()) is not None
    id = send(served, "responses", stream=False).json()["id"]
    items = served.http.get(f"/v1/responses/{id}/input_items?limit={DIGITS}", headers=KEYS)
    assert items.status_code == 400


@pytest.mark.parametrize("version", [{}, {"anthropic-version": "2023-06-01"}])
def test_a_model_with_a_slash(served: Served, version: dict[str, str]) -> None:
    """Models are listed as `mock/any`, and clients put that into a path as it is."""
    for path in ("/v1/models/mock/any", "/v1/models/mock%2Fany"):
        answer = served.http.get(path, headers={**KEYS, **version})
        assert (answer.status_code, answer.json()["id"]) == (200, "mock/any")


def test_a_target_with_an_origin(served: Served) -> None:
    """Clients that take the server for a proxy send one; its host counts (RFC 9112, 3.2.2)."""
    with httpx.Client(proxy=served.url) as client:
        assert client.get("http://127.0.0.1/v1/models", headers=KEYS).status_code == 200
        assert client.get("http://127.0.0.1/s/own/v1/models", headers=KEYS).status_code == 200
        assert client.get("http://127.0.0.1/_mockllm/journal").status_code == 200
        assert client.get("http://evil.example/_mockllm/journal").status_code == 403
    assert served.journal("own")[0]["path"] == "/v1/models"


def test_a_control_route_that_fails(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in the journal, so that the verdict is bad."""
    served = serve(ECHO)

    def broken(*_: object) -> None:
        raise KeyError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(Control, "_list", broken)
        answer = served.http.get("/_mockllm/sessions")
    assert answer.status_code == 500
    assert "KeyError at mockllm/server/control.py" in answer.json()["error"]["message"]
    assert [one["outcome"] for one in served.journal()] == ["failed"]
    assert served.http.get("/_mockllm/verify").json()["failed"] == [1]


@pytest.mark.parametrize("entries", [0, 20])
def test_a_journal_that_fails(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    """An error before the first byte is a 500; after it, the answer breaks off: no second answer
    follows within it."""
    served = serve(ECHO, fallback=True)
    large = "x" * 4000
    for _ in range(entries):
        send(served, "chat", stream=False, messages=[{"role": "user", "content": large}])

    async def broken(*_: object) -> Any:
        for _ in range(entries):
            yield b" " * 8000
        raise KeyError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr("mockllm.server.control.journal_parts", broken)
        if entries:
            with pytest.raises(httpx.RemoteProtocolError):
                served.http.get("/_mockllm/journal")
        else:
            assert served.http.get("/_mockllm/journal").status_code == 500
    assert served.journal()[-1]["outcome"] == "failed"


def test_an_error_outside_of_an_answer(
    serve: Callable[..., Served],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing reaches aiohttp's own answer: plain text, and a traceback in the log."""
    served = serve(ECHO)

    def broken(*_: object) -> None:
        raise KeyError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(Handler, "_about_server", broken)
        answer = send(served, "anthropic")
    assert answer.status_code == 500
    assert ANTHROPIC.decode_error(answer.json()) is not None
    assert [one["outcome"] for one in served.journal()] == ["failed"]
    assert caplog.records == []
