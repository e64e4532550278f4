"""The cases of docs/mcp-clients.md: what a model calls, and what an MCP server does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PROMPT = "XMCP: how is the weather?"
DONE = "All done."
TEXT = "Rain all day in Oslo"
"""The answer of the tool in each case with a fault."""

RETURNED = rf'{TEXT}|size\\*": *null'
"""A pattern of that answer, in a request of the model."""

Call = tuple[str, Mapping[str, Any]]
"""A tool, `SERVER.TOOL`, and its arguments."""

_OSLO: Call = ("weather.get", {"city": "Oslo"})
_ONCE = ((_OSLO,),)
_CITY = "parameters: {type: object, properties: {city: {type: string}}, required: [city]}"
_SIZE = "output: {type: object, properties: {size: {type: integer}}, required: [size]}"
_PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


@dataclass(frozen=True)
class Case:
    """What a model calls, turn by turn, and what the server answers.

    Args:
        shown: in the table.
        calls: the entries of the server, as YAML.
        returned: a pattern of what comes back to the model from a right client; "" for none.
        over: the transports.
        servers: further ones, as YAML documents.
        without: whether the tools may be missing, so that the model answers without them.
    """

    shown: str
    calls: str
    turns: Sequence[Sequence[Call]] = _ONCE
    returned: str = RETURNED
    over: tuple[str, ...] = ("http", "stdio")
    servers: str = ""
    without: bool = False


def _of(tool: str, **arguments: str) -> Call:
    return (f"weather.{tool}", arguments)


RIGHT = {
    "calls": Case(
        "one call, two in sequence, two in parallel, two equal in parallel, none with arguments",
        "- {tool: get, match: {arguments: {city: Oslo}}, answers: [{text: Rain}, {text: Sun}]}\n"
        "  - {tool: get, answer: {text: Fog}}\n"
        "  - {tool: ping, answer: {text: pong}}",
        (
            (_OSLO,),
            (_of("get", city="Rome"),),
            (_of("get", city="Bern"), _of("get", city="Kiel")),
            (_OSLO, _OSLO),
            (_of("ping"),),
        ),
        returned="pong",
    ),
    "answers": Case(
        "a failure, two texts, text and JSON, JSON of an `output`",
        "- {tool: get, match: {arguments: {city: Oslo}}, answer: {error: No such station}}\n"
        "  - {tool: get, match: {arguments: {city: Rome}}, answer: {text: [Sun at noon, Wind]}}\n"
        "  - {tool: get, answer: {text: Fog on Kiel, json: {temp: 4, sky: [fog]}}}\n"
        "  - {tool: measure, answer: {text: It is 5 long, json: {size: 5}}}",
        (
            (_OSLO,),
            (_of("get", city="Rome"),),
            (_of("get", city="Kiel"),),
            (_of("measure", city="Oslo"),),
        ),
        returned="Wind",
    ),
    "image": Case(
        "an image",
        f"- tool: get\n    answer: {{text: A map, image: {{base64: {_PIXEL}, type: image/png}}}}",
        returned="A map",
    ),
    "media": Case(
        "a resource, a link",
        "- tool: get\n"
        "    match: {arguments: {city: Oslo}}\n"
        "    answer: {resource: {uri: 'kit://a', mimeType: text/plain, text: Embedded sun}}\n"
        "  - {tool: get, answer: {link: {uri: 'kit://b', name: b, mimeType: text/plain}}}",
        ((_OSLO,), (_of("get", city="Rome"),)),
        returned="Embedded sun",
    ),
    "rpc-error": Case(
        "a JSON-RPC error",
        "- {tool: get, answer: {rpc_error: {code: -32000, message: The station is closed}}}",
        returned="",
    ),
    "servers": Case(
        "two servers with a tool of one name",
        "- {tool: get, answer: {text: Rain}}",
        (
            (_OSLO, ("music.get", {"title": "Peer Gynt"})),
            (("music.get", {"title": "Solveig"}),),
        ),
        returned="A suite",
        servers="mcp: music\ntools:\n  - name: get\n"
        "    parameters: {type: object, properties: {title: {type: string}}, required: [title]}\n"
        "calls:\n  - {tool: get, answer: {text: A suite}}\n---\n",
    ),
}

_HTTP, _STDIO = ("http",), ("stdio",)


def _fault(shown: str, how: str, **more: Any) -> Case:
    return Case(shown, f"- {{tool: get, {how}, answer: {{text: {TEXT}}}}}", **more)


FAULTS = {
    "500": Case("500, each time", "- {tool: get, http: 500}", over=_HTTP),
    "503-once": _fault("503, once", "attempts: [{http: 503}]", over=_HTTP),
    "session-lost": _fault("404 once: the session is lost", "fault: session-lost", over=_HTTP),
    "reset": _fault("the connection is reset", "fault: {refuse: {end: reset}}", over=_HTTP),
    "cut": _fault("cut inside the JSON", "fault: {cut: {after: 40 bytes}}", over=_HTTP),
    "empty": _fault("200, and no body", "fault: {garble: {what: empty}}", over=_HTTP),
    "html": _fault("200, and HTML", "fault: {garble: {what: html}}", over=_HTTP),
    "unknown-id": _fault("an answer with another id", "fault: unknown-id"),
    "stall": _fault("no answer", "fault: stall"),
    "resumed": Case(
        "the stream ends after an event id, and can be resumed",
        f"- {{tool: get, answer: {{text: {TEXT}, resumed: true}}}}",
        over=_HTTP,
    ),
    "progress": Case(
        "progress before the answer", f"- {{tool: get, answer: {{text: {TEXT}, progress: [a, b]}}}}"
    ),
    "schema": Case(
        "JSON that breaks the tool's `output`",
        f"- {{tool: measure, fault: schema, answer: {{text: {TEXT}, json: {{size: 5}}}}}}",
        ((_of("measure", city="Oslo"),),),
    ),
    "tools": Case(
        "an answer, and a changed list of tools",
        f"- tool: get\n    answer:\n      text: {TEXT}\n"
        f"      tools: [{{name: get, {_CITY}}}, {{name: put}}]",
    ),
    "list": Case(
        "500 at the list of tools",
        f"- {{at: list, http: 500}}\n  - {{tool: get, answer: {{text: {TEXT}}}}}",
        over=_HTTP,
        without=True,
    ),
    "connect": Case(
        "500 at the first request",
        f"- {{at: connect, http: 500}}\n  - {{tool: get, answer: {{text: {TEXT}}}}}",
        over=_HTTP,
        without=True,
    ),
    "exit": _fault("the program ends in a call", "fault: exit", over=_STDIO),
    "noise": _fault("lines that are no JSON", "fault: noise", over=_STDIO),
}
CASES = {**RIGHT, **FAULTS}


def scenarios(case: Case, api: str) -> str:
    """The servers and the conversations, as YAML."""
    numbers = iter(range(1, 100))
    turns = [
        json.dumps(
            [
                {"tool": tool, "id": f"call_{next(numbers)}", "arguments": arguments}
                for tool, arguments in turn
            ]
        )
        for turn in case.turns
    ]
    played = "".join(f"  - reply: {turn}\n" for turn in turns)
    # Where its tools are missing, the model answers by itself, and the server was needed.
    alone = (
        f"---\nscenario: alone\napis: [{api}]\nmatch: {{user: XMCP}}\nmcp:\n  weather:\n"
        "    - {tool: ping, answer: {text: pong}}\n"
        f"turns: [{{reply: {{text: {DONE}}}, repeat: true}}]\n"
    )
    offered = ", tools: [weather.get]" if case.without else ""
    return (
        f"mcp: weather\ntools:\n  - {{name: get, {_CITY}}}\n  - {{name: ping}}\n"
        f"  - {{name: measure, {_CITY}, {_SIZE}}}\ncalls:\n  {case.calls}\n---\n{case.servers}"
        f"scenario: main\napis: [{api}]\nmatch: {{user: XMCP{offered}}}\nturns:\n"
        f"{played}  - {{reply: {{text: {DONE}}}, repeat: true}}\n{alone if case.without else ''}"
        "---\nscenario: title\nmatch: {user: XMCP, system: title generator}\n"
        "turns: [{reply: {text: A title}, repeat: true}]\n"
    )
