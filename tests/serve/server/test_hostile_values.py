"""Values that `python -m tests.fuzz` found: each was a 500, and is now refused in the form of its
API, or answered."""

import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from mockllm.core.errors import RequestError
from mockllm.play.replay.client_requests import first_body
from mockllm.scenario.model import ToolSpec
from mockllm.serve.server.control.control_routes import Control
from mockllm.serve.server.exchanges import Delivery
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.conftest import Served

ECHO = "{scenario: any, match: any, turns: [{reply: [{auto: true}]}]}"
KEYS = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k"}
DIGITS = "9" * 4400


@pytest.fixture
def served(serve: Callable[..., Served], caplog: pytest.LogCaptureFixture) -> Any:
    """A server that echoes; the test fails if a traceback is logged, or if an entry is `failed`."""
    found = serve(ECHO, grace=0)
    yield found
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert all(entry["outcome"] != "failed" for entry in found.journal())
    found.http.get("/_mockllm/verify").raise_for_status()


def send(served: Served, api: str, **fields: Any) -> httpx.Response:
    """Sends a request with further fields; a value in `Raw` is JSON text."""
    protocol = PROTOCOLS[api]
    body = {**first_body(protocol, "m", "hello"), **fields}
    text = json.dumps(body, default=lambda value: f"\x1a{value.text}\x1a")
    text = text.replace('"\\u001a', "").replace('\\u001a"', "")
    headers = {**KEYS, **protocol.client.headers, "content-type": "application/json"}
    return served.http.post(protocol.client.path_of("m"), content=text, headers=headers)


def error_of(api: str, answer: httpx.Response) -> str:
    """The text of an answer that has the form of an error of the API."""
    found = answer.json()
    value = found[0] if isinstance(found, list) else found
    form = PROTOCOLS[api].error_body(RequestError("x"))
    assert value.keys() - {"request_id"} == form.keys() - {"request_id"}
    return answer.text


class Raw:
    """A JSON text."""

    def __init__(self, text: str) -> None:
        self.text = text


@for_all("number", [DIGITS, f"-{DIGITS}", "NaN", "-Infinity", "1e400"])
@for_all("api", PROTOCOLS.over_http)
def test_a_number_that_cannot_be_read(served: Served, api: str, number: str) -> None:
    """The request is refused as one whose body is not JSON, by each API in its own form."""
    answer = send(served, api, temperature=Raw(number))
    assert answer.status_code in (400, 422)
    assert "We could not parse the JSON body of your request" in error_of(api, answer)


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_a_body_that_is_nested_deeply(served: Served, api: str) -> None:
    """It is answered or refused, also where Python reads it and cannot walk through it."""
    for levels in (90, 300, 100_000):
        deep = Raw('{"a":' * levels + "1" + "}" * levels)
        assert send(served, api, metadata=deep).status_code in (200, 400, 422)
    for levels in range(800, 980, 12):
        deep = Raw('{"a":' * levels + "1" + "}" * levels)
        tool = ToolSpec("f", "", {"type": "object", "properties": {"a": deep}})
        fields = first_body(PROTOCOLS[api], "m", "hello", [tool])
        assert send(served, api, **fields).status_code in (200, 400, 422)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"required": 5}, 400),
        ({"required": [{}]}, 400),
        ({"properties": {"a": {"type": "array", "maxItems": DIGITS}}}, 200),
    ],
)
def test_tools_of_gemini(served: Served, fields: dict[str, Any], status: int) -> None:
    """`required` is a list of strings, and a count is an int64."""
    declared = [{"name": "f", "parameters": {"type": "object", **fields}}]
    answer = send(served, "gemini", tools=[{"functionDeclarations": declared}])
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("config", [{"allowedFunctionNames": [{}], "mode": "ANY"}, {"mode": [{}]}])
def test_a_choice_of_gemini(served: Served, config: dict[str, Any]) -> None:
    """The mode is a string, and the functions are named by strings."""
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    answer = send(served, "gemini", tools=declared, toolConfig={"functionCallingConfig": config})
    assert answer.status_code == 400
    assert "function_calling_config" in error_of("gemini", answer)


def test_a_choice_of_chat(served: Served) -> None:
    """The type of a choice is a string."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    answer = send(served, "chat", tools=tools, tool_choice={"type": [None]})
    assert answer.status_code == 400


def test_numbers_in_queries(served: Served) -> None:
    """Python reads at most 4,300 digits."""
    version = {**KEYS, "anthropic-version": "2023-06-01"}
    send(served, "chat")
    for path in ("/_mockllm/verify?depth=", "/_mockllm/journal?session=default&after="):
        assert served.http.get(f"{path}{DIGITS}").status_code == 400
    answer = served.http.get(f"/v1/models?limit=00001{'0' * 4400}", headers=version)
    assert answer.status_code == 400
    assert "limit" in error_of("anthropic", answer)
    id = send(served, "responses", stream=False).json()["id"]
    items = served.http.get(f"/v1/responses/{id}/input_items?limit={DIGITS}", headers=KEYS)
    assert items.status_code == 400


@pytest.mark.parametrize("version", [{}, {"anthropic-version": "2023-06-01", "x-api-key": "k"}])
def test_a_model_with_a_slash(served: Served, version: dict[str, str]) -> None:
    """Models are listed as `mock/any`, and clients put that into a path as it is."""
    for path in ("/v1/models/mock/any", "/v1/models/mock%2Fany"):
        answer = served.http.get(path, headers={"authorization": "Bearer k", **version})
        assert (answer.status_code, answer.json()["id"]) == (200, "mock/any")


def test_a_target_with_an_origin(served: Served) -> None:
    """Clients that take the server for a proxy send one; its host counts (RFC 9112, 3.2.2)."""
    with httpx.Client(proxy=served.url) as client:
        assert client.get("http://127.0.0.1/v1/models", headers=KEYS).status_code == 200
        assert client.get("http://127.0.0.1/s/own/v1/models", headers=KEYS).status_code == 200
        assert client.get("http://127.0.0.1/_mockllm/journal").status_code == 200
        assert client.get("http://evil.example/_mockllm/journal").status_code == 403
    assert served.journal("own")[0]["path"] == "/v1/models"


def test_what_python_cannot_walk_through(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body with hundreds of levels is refused; with a few, it is a mistake of mockllm."""
    served = serve(ECHO)

    def broken(_: object) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    with monkeypatch.context() as patch:
        patch.setattr(served.server.player, "play", broken)
        deep = send(served, "anthropic", metadata=Raw("[" * 300 + "]" * 300))
        flat = send(served, "anthropic")
    assert (deep.status_code, flat.status_code) == (400, 500)
    assert "nested too deeply" in error_of("anthropic", deep)
    assert [entry["outcome"] for entry in served.journal()] == ["invalid", "failed"]


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
    assert (
        "KeyError at mockllm/serve/server/control/control_routes.py"
        in answer.json()["error"]["message"]
    )
    assert [entry["outcome"] for entry in served.journal()] == ["failed"]
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
        patch.setattr("mockllm.serve.server.control.control_routes.journal_parts", broken)
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
        patch.setattr(Delivery, "send", broken)
        answer = send(served, "anthropic")
    assert answer.status_code == 500
    assert "KeyError at mockllm/serve/server/handler.py" in error_of("anthropic", answer)
    assert [entry["outcome"] for entry in served.journal()] == ["failed"]
    assert caplog.records == []
