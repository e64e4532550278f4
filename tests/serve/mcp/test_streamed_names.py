"""`reply: {tool: weather.get_forecast}` over each API, for each way in which clients name tools."""

import pytest

from mockllm import loads
from mockllm.core.jsontext import json_bytes
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import ToolSpec
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import dumps
from tests.serve.mcp.servers import BOTH

CHAT = "/v1/chat/completions"
NAMES = [
    "mcp__weather__get_forecast",
    "mcp_weather_get_forecast",
    "weather_get_forecast",
    "get_forecast",
    "mcp_weather__get_forecast",
]


def chat(name, *history):
    """A request of a client that calls the tool so."""
    city = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"type": "function", "function": {"name": name, "parameters": city}}
    messages = [{"role": "user", "content": "umbrella?"}, *history]
    return {"model": "m", "messages": messages, "tools": [tool]}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_has_the_name_that_the_request_offers(serve, name):
    """And the history with that name leads on to the next turn."""
    served = serve(BOTH)
    answer = served.http.post(CHAT, json=chat(name)).json()
    message = answer["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == name
    answered = {"role": "tool", "tool_call_id": "call_1", "content": "Rain in Oslo"}
    ended = served.http.post(CHAT, json=chat(name, message, answered)).json()
    assert ended["choices"][0]["message"]["content"] == "Take an umbrella."
    verdict = served.http.get("/_mockllm/verify").json()
    broken = {one["invariant"] for one in verdict["violations"]}
    assert broken == {"call-reached-tool", "tools-offered"}  # this client knows no server


def test_a_codex_namespace_holds_the_tool(serve):
    """Its calls name the namespace and the tool."""
    inner = {"type": "function", "name": "get_forecast", "parameters": {"type": "object"}}
    offer = {"type": "namespace", "name": "mcp__weather", "description": "", "tools": [inner]}
    body = {"model": "m", "input": "umbrella?", "tools": [offer]}
    answer = serve(BOTH).http.post("/v1/responses", json=body).json()
    (call,) = answer["output"]
    assert (call["namespace"], call["name"]) == ("mcp__weather", "get_forecast")


TWO = """
mcp: music
tools: [{name: get_forecast, parameters: {type: object, properties: {song: {type: string}}}}]
---
"""


def test_codex_namespaces_may_hold_tools_of_one_name(serve):
    """Two servers have it; the namespace says whose it is, also in the history."""
    text = BOTH.replace(
        "arguments: {city: Oslo}}\n  - reply",
        "arguments: {city: Oslo}}\n  - reply: {tool: music.get_forecast, id: call_2}\n  - reply",
    )
    spaces = [
        {"type": "namespace", "name": f"mcp__{server}", "description": "", "tools": [
            {"type": "function", "name": "get_forecast", "parameters": {"type": "object"}}]}
        for server in ("weather", "music")
    ]  # fmt: skip
    served, items = serve(f"{TWO}{text}"), [{"role": "user", "content": "umbrella?"}]
    for number, space in enumerate(["mcp__weather", "mcp__music"], 1):
        body = {"model": "m", "input": items, "tools": spaces}
        (call,) = served.http.post("/v1/responses", json=body).json()["output"]
        assert (call["namespace"], call["name"]) == (space, "get_forecast")
        result = {"type": "function_call_output", "call_id": f"call_{number}", "output": "Rain"}
        items += [call, result]
    ended = served.http.post("/v1/responses", json={**body, "input": items}).json()
    assert ended["output"][0]["content"][0]["text"] == "Take an umbrella."
    broken = served.http.get("/_mockllm/verify").json()["violations"]
    assert {one["invariant"] for one in broken} == {"call-reached-tool", "tools-offered"}


def test_a_tool_that_is_not_offered_refuses_the_request(serve):
    """With the names that are, so that nobody looks for the mistake in the model."""
    served = serve(BOTH)
    answer = served.http.post(CHAT, json=chat("search"))
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "calls weather.get_forecast" in message
    assert "it offers: search" in message
    assert served.journal()[0]["outcome"] == "invalid"


def test_other_tools_keep_their_names(serve):
    """An agent's own tool beside that of the server."""
    text = BOTH.replace("reply: {tool: weather.get", "reply: [{tool: search}, {tool: weather.get")
    text = text.replace(
        "arguments: {city: Oslo}}\n  - reply", "arguments: {city: Oslo}}]\n  - reply"
    )
    body = chat("weather_get_forecast")
    body["tools"].append({"type": "function", "function": {"name": "search"}})
    calls = serve(text).http.post(CHAT, json=body).json()["choices"][0]["message"]["tool_calls"]
    names = [call["function"]["name"] for call in calls]
    assert names == ["search", "weather_get_forecast"]


@pytest.mark.parametrize(
    "api", [name for name, protocol in PROTOCOLS.items() if protocol.client.tool_fields]
)
def test_every_api_with_tools_streams_the_offered_name(api):
    """The request is written by the API's own client."""
    protocol, tool = PROTOCOLS[api], ToolSpec("weather_get_forecast")
    body = json_bytes(dumps(first_body(protocol, "m", "umbrella?", [tool])))
    call = ApiCall(protocol, client_target(protocol, "m"), {}, body, Session("s"))
    answered = Player(loads(BOTH)).play(call)
    assert answered.played.outcome == "played", answered.played.problems
    sent = b"".join(answered.answer.data)
    assert b"weather_get_forecast" in sent
    assert b"weather.get_forecast" not in sent
