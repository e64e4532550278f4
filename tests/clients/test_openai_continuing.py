"""Ways of continuing a response with the official client, and what is stored of it."""

from __future__ import annotations

import openai
import pytest

from mockllm.scenario.model import Scenario
from tests.clients.asking import ASK
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


def go_on(client: openai.OpenAI, run: Run, scenario: Scenario, way: str, how: str) -> None:
    extra = {"conversation": "conv_7"} if way == "conversation" else {}

    def ask(request: Json) -> Answer:
        return ASK["responses", how](client, {**request, **extra})

    drive(converse(scenario, "responses", carry=CARRY[way]), ask)
    run.expects_plays(plays(scenario, "responses"))


every_continuation = pytest.mark.parametrize("way", CARRY)


@pytest.mark.slow
@every_continuation
@pytest.mark.parametrize("scenario", LONGER, ids=lambda s: s.name)
def test_ways_to_continue(client, run, scenario, way):
    """A conversation goes on however the client points at the answers before."""
    go_on(client, run, scenario, way, "stream")


@pytest.mark.parametrize("how", ["body", "helper"])
@every_continuation
def test_ways_to_continue_not_streamed(client, run, way, how):
    """It does not matter whether the answers before were streamed, or by whom they were read."""
    go_on(client, run, SCENARIOS["multi-hop"], way, how)


def test_unknown_previous_response(client, run):
    """An answer that is not ours cannot be continued."""
    run.expects("invalid")
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="Hi", previous_response_id="resp_68a1")
    assert caught.value.code == "previous_response_not_found"


def test_missing_results(client, run):
    """An answer with calls cannot be continued without their results."""
    run.expects("played", "invalid")
    response = client.responses.create(model=MODEL, input=opening(SCENARIOS["secret-numbers"]))
    with pytest.raises(openai.BadRequestError, match=r"No tool output found .* call_alice"):
        client.responses.create(model=MODEL, input="Well?", previous_response_id=response.id)


# What is stored


def test_retrieve_and_delete(client, run):
    """A response can be asked for again by its id, until it is deleted."""
    run.expects("played", "played", "played", "invalid", "invalid")
    request = first(SCENARIOS["secret-numbers"], "responses")
    with client.responses.stream(**request) as events:
        made = events.get_final_response()
    stored = client.responses.retrieve(made.id)
    assert of_response(stored).seen == of_response(made).seen
    assert stored.id == made.id
    assert stored.tools == made.tools
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError, match=made.id):
        client.responses.retrieve(made.id)
    with pytest.raises(openai.NotFoundError, match=made.id):
        client.responses.delete(made.id)


def test_responses_not_stored(client, run):
    """A response that was not to be stored cannot be asked for."""
    run.expects("played", "invalid")
    made = client.responses.create(model=MODEL, input="secret numbers", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_input_items(client):
    """The input of a response is listed, newest first, in pages that the client walks through."""
    said = [
        {"role": "user", "content": "secret numbers"},
        {"role": "assistant", "content": "Whose?"},
        {"role": "user", "content": "All secret numbers."},
    ]
    made = client.responses.create(model=MODEL, input=said)
    page = client.responses.input_items.list(made.id)
    texts = [item.content[0].text for item in page]
    assert texts == ["All secret numbers.", "Whose?", "secret numbers"]
    assert len({item.id for item in page}) == 3


def test_input_items_in_pages(client):
    """Order and size of the pages are as the client asks."""
    said = [{"role": "user", "content": f"secret numbers {n}"} for n in range(3)]
    made = client.responses.create(model=MODEL, input=said)
    walked = client.responses.input_items.list(made.id, order="asc", limit=2)
    assert [item.content[0].text for item in walked] == [entry["content"] for entry in said]
