"""Small results, made by hand where a test needs values that no client gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.conformance.results import CaseResult, Client, QuirkInfo, Results, Smallest, Stream

STREAM = Stream(
    (b'data: {"a":1}\r\n\r\n', b"data: caf\xc3", b"\xa9 50% 'x' \\n\n\ndata: [DONE]\n\n"),
    (0, 40_000, 1_250_000),
    (("content-type", "text/event-stream"),),
)

WRONG = CaseResult(
    "chat/sample-two-calls+chat-index-all-zero",
    "index",
    "wrong",
    quirk="chat-index-all-zero",
    cost="wrong call",
    invariant="arguments-concatenate",
    differences=('1 calls, not 2: get_weatherget_time({}) id "call_A1call_B2"',),
    fields=("tool_calls",),
    expected={
        "tool_calls": [
            {"id": "call_A1", "name": "get_weather", "arguments": {"city": "Paris"}},
            {"id": "call_B2", "name": "get_time", "arguments": {"tz": "CET"}},
        ],
        "finish": "tool_calls",
        "role": "assistant",
    },
    actual={
        "tool_calls": [
            {"id": "call_A1call_B2", "name": "get_weatherget_time", "arguments": "{}{}"}
        ],
        "finish": "tool_calls",
        "errors": [],
    },
    stream=STREAM,
    reproduce=("mockllm check --only x -- node runner.mjs", "mockllm show x"),
)

SMALL = Smallest(
    Stream((b"data: x\n\n",)), "name: small\nturns: []\n", WRONG.expected, WRONG.actual
)

RIGHT = CaseResult("chat/sample-text", "plain", "right", stream=STREAM, expected={"text": "Hello"})

QUIRKS = {
    "chat-index-all-zero": QuirkInfo(
        "Every call has `index` 0",
        "each call in a chunk of its own",
        "Ollama",
        ("ollama/ollama#15457", "https://example.test/report", "a book"),
        "opens another call",
        "joins the calls",
    )
}


def results(name: str, *cases: CaseResult, **fields: Any) -> Results:
    """The results of a client."""
    client = Client(name, "1.0", fields.pop("language", "python"), "stream()", "adapter.py")
    values: dict[str, Any] = {"api": "chat", "level": "bytes", "mockllm": "0.9", **fields}
    values.setdefault("date", "2026-07-28")
    return Results(client, cases=cases, quirks=QUIRKS, **values)


def failed(case: str, group: str, cost: Any, **fields: Any) -> CaseResult:
    """A case that a client gets wrong."""
    return replace(WRONG, case=case, group=group, cost=cost, **fields)
