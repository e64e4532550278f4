"""Ways of continuing a response with the official `openai` client, and stored responses."""

from __future__ import annotations

import openai
import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.scenario.model import Scenario
from tests.clients.conftest import Run
from tests.clients.conversation import (
    LONGER,
    MODEL,
    SCENARIOS,
    Answer,
    Json,
    converse,
    drive,
    first,
    opening,
    plays,
)
from tests.clients.observed import of_response
from tests.clients.openai_client import WAYS


def previous(request: Json, answer: Answer, new: list[Json]) -> Json:
    return {**request, "input": new, "previous_response_id": answer.id}


def reference(request: Json, answer: Answer, new: list[Json]) -> Json:
    items = [{"type": "item_reference", "id": item.id} for item in answer.echo]
    return {**request, "input": [*request["input"], *items, *new]}


def plain_items(request: Json, answer: Answer, new: list[Json]) -> Json:
    items = [item.to_dict() for item in answer.echo]
    return {**request, "input": [*request["input"], *items, *new]}


def stored_conversation(request: Json, answer: Answer, new: list[Json]) -> Json:
    return {**request, "input": new}


CARRY = {
    "previous_response_id": previous,
    "item_reference": reference,
    "items": plain_items,
    "conversation": stored_conversation,
}


def converse_by(client: openai.OpenAI, run: Run, scenario: Scenario, way: str, how: str) -> None:
    extra = {"conversation": "conv_7"} if way == "conversation" else {}

    def send(request: Json) -> Answer:
        return WAYS["responses", how](client, {**request, **extra})

    # An automatic answer counts what the request itself has.
    ignored = {"usage"} if scenario.turns[-1].is_auto and way != "items" else ()
    drive(converse(scenario, "responses", carry=CARRY[way], ignored=ignored), send)
    run.expects_plays(plays(scenario, "responses"))


every_continuation = pytest.mark.parametrize("way", CARRY)


@pytest.mark.slow
@every_continuation
@pytest.mark.parametrize("scenario", LONGER, ids=lambda s: s.name)
def test_ways_to_continue(client, run, scenario, way):
    """Every way to refer to earlier answers continues the conversation."""
    converse_by(client, run, scenario, way, "stream")


@pytest.mark.parametrize("how", ["body", "helper"])
@every_continuation
def test_ways_to_continue_not_streamed(client, run, way, how):
    """Earlier answers may be bodies, or read by the client's helper."""
    converse_by(client, run, SCENARIOS["multi-hop"], way, how)


def test_unknown_previous_response(client, run):
    """An unknown `previous_response_id` is refused."""
    run.expects("invalid")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="Hi", previous_response_id="resp_68a1")
    assert caught.value.code == "previous_response_not_found"


def test_missing_results(client, run):
    """A response with calls cannot be continued without their results."""
    run.expects("played", "invalid")
    response = client.responses.create(model=MODEL, input=opening(SCENARIOS["secret-numbers"]))
    with pytest.raises(openai.BadRequestError, match=r"No tool output found .* call_alice"):
        client.responses.create(model=MODEL, input="Well?", previous_response_id=response.id)


# Stored responses


def test_retrieve_and_delete(client, run):
    """A response can be retrieved by its id until it is deleted."""
    run.expects("played", "played", "played", "invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], "responses")
    with client.responses.stream(**request) as events:
        response = events.get_final_response()
    stored = client.responses.retrieve(response.id)
    assert of_response(stored).seen == of_response(response).seen
    assert stored.id == response.id
    assert stored.tools == response.tools
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError, match=response.id):
        client.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError, match=response.id):
        client.responses.delete(response.id)


def test_a_later_answer_of_a_turn_that_repeats():
    """What is retrieved is what was answered, ids of items included, and the conversation goes
    on."""
    text = """
scenario: thrice
match: any
turns:
  - {times: 3, one_of: [{text: Heads.}, {text: Tails.}]}
  - {reply: {text: The end.}}
"""
    with (
        ServerThread(loads(text), ServerOptions(speed=0)) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as client,
    ):
        answer = client.responses.create(model=MODEL, input="toss")
        for _ in range(2):
            answer = client.responses.create(
                model=MODEL, input="toss", previous_response_id=answer.id
            )
            assert client.responses.retrieve(answer.id).output == answer.output
        last = client.responses.create(model=MODEL, input="toss", previous_response_id=answer.id)
        assert last.output_text == "The end."


def test_responses_not_stored(client, run):
    """A response with `store=False` cannot be retrieved."""
    run.expects("played", "invalid")
    response = client.responses.create(model=MODEL, input="secret numbers", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_input_items(client):
    """The input of a response is listed, newest first, with unique ids."""
    messages = [
        {"role": "user", "content": "secret numbers"},
        {"role": "assistant", "content": "Whose?"},
        {"role": "user", "content": "All secret numbers."},
    ]
    response = client.responses.create(model=MODEL, input=messages)
    page = client.responses.input_items.list(response.id)
    texts = [item.content[0].text for item in page]
    assert texts == ["All secret numbers.", "Whose?", "secret numbers"]
    assert len({item.id for item in page}) == 3


def test_input_items_in_pages(client):
    """`order` and `limit` of the list of input items are applied."""
    messages = [{"role": "user", "content": f"secret numbers {n}"} for n in range(3)]
    response = client.responses.create(model=MODEL, input=messages)
    walked = client.responses.input_items.list(response.id, order="asc", limit=2)
    assert [item.content[0].text for item in walked] == [entry["content"] for entry in messages]
