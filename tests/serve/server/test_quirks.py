"""Quirks over HTTP: for a server, for a request, for a turn."""

from __future__ import annotations

import json

SCENARIO = """
scenario: weather
match: any
turns:
  - reply: {tool: get_weather, id: call_1, arguments: {city: Paris}}
"""
REQUEST = {"model": "gpt-4o", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}


def chunks(answer) -> list:
    """The JSON values of the events."""
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def entries(answer) -> list[dict]:
    """The entries of `tool_calls` in all chunks."""
    deltas = [choice["delta"] for chunk in chunks(answer) for choice in chunk["choices"]]
    return [entry for delta in deltas for entry in delta.get("tool_calls") or []]


def test_a_header_applies_a_quirk_to_one_answer(serve) -> None:
    """The next answer has no quirk, and the journal names the quirk of each."""
    server = serve(SCENARIO)
    odd = server.http.post(
        "/v1/chat/completions", json=REQUEST, headers={"x-mockllm-quirk": "chat-index-missing"}
    )
    plain = server.http.post("/v1/chat/completions", json=REQUEST)
    assert all("index" not in entry for entry in entries(odd))
    assert all("index" in entry for entry in entries(plain))
    journal = server.journal()
    assert [exchange["quirks"] for exchange in journal] == [["chat-index-missing"], []]


def test_several_quirks_go_together(serve) -> None:
    """Names are separated by commas; the server's quirks come first."""
    server = serve(SCENARIO, quirks=("sse-crlf",))
    odd = server.http.post(
        "/v1/chat/completions",
        json=REQUEST,
        headers={"x-mockllm-quirk": "chat-args-whole , chat-no-done"},
    )
    assert b"\r\n\r\n" in odd.content
    assert b"[DONE]" not in odd.content
    assert [entry["function"]["arguments"] for entry in entries(odd)] == ['{"city":"Paris"}']


def test_an_unknown_quirk_is_refused(serve) -> None:
    """The 400 suggests the nearest names, in the API's shape."""
    server = serve(SCENARIO)
    answer = server.http.post(
        "/v1/chat/completions", json=REQUEST, headers={"x-mockllm-quirk": "chat-index-mising"}
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert "did you mean 'chat-index-missing'" in error["message"]
    assert error["code"] == "unknown_quirk"


def test_a_quirk_of_another_protocol_changes_nothing(serve) -> None:
    """A Chat quirk in `wire.quirks` leaves the other protocols as they are."""
    quirky = SCENARIO + "    wire: {quirks: [chat-index-missing]}\n"
    plain, odd = serve(SCENARIO), serve(quirky)
    body = {"model": "gpt-4o", "stream": True, "input": "Hi"}
    texts = [one.http.post("/v1/responses", json=body).text for one in (plain, odd)]
    assert texts[0] == texts[1]
    assert all(
        "index" not in e for e in entries(odd.http.post("/v1/chat/completions", json=REQUEST))
    )


def test_quirks_change_streams_only(serve) -> None:
    """An answer that is not streamed is the same with the quirk."""
    server = serve(SCENARIO, quirks=("chat-args-object",))
    answer = server.http.post("/v1/chat/completions", json={**REQUEST, "stream": False})
    call = answer.json()["choices"][0]["message"]["tool_calls"][0]
    assert call["function"]["arguments"] == '{"city":"Paris"}'


def test_a_quirk_may_change_the_content_type(serve) -> None:
    """A quirk of headers sends another content type, or none."""
    server = serve(SCENARIO)
    for variant, expected in (("json", "application/json"), ("none", None)):
        answer = server.http.post(
            "/v1/chat/completions",
            json=REQUEST,
            headers={"x-mockllm-quirk": f"sse-content-type:{variant}"},
        )
        assert answer.headers.get("content-type") == expected
        assert entries(answer)
