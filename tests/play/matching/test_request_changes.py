"""How a request differs from the recorded one: in lines for people, and none where it does not."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.matching.request_changes import (
    MOST_CHANGES,
    changes_of_route,
    request_changes,
)
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.tapes.captured import Captured
from mockllm.wire.protocols import PROTOCOLS

REQUEST = {
    "model": "m",
    "temperature": 0,
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Weather for hidden-1@mail.example?"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "arguments": '{"city": "Rome"}'}]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "get_weather", "parameters": {"a": 1}}},
        {"type": "function", "function": {"name": "get_time", "parameters": {}}},
    ],
}


def changed(**fields: Any) -> dict[str, Any]:
    return REQUEST | fields


def messages(index: int, **fields: Any) -> dict[str, Any]:
    sent = [dict(message) for message in REQUEST["messages"]]  # type: ignore[attr-defined]
    sent[index] |= fields
    return changed(messages=sent)


def tools(*named: dict[str, Any]) -> dict[str, Any]:
    return changed(tools=[{"type": "function", "function": function} for function in named])


WEATHER = {"name": "get_weather", "parameters": {"a": 1}}
TIME = {"name": "get_time", "parameters": {}}


@pytest.mark.parametrize(
    ("sent", "lines"),
    [
        (messages(0, content="Be evil."), ['messages[0].content: "Be kind." → "Be evil."']),
        (changed(temperature=1.9), ["temperature: 0 → 1.9"]),
        (changed(temperature=False), ["temperature: 0 → false"]),
        (changed(model="n"), ['model: "m" → "n"']),
        (changed(top_p=1), ["top_p: nothing → 1"]),
        (messages(3, content="rain"), ['messages[3].content: "sunny" → "rain"']),
        (
            messages(2, tool_calls=[{"id": "c1", "arguments": '{"city":"Oslo"}'}]),
            ['messages[2].tool_calls[0].arguments.city: "Rome" → "Oslo"'],
        ),
        (
            tools(TIME, {"name": "drop_table", "parameters": {}}),
            ["tools: + drop_table, - get_weather"],
        ),
        (
            tools(WEATHER | {"parameters": {"a": 2}}, TIME),
            ["tools.get_weather.function.parameters.a: 1 → 2"],
        ),
        (
            changed(messages=REQUEST["messages"][:3]),  # type: ignore[index]
            ['messages[3]: {"role":"tool","tool_call_id":"c1","content":"sunny"} → nothing'],
        ),
        (messages(1, content="News for hidden-1@mail.example?"), None),
        (changed(**{"odd name": 1}), ['["odd name"]: nothing → 1']),
        ([], ["body: {"]),
    ],
)
def test_what_differs(sent: Any, lines: list[str] | None) -> None:
    """Each difference has its path, and both values."""
    found = request_changes(REQUEST, sent)
    if lines is None:
        lines = [
            'messages[1].content: "Weather for hidden-1@mail.example?" → '
            '"News for hidden-1@mail.example?"'
        ]
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


@pytest.mark.parametrize(
    "sent",
    [
        REQUEST,
        changed(seed=None),
        changed(stream_options={"include_usage": True}),
        messages(1, content="Weather for ann.lee@corp.io?"),
        messages(2, tool_calls=[{"id": "c1", "arguments": '{ "city":"Rome" }'}]),
        tools(TIME, WEATHER),
        dict(reversed(REQUEST.items())),
    ],
)
def test_what_does_not_count(sent: dict[str, Any]) -> None:
    """Order of fields and of tools, null, what SDKs add, what is hidden, the writing of JSON."""
    assert request_changes(REQUEST, sent, (), PROTOCOLS["chat"].client) == ()


def test_what_a_recording_ignores() -> None:
    """On both sides."""
    one, other = ({"at": f"2026-01-0{day}T10:00:00Z", "n": day} for day in (1, 2))
    assert request_changes(one, other, ("timestamp", "$.n")) == ()
    assert request_changes(one, other, ("timestamp",)) == ("n: 1 → 2",)


def test_long_texts_are_shown_from_their_difference_on() -> None:
    """Two beginnings of long prompts say nothing."""
    (line,) = request_changes({"a": "x" * 500 + "one"}, {"a": "x" * 500 + "two"})
    assert line == f'a: …{"x" * 15}one" → …{"x" * 15}two"'


def test_many_changes_are_counted() -> None:
    """And not listed."""
    lines = request_changes({str(n): n for n in range(50)}, {})
    assert (len(lines), lines[-1]) == (MOST_CHANGES + 1, f"and {50 - MOST_CHANGES} more")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@given(values)
def test_equal_requests_have_no_difference(value: Any) -> None:
    """However their JSON is written."""
    again = json.loads(json.dumps(value, sort_keys=True))
    assert request_changes(value, again) == ()


@given(st.dictionaries(st.text(max_size=3), values), st.dictionaries(st.text(max_size=3), values))
def test_others_have_one(one: dict[str, Any], other: dict[str, Any]) -> None:
    """But for null against nothing."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if item is not None}
        return list(map(plain, value)) if isinstance(value, list) else value

    same = json.dumps(plain(one), sort_keys=True) == json.dumps(plain(other), sort_keys=True)
    assert same == (not request_changes(one, other))


FORM = "multipart/form-data; boundary="


def multipart(boundary: str, **parts: str) -> tuple[str, bytes]:
    """A content type and a body with a text for each name, and a file for `file`."""
    lines = []
    for name, text in parts.items():
        file = '; filename="a.wav"\r\nContent-Type: audio/wav' if name == "file" else ""
        lines.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{file}')
        lines.append(f"\r\n\r\n{text}\r\n")
    return FORM + boundary, ("".join(lines) + f"--{boundary}--\r\n").encode()


def route(
    body: bytes | tuple[str, bytes] = b"", query: str = "", *headers: tuple[str, str]
) -> Captured:
    kind, content = body if isinstance(body, tuple) else ("application/json", body)
    url = f"https://api.odd.test/v1/x?{query}"
    return Captured("POST", url, (("content-type", kind), *headers), content, 200, (), ())


EMBED = b'{"model": "m", "input": ["a", "b"], "dimensions": null}'
ROUTES: Mapping[str, tuple[Captured, Captured, tuple[str, ...]]] = {
    "embeddings": (route(EMBED), route(b'{"input": ["a", "b"], "model": "m"}'), ()),
    "embeddings, a text": (
        route(EMBED),
        route(b'{"input": ["a", "c"], "model": "n"}'),
        ('body.model: "m" → "n"', 'body.input[1]: "b" → "c"'),
    ),
    "query": (route(query="a=1&b=2"), route(query="b=2&a=1"), ()),
    "query, a value": (route(query="a=1&b=2"), route(query="a=1&b=3"), ('query.b: "2" → "3"',)),
    "query, the first of several": (
        route(query="tag=x&tag=y"),
        route(query="tag=z&tag=y"),
        ('query.tag[0]: "x" → "z"',),
    ),
    "query, one more": (route(query="a=1"), route(query="a=1&b="), ('query.b: nothing → ""',)),
    "boundary": (
        route(multipart("one", model="m", file="sound")),
        route(multipart("two", file="sound", model="m")),
        (),
    ),
    "audio": (
        route(multipart("one", file="sound", model="m")),
        route(multipart("two", file="other", model="n")),
        ("body.file.sha256: ", 'body.model: "m" → "n"'),
    ),
    "form": (
        route(("application/x-www-form-urlencoded", b"To=1&Body=hi")),
        route(("application/x-www-form-urlencoded", b"Body=bye&To=1")),
        ('body.Body: "hi" → "bye"',),
    ),
    "bytes": (route(b"\xff\x00"), route(b"\xff\x01"), ('body: "2 bytes, ',)),
    "no body": (route(EMBED), route(), ("body: {",)),
    "compressed": (
        route(gzip.compress(EMBED), "", ("content-encoding", "gzip")), route(EMBED), ()
    ),
    "compressed, it says": (
        route(EMBED, "", ("content-encoding", "gzip")),
        route(b"{}"),
        ('body.model: "m" → nothing', 'body.input: ["a","b"] → nothing'),
    ),
    "ignored": (route(b'{"metadata": {"n": 1}}'), route(b'{"metadata": {"n": 2}}'), ()),
    "a made-up id": (
        route(b'{"id": "7f1b8c1e-3f52-4a3e-9a43-0d8a1c2b3d4e"}'),
        route(b'{"id": "0e7c4a52-9f1d-4a3e-8b21-5d8a1c2b3d4e"}'),
        (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUTES)
def test_requests_that_call_no_model(case: str) -> None:
    """The query and the body, whatever it is; what cannot be read is compared byte by byte."""
    recorded, sent, lines = ROUTES[case]
    found = changes_of_route(recorded, RouteRequest.of_exchange(sent), ("$.metadata",))
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


def test_the_order_of_named_items_counts() -> None:
    """But for tools: results of a tool that come in another order are others."""
    one, other = ({"found": [{"name": name} for name in names]} for names in ("ab", "ba"))
    assert request_changes(one, other) == ("found: a, b → b, a",)
