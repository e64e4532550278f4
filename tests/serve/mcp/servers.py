"""A server and a scenario for the tests of MCP, and requests to it."""

from typing import Any

WEATHER = """
mcp: weather
description: Weather of the world.
tools:
  - name: get_forecast
    title: Forecast
    description: Forecast of a city.
    parameters: {type: object, properties: {city: {type: string}}, required: [city]}
  - name: get_numbers
    parameters: {type: object, properties: {city: {type: string}}}
    output: {type: object, properties: {temp: {type: integer}}, required: [temp]}
    annotations: {readOnlyHint: true}
  - {name: show}
instructions: Ask for one city.
calls:
  - {tool: get_forecast, answer: {error: Unknown city.}}
  - {tool: get_numbers, answer: {json: {temp: 4}}}
"""
UMBRELLA = """
scenario: umbrella
match: {user: umbrella}
mcp:
  weather:
    - {tool: get_forecast, match: {arguments: {city: Oslo}}, answer: {text: Rain in Oslo}}
    - tool: get_forecast
      match: {arguments: {city: Rome}}
      answers: [{text: Sun}, {text: [Rain, Wind]}]
turns:
  - reply: {tool: weather.get_forecast, id: call_1, arguments: {city: Oslo}}
  - reply: {text: Take an umbrella.}
"""
BOTH = f"{WEATHER}---{UMBRELLA}"

STATELESS = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(method: str, params: Any = None, *, id: Any = 1, stateless: bool = False) -> Any:
    """A request, with what each stateless one has."""
    params = dict(params or {})
    if stateless:
        params["_meta"] = {**META, **params.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def send(
    served: Any, method: str, params: Any = None, *, path: str = "/mcp/weather", **options: Any
):
    """The response to a request."""
    headers = options.pop("headers", {})
    return served.http.post(path, json=message(method, params, **options), headers=headers)


def result(served: Any, method: str, params: Any = None, **options: Any) -> Any:
    """The result of a request that gets one."""
    answer = send(served, method, params, **options)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def call(served: Any, tool: str, arguments: Any = None, **options: Any) -> Any:
    """The result of a call."""
    params = {"name": tool, "arguments": arguments or {}}
    return result(served, "tools/call", params, **options)


def texts(result: Any) -> list[str]:
    """The texts of a result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]
