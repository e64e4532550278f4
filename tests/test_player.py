"""From a request's bytes to the answer, without a server."""

import json

import pytest

from mockllm.protocols import PROTOCOLS
from mockllm.replay.player import Player
from mockllm.replay.session import Exchange, Session
from mockllm.replay.loading import loads

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
        exchange = Exchange("POST", "/", {}, body)
        answer = self.player.play(PROTOCOLS[api], {}, headers or {}, self.session, exchange)
        self.session.record(exchange)
        self.exchange = exchange
        return json.loads(answer.pieces[0].data) if answer.pieces else None

    def look_up(self, operation, id, **query):
        exchange = Exchange("GET", "/", {}, b"")
        answer = self.player.look_up(
            PROTOCOLS["responses"],
            operation,
            {"response_id": id},
            self.session,
            exchange,
            query=query,
        )
        return answer.status, json.loads(answer.pieces[0].data)


def output(*ids):
    return [{"type": "function_call_output", "call_id": id, "output": "1"} for id in ids]


def ask(input, **fields):
    return {"model": "gpt-4o", "input": input, **fields}


def test_a_response_is_continued_by_its_id():
    """No history is needed: the id says scenario and turn."""
    call = Caller()
    first = call(ask("numbers"))
    again = call(ask(output("call_a", "call_b"), previous_response_id=first["id"]))
    assert again["output"][0]["content"][0]["text"] == "Done."
    assert again["previous_response_id"] == first["id"]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["call_a"], "No tool output found for function call call_b."),
        (
            ["call_a", "call_b", "call_c"],
            "No tool call found for function call output with call_id",
        ),
    ],
)
def test_a_continuation_answers_every_call_and_no_other(ids, said):
    """What the API refuses is refused, although the calls are not in the request."""
    call = Caller()
    first = call(ask("numbers"))
    refused = call(ask(output(*ids), previous_response_id=first["id"]))
    assert said in refused["error"]["message"]
    assert call.exchange.outcome == "invalid"
    lenient = Caller(strict=False)
    first = lenient(ask("numbers"))
    assert "error" not in {
        key
        for key, value in lenient(ask(output(*ids), previous_response_id=first["id"])).items()
        if value
    }


def test_a_conversation_remembers_its_last_answer():
    """The service keeps the history; each session has its own."""
    call = Caller()
    call(ask("numbers", conversation="conv_1"))
    again = call(ask(output("call_a", "call_b"), conversation="conv_1"))
    assert again["output"][0]["content"][0]["text"] == "Done."
    fresh = call(ask("numbers", conversation={"id": "conv_2"}))
    assert fresh["output"][0]["call_id"] == "call_a"


def test_an_answer_can_be_looked_up_and_deleted():
    """As long as it is stored: the same object, its input, and then nothing."""
    call = Caller()
    first = call(ask("numbers", metadata={"k": "v"}))
    assert call.look_up("response", first["id"]) == (200, first)
    status, items = call.look_up("input_items", first["id"])
    assert (status, items["data"][0]["content"][0]["text"]) == (200, "numbers")
    assert call.look_up("input_items", first["id"], limit="0")[0] == 400
    assert call.look_up("delete_response", first["id"])[1]["deleted"] is True
    assert call.look_up("response", first["id"])[0] == 404


def test_an_answer_that_is_not_stored_is_not_found():
    """`store: false` means just that, yet the id still says how to go on."""
    call = Caller()
    first = call(ask("numbers", store=False))
    assert call.look_up("response", first["id"])[0] == 404
    assert "error" not in call.session.played
    again = call(ask(output("call_a", "call_b"), previous_response_id=first["id"]))
    assert again["status"] == "completed"


def test_headers_that_decide_are_part_of_what_is_remembered():
    """The same body with another header is another request."""
    call = Caller()
    body = ask("team")
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


def test_what_is_remembered_does_not_leak_between_protocols_and_bodies():
    """Alternating requests get their own answers, also the second time around."""
    call = Caller()
    chat = {"model": "gpt-4o", "messages": [{"role": "user", "content": "other"}]}
    for _ in range(3):
        assert call(ask("other"))["object"] == "response"
        assert call(chat, "chat")["object"] == "chat.completion"
        assert call({**chat, "n": 2}, "chat")["choices"][1]["index"] == 1
        assert call(ask("other", instructions="x"))["instructions"] == "x"


def test_an_error_in_the_stream_is_an_http_error_without_one():
    """The plain answer to a turn that breaks off is the API's 500."""
    call = Caller(
        "scenario: s\nmatch: any\nturns: [{reply: [{text: a}, "
        "{error: {type: server_error, message: boom}}]}]"
    )
    body = call(ask("x"))
    assert body["error"]["message"] == "boom"
    assert (call.exchange.outcome, call.exchange.status) == ("played", 500)


def test_the_model_keeps_its_name_when_a_scenario_is_named_after_it():
    """`gpt-4o@other` plays `other` as gpt-4o."""
    assert Caller()(ask("x", model="gpt-4o@other"))["model"] == "gpt-4o"
    assert Caller()(ask("x", model="mock/other"))["model"] == "mock/other"
