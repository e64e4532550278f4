"""The conversation of a request, over every API: messages, calls and tools."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm import ServerThread
from mockllm.core.turn import ToolCall
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import ToolSpec
from mockllm.serve.ui.explanation import conversation_json, findings_json
from tests.entries import journal_entry
from tests.serve.ui.explanations.requests import APIS, HOSTILE, bodies, known
from tests.timeouts import GIVE_UP


def conversation(protocol, model, body):
    exchange = journal_entry(
        "POST",
        protocol.client.path_of(model),
        {},
        json.dumps(body).encode(),
        protocol.name,
        target=client_target(protocol, model),
    )
    found = conversation_json(protocol.name, exchange)
    json.dumps(found)
    return found


def parts(found, kind):
    return [part for m in found["messages"] for part in m["parts"] if part["kind"] == kind]


@pytest.mark.parametrize("api", [api for api in APIS if api != "completions"])
def test_messages_calls_results_and_tools_are_shown(api):
    with known(api) as protocol:
        client = protocol.client
        tool = ToolSpec("get", "About it.", {"type": "object"})
        body = first_body(protocol, "some-model", "The first text.", [tool])
        history = protocol.stored is None
        if history:
            body = client.continuation(
                body, "", [ToolCall("get", "call_1", ('{"a": 1}',))], ["The result."]
            )
        found = conversation(protocol, "some-model", body)
        assert [part["text"] for part in parts(found, "text")] == ["The first text."]
        assert [part["name"] for part in parts(found, "call")] == ["get"] * history
        assert [json.loads(part["arguments"]) for part in parts(found, "call")] == [
            {"a": 1}
        ] * history
        assert len(parts(found, "result")) == history
        assert all("The result." in part["text"] for part in parts(found, "result"))
        assert found["tools"] == [{"name": "get", "description": "About it."}]
        assert not parts(found, "other")


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_every_text_of_any_request_is_shown(api, data):
    with known(api) as protocol:
        model, body = data.draw(bodies(protocol))
        found = conversation(protocol, model, body)
        assert all(part["size"] >= len(part["text"]) for part in parts(found, "text"))
        assert all(message["parts"] for message in found["messages"])


@pytest.mark.parametrize("api", APIS)
def test_hostile_texts_are_shown_as_they_are(api):
    with known(api) as protocol:
        for text in filter(str.strip, HOSTILE):
            found = conversation(protocol, "m", first_body(protocol, "m", text))
            assert [part["text"] for part in parts(found, "text")] == [text]


def test_long_texts_are_shortened_with_their_size():
    with known("chat") as protocol:
        found = conversation(protocol, "m", first_body(protocol, "m", "x" * 10_000_000))
        (one,) = parts(found, "text")
        assert (len(one["text"]), one["size"]) == (100_001, 10_000_000)


def test_what_is_no_request_has_no_conversation():
    for api, body in (("chat", b"{"), ("chat", b""), ("none", b"{}"), ("", b"x")):
        exchange = journal_entry("POST", "/", {}, body, api=api)
        assert conversation_json(api, exchange) is None


SCENARIO = """\
scenario: calls
match: {user: begin}
turns:
  - reply: [{tool: get, id: call_1, arguments: {a: 1}}]
  - reply: {text: Done.}
"""


def test_findings_stand_at_the_request_that_broke_the_rule():
    with known("chat") as protocol:
        first = first_body(protocol, "m", "begin")
        call = ToolCall("get", "call_1", ('{"a": 2}',))
        second = protocol.client.continuation(first, "", [call], ["ok"])
        with ServerThread(loads(SCENARIO)) as server:
            for body in (first, second):
                httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=GIVE_UP)
            player = server.server.player
            session = server.server.sessions.get("default")
            by_name = player.served.by_name
            assert server.ask(lambda: findings_json(session, by_name, 1)) == ([], "")
            found, why = server.ask(lambda: findings_json(session, by_name, 2))
        assert why == ""
        assert [one["rule"] for one in found] == ["history-faithful"]
        assert "call_1" in found[0]["message"]
