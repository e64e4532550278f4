"""What the conversation of one connection remembers, and for how long."""

import json

from mockllm.wire.protocols.openai_responses.socket import MOST_LANES, ResponsesConversation


def is_stored(id):
    return True


def answered(conversation, id, **message):
    """An answer that is on its way, with its request."""
    (ask,) = conversation.receive({"type": "response.create", "model": "m", **message})
    body = conversation.request(ask, is_stored)
    created = {"type": "response.created", "response": {"id": id}}
    ended = {"type": "response.completed", "response": {"id": id, "output": []}}
    conversation.messages(ask, 200, {}, [json.dumps(created), json.dumps(ended)])
    return ask, body


def texts(body):
    return [item["content"] for item in body["input"]]


def test_a_steered_input_outlives_a_request_that_is_refused():
    conversation = ResponsesConversation()
    first, _ = answered(conversation, "resp_1", input="a")
    conversation.receive(
        {"type": "response.steer", "previous_response_id": "resp_1", "input": "also"}
    )
    (successor,) = conversation.finish(first, 2)
    assert texts(conversation.request(successor, is_stored)) == ["also"]
    conversation.messages(successor, 429, {}, ['{"error": {"message": "slow down"}}'])
    conversation.finish(successor, 1)
    _, body = answered(conversation, "resp_2", input="b", previous_response_id="resp_1")
    assert texts(body) == ["also", "b"]
    _, body = answered(conversation, "resp_3", input="c", previous_response_id="resp_2")
    assert body["input"] == "c"


def test_only_the_latest_warm_ups_are_remembered():
    conversation = ResponsesConversation()
    ids = []
    for number in range(MOST_LANES + 1):
        message = {"type": "response.create", "model": "m", "input": f"{number}"}
        (ask,) = conversation.receive({**message, "generate": False})
        created, _ = conversation.request(ask, is_stored)
        ids.append(json.loads(created)["response"]["id"])
    latest = {"type": "response.create", "previous_response_id": ids[-1], "input": "x"}
    conversation.messages(ask, 200, {}, [created])
    (ask,) = conversation.receive(latest)
    assert texts(conversation.request(ask, is_stored)) == [f"{MOST_LANES}", "x"]
    assert len(conversation._prepared) == MOST_LANES
