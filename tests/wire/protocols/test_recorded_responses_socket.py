"""Recorded messages of Responses over a WebSocket, read as requests and answers over HTTP."""

import json

import pytest

from mockllm.wire.protocols.openai_responses.recorded_socket import recorded_exchanges


def message(from_client, **fields):
    return from_client, json.dumps(fields, separators=(",", ":")).encode()


def create(**fields):
    return message(True, type="response.create", model="m", **fields)


def event(kind, id="", **fields):
    response = {"response": {"id": id}} if id else {}
    return message(False, type=f"response.{kind}", **response, **fields)


def answer(id, **fields):
    return [event("created", id, **fields), event("completed", id, **fields)]


def test_requests_one_after_the_other():
    """Bodies are those over HTTP, and each event has the data that it had."""
    sent = [
        create(input="a", stream_id="x", background=True),
        *answer("r1", stream_id="x"),
        create(input="b", previous_response_id="r1", stream=True),
        *answer("r2"),
    ]
    found, others = recorded_exchanges(sent)
    assert others == []
    assert [one.body for one in found] == [
        {"model": "m", "input": "a", "stream": True},
        {"model": "m", "input": "b", "previous_response_id": "r1", "stream": True},
    ]
    assert found[0].answers == (
        (1, '{"type":"response.created","response":{"id":"r1"}}'),
        (2, '{"type":"response.completed","response":{"id":"r1"}}'),
    )
    assert [one.asked for one in found] == [0, 3]


def test_lanes_are_told_apart():
    sent = [
        create(input="a", stream_id="x"),
        create(input="b", stream_id="y"),
        event("created", "r2", stream_id="y"),
        event("created", "r1", stream_id="x"),
        event("completed", "r2", stream_id="y"),
        event("completed", "r1", stream_id="x"),
    ]
    found, _ = recorded_exchanges(sent)
    assert [[at for at, _ in one.answers] for one in found] == [[3, 5], [2, 4]]


def test_a_request_waits_for_the_one_before():
    sent = [create(input="a"), create(input="b"), *answer("r1"), *answer("r2")]
    found, _ = recorded_exchanges(sent)
    assert [(one.body["input"], [at for at, _ in one.answers]) for one in found] == [
        ("a", [2, 3]),
        ("b", [4, 5]),
    ]


def test_a_warm_up_is_part_of_the_next_request():
    """Also its id, which the answer repeats, is not known over HTTP."""
    sent = [
        create(input=[{"role": "developer", "content": "d"}], generate=False),
        *answer("r1"),
        create(input="b", previous_response_id="r1"),
        event("created", "r2", previous_response_id="r1"),
        event("completed", "r2"),
    ]
    ((one,), others) = recorded_exchanges(sent)
    assert others == []
    assert one.body == {
        "model": "m",
        "input": [
            {"role": "developer", "content": "d"},
            {"type": "message", "role": "user", "content": "b"},
        ],
        "stream": True,
    }
    assert one.answers[0][1].endswith('"previous_response_id":null}')


def test_what_was_steered_is_the_successors_input():
    steer = {"type": "response.steer", "previous_response_id": "r1"}
    sent = [
        create(input="a"),
        event("created", "r1"),
        message(True, **steer, input="no"),
        message(False, type="response.steer.failed"),
        message(True, **steer, input="more"),
        message(False, type="response.steer.accepted"),
        event("completed", "r1"),
        *answer("r2"),
    ]
    found, others = recorded_exchanges(sent)
    assert others == []
    assert found[1].body == {
        "model": "m",
        "input": [{"type": "message", "role": "user", "content": "more"}],
        "previous_response_id": "r1",
        "stream": True,
    }


@pytest.mark.parametrize("place", ["error", "message"])
def test_an_error_instead_of_an_answer(place):
    """Its headers may be beside the error, or in it."""
    headers = {"headers": {"Retry-After": "1"}}
    error = {"code": "rate_limit_exceeded", "message": "Wait."}
    inside, beside = (headers, {}) if place == "error" else ({}, headers)
    failed = message(False, type="error", status=429, error={**error, **inside}, **beside)
    ((one,), _) = recorded_exchanges([create(input="a"), failed])
    assert (one.status, one.headers) == (429, (("retry-after", "1"),))
    assert json.loads(one.answers[0][1]) == {"error": error}


def test_an_error_in_an_answer():
    """It has the form of the event over SSE."""
    error = {"code": "server_error", "message": "Oh.", "param": None}
    failed = message(False, type="error", status=500, error=error)
    ((one,), _) = recorded_exchanges([create(input="a"), event("created", "r1"), failed])
    assert (one.status, one.is_over) == (200, True)
    assert json.loads(one.answers[1][1]) == {"type": "error", **error, "sequence_number": 1}


def test_what_has_no_place():
    """Binary messages, those of other kinds, events outside of answers, and requests that nobody
    answered."""
    sent = [
        (True, b"\xff"),
        message(True, type="response.processed"),
        message(False, type="codex.rate_limits"),
        create(input="a"),
    ]
    assert recorded_exchanges(sent) == ([], [0, 1, 2, 3])


def test_an_answer_that_breaks_off():
    ((one,), _) = recorded_exchanges([create(input="a"), event("created", "r1")])
    assert not one.is_over
