"""The player: from the bytes of a request to its answer, without a server."""

import json

import pytest

from mockllm.core.http import NO_TARGET, Target
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import played_entry

NUMBERS = """
scenario: numbers
match: {user: numbers}
turns:
  - reply: [{tool: f, id: call_a}, {tool: f, id: call_b}]
  - reply: {text: Done.}
---
scenario: other
match: {user: other}
turns: [{reply: {text: Other.}}]
---
scenario: by-header
match: {headers: {x-team: red}, user: team}
turns: [{reply: {text: Red.}}]
"""


class Caller:
    """One client of one player."""

    def __init__(self, text=NUMBERS, **options):
        self.player = Player(loads(text), **options)
        self.session = Session("s")

    def __call__(self, body, api="responses", headers=None):
        body = json.dumps(body).encode()
        call = ApiCall(PROTOCOLS[api], NO_TARGET, headers or {}, body, self.session)
        answered = self.player.play(call)
        answer, self.exchange = answered.answer, played_entry(answered.played, body)
        self.session.record(self.exchange)
        return json.loads(answer.chunks[0].data) if answer.chunks else None

    def look_up(self, operation, id, **query):
        target = Target({"response_id": id}, query=query)
        call = ApiCall(PROTOCOLS["responses"], target, {}, b"", self.session)
        answer = self.player.look_up(call, operation).answer
        return answer.status, json.loads(answer.chunks[0].data)


def output(*ids):
    return [{"type": "function_call_output", "call_id": id, "output": "1"} for id in ids]


def response_request(input, **fields):
    """The body of a Responses request."""
    return {"model": "gpt-4o", "input": input, **fields}


def test_a_response_is_continued_by_its_id():
    """The id contains scenario and turn, so that no history is needed."""
    call = Caller()
    first = call(response_request("numbers"))
    again = call(response_request(output("call_a", "call_b"), previous_response_id=first["id"]))
    assert again["output"][0]["content"][0]["text"] == "Done."
    assert again["previous_response_id"] == first["id"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["call_a"], "No tool output found for function call call_b."),
        (
            ["call_a", "call_b", "call_c"],
            "No tool call found for function call output with call_id",
        ),
    ],
)
def test_a_continuation_answers_every_call_and_no_other(ids, message):
    """The results of a continuation must match the calls, although these are not in the request."""
    call = Caller()
    first = call(response_request("numbers"))
    refused = call(response_request(output(*ids), previous_response_id=first["id"]))
    assert message in refused["error"]["message"]
    assert call.exchange.outcome == "invalid"
    lenient = Caller(strict=False)
    first = lenient(response_request("numbers"))
    assert "error" not in {
        key
        for key, value in lenient(
            response_request(output(*ids), previous_response_id=first["id"])
        ).items()
        if value
    }


def test_a_conversation_remembers_its_last_answer():
    """The server keeps a conversation's history, for each session apart."""
    call = Caller()
    call(response_request("numbers", conversation="conv_1"))
    again = call(response_request(output("call_a", "call_b"), conversation="conv_1"))
    assert again["output"][0]["content"][0]["text"] == "Done."
    fresh = call(response_request("numbers", conversation={"id": "conv_2"}))
    assert fresh["output"][0]["call_id"] == "call_a"


def test_an_answer_can_be_looked_up_and_deleted():
    """The lookup returns the same object and its input; after the deletion it is a 404."""
    call = Caller()
    first = call(response_request("numbers", metadata={"k": "v"}))
    assert call.look_up("response", first["id"]) == (200, first)
    status, items = call.look_up("input_items", first["id"])
    assert (status, items["data"][0]["content"][0]["text"]) == (200, "numbers")
    assert call.look_up("input_items", first["id"], limit="0")[0] == 400
    assert call.look_up("delete_response", first["id"])[1]["deleted"] is True
    assert call.look_up("response", first["id"])[0] == 404


def test_an_answer_that_is_not_stored_is_not_found():
    """An answer with `store: false` cannot be looked up, but its id can be continued."""
    call = Caller()
    first = call(response_request("numbers", store=False))
    assert call.look_up("response", first["id"])[0] == 404
    assert "error" not in call.session.played
    again = call(response_request(output("call_a", "call_b"), previous_response_id=first["id"]))
    assert again["status"] == "completed"


def test_matched_headers_are_part_of_the_cache_key():
    """The same body with another header is another request."""
    call = Caller()
    body = response_request("team")
    assert "error" in call(body) and call.exchange.outcome == "unmatched"  # noqa: PT018
    assert call(body, headers={"x-team": "red"})["status"] == "completed"
    assert call(body, headers={"x-team": "blue"})["error"]["code"] == "no_scenario"
    assert call(body, headers={"x-team": "red"})["status"] == "completed"
    assert (
        call(body, headers={"x-team": "red", "x-mockllm-scenario": "other"})["output"][0][
            "content"
        ][0]["text"]
        == "Other."
    )


def test_cached_answers_do_not_mix_protocols_or_bodies():
    """Alternating requests get their own answers, from the cache too."""
    call = Caller()
    chat = {"model": "gpt-4o", "messages": [{"role": "user", "content": "other"}]}
    for _ in range(3):
        assert call(response_request("other"))["object"] == "response"
        assert call(chat, "chat")["object"] == "chat.completion"
        assert call({**chat, "n": 2}, "chat")["choices"][1]["index"] == 1
        assert call(response_request("other", instructions="x"))["instructions"] == "x"


def test_a_stream_error_is_an_http_error_where_nothing_is_streamed():
    """The plain answer to a turn that breaks off is the API's 500."""
    call = Caller(
        "scenario: s\nmatch: any\nturns: [{reply: [{text: a}, "
        "{error: {type: server_error, message: boom}}]}]"
    )
    body = call(response_request("x"))
    assert body["error"]["message"] == "boom"
    assert (call.exchange.outcome, call.exchange.status) == ("played", 500)


def test_the_model_keeps_its_name_when_a_scenario_is_named_after_it():
    """`gpt-4o@other` plays `other` as gpt-4o."""
    assert Caller()(response_request("x", model="gpt-4o@other"))["model"] == "gpt-4o"
    assert Caller()(response_request("x", model="mock/other"))["model"] == "mock/other"
