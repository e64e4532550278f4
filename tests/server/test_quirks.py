"""Quirks over HTTP: for a server, for a request, for a turn."""

from __future__ import annotations

import json

SCENARIO = """
scenario: weather
match: any
turns:
  - reply: {tool: get_weather, id: call_1, arguments: {city: Paris}}
"""
ASK = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}


def chunks(answer) -> list:
    """The JSON values of the events."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def entries(answer) -> list[dict]:
    """The entries of `tool_calls` in all chunks."""
    deltas = [choice["delta"] for chunk in chunks(answer) for choice in chunk["choices"]]
    return [entry for delta in deltas for entry in delta.get("tool_calls") or []]


def test_a_request_asks_for_a_quirk(serve) -> None:
    """The header gives the quirk to one answer, not to the next; the journal knows."""
    server = serve(SCENARIO)
    odd = server.http.post(
        "/v1/chat/completions", json=ASK, headers={"x-mockllm-quirk": "chat-index-missing"}
    )
    plain = server.http.post("/v1/chat/completions", json=ASK)
    assert all("index" not in entry for entry in entries(odd))
    assert all("index" in entry for entry in entries(plain))
    journal = server.journal()
    assert [exchange["quirks"] for exchange in journal] == [["chat-index-missing"], []]


def test_several_quirks_go_together(serve) -> None:
    """Names are separated by commas; those of the server come first."""
    server = serve(SCENARIO, quirks=("sse-crlf",))
    odd = server.http.post(
        "/v1/chat/completions",
        json=ASK,
        headers={"x-mockllm-quirk": "chat-args-whole , chat-no-done"},
    )
    assert b"\r\n\r\n" in odd.content
    assert b"[DONE]" not in odd.content
    assert [entry["function"]["arguments"] for entry in entries(odd)] == ['{"city":"Paris"}']


def test_an_unknown_quirk_is_refused(serve) -> None:
    """The 400 tells the nearest names, in the API's form."""
    server = serve(SCENARIO)
    answer = server.http.post(
        "/v1/chat/completions", json=ASK, headers={"x-mockllm-quirk": "chat-index-mising"}
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert "did you mean chat-index-missing" in error["message"]
    assert error["code"] == "unknown_quirk"


def test_a_turn_has_its_quirk_where_the_protocol_can(serve) -> None:
    """`wire.quirks` of Chat leaves the other protocols as they are."""
    quirky = SCENARIO + "    wire: {quirks: [chat-index-missing]}\n"
    plain, odd = serve(SCENARIO), serve(quirky)
    body = {"model": "gpt-4o", "stream": True, "input": "Hi"}
    told = [one.http.post("/v1/responses", json=body).text for one in (plain, odd)]
    assert told[0] == told[1]
    assert all("index" not in e for e in entries(odd.http.post("/v1/chat/completions", json=ASK)))


def test_an_answer_that_is_not_streamed_has_none(serve) -> None:
    """Quirks are of streams."""
    server = serve(SCENARIO, quirks=("chat-args-object",))
    answer = server.http.post("/v1/chat/completions", json={**ASK, "stream": False})
    call = answer.json()["choices"][0]["message"]["tool_calls"][0]
    assert call["function"]["arguments"] == '{"city":"Paris"}'


def test_the_content_type_may_be_another(serve) -> None:
    """A quirk of headers shows in them."""
    server = serve(SCENARIO)
    for variant, expected in (("json", "application/json"), ("none", None)):
        answer = server.http.post(
            "/v1/chat/completions",
            json=ASK,
            headers={"x-mockllm-quirk": f"sse-content-type:{variant}"},
        )
        assert answer.headers.get("content-type") == expected
        assert entries(answer)
