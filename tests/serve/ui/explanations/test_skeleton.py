"""The skeleton for a request that no scenario answers loads, and answers this request."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.play.matching.index import SCENARIO_HEADER
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.serve.ui.explanation import explanation_json
from tests.entries import journal_entry
from tests.serve.ui.explanations.requests import APIS, HOSTILE, bodies, known, played

OTHERS = """\
scenario: greeting
match: {user: {equals: Say hello.}, model: other}
turns:
  - reply: {text: Hello.}
---
scenario: numbers
apis: [chat]
match: {user: {regex: "^numbers"}, tools: [get]}
turns:
  - reply: {text: "7"}
"""


def skeleton_answers(protocol, model, body, headers=None, others=OTHERS):
    """The exchange of a request, refused, and again with its skeleton beside the others."""
    served = loads(others)
    refused = played(protocol, model, body, Player(served, strict=False), headers)
    assert refused.outcome == "unmatched"
    found = explanation_json(Player(served), refused)
    assert found is not None
    assert found["skeleton"] is not None
    json.dumps(found)
    found["skeleton"].encode()
    (scenario,) = loads(found["skeleton"])
    others = [one for one in served if one.name != scenario.name]
    return (
        found,
        played(protocol, model, body, Player([*others, scenario], strict=False), headers),
        scenario,
    )


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_the_skeleton_of_any_request_answers_it(api, data):
    with known(api) as protocol:
        model, body = data.draw(bodies(protocol))
        _, again, scenario = skeleton_answers(protocol, model, body)
        assert (again.outcome, again.status) == ("played", 200), again.problems
        assert (again.scenario, again.turn) == (scenario.name, len(scenario.turns) - 1)


@pytest.mark.parametrize("api", APIS)
def test_hostile_texts_give_a_skeleton(api):
    with known(api) as protocol:
        for text in HOSTILE:
            body = first_body(protocol, "m", text)
            _, again, scenario = skeleton_answers(protocol, "m", body)
            assert (again.outcome, again.scenario) == ("played", scenario.name), ascii(text)


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_a_text_of_ten_megabytes_gives_a_short_skeleton(api):
    with known(api) as protocol:
        body = first_body(protocol, "m", "a: *b \x00\n" * 1_250_000)
        found, again, scenario = skeleton_answers(protocol, "m", body)
        assert (again.outcome, again.scenario) == ("played", scenario.name)
        assert len(found["skeleton"]) < 2_000
        assert len(json.dumps(found)) < 100_000


def test_a_request_that_names_a_scenario_gets_one_of_that_name():
    with known("chat") as protocol:
        body = first_body(protocol, "mock/weather", "hi")
        _, again, scenario = skeleton_answers(protocol, "mock/weather", body)
        assert scenario.name == "weather"
        assert scenario.match is None
        assert again.outcome == "played"


@pytest.mark.parametrize("name", ["Not A Name", "ä", "x:\n  y", "../up"])
def test_a_name_that_no_scenario_can_have_gets_no_skeleton(name):
    with known("chat") as protocol:
        served = loads(OTHERS)
        body = first_body(protocol, "gpt", "hi")
        headers = {SCENARIO_HEADER: name}
        refused = played(protocol, "gpt", body, Player(served, strict=False), headers)
        assert refused.outcome == "unmatched"
        assert explanation_json(Player(served), refused)["skeleton"] is None


_BY_ID = ("responses", "interactions")
"""Their clients go on by the id of an answer, which this test has none of."""


@pytest.mark.parametrize("api", [api for api in APIS if api not in _BY_ID])
def test_a_conversation_past_its_end_gets_a_further_turn(api):
    with known(api) as protocol:
        others = "scenario: short\nturns:\n  - reply: {text: One.}\n"
        body = first_body(protocol, "m", "hi")
        body = protocol.client.next_message(body, "", "One.", "And then?")
        headers = {SCENARIO_HEADER: "short"}
        found, again, scenario = skeleton_answers(protocol, "m", body, headers, others)
        assert (again.outcome, again.turn, len(scenario.turns)) == ("played", 1, 2)
        assert "In place of the scenario short" in found["skeleton"]
        (nearest,) = found["nearest"]
        assert [(condition["path"], condition["met"]) for condition in nearest["conditions"]] == [
            ("scenario", True),
            ("turns", False),
        ]


def test_two_scenarios_that_match_equally_well_give_one_that_matches_better():
    with known("chat") as protocol:
        others = (
            "scenario: one\nmatch: {user: hello}\nturns: [{reply: {text: '1'}}]\n---\n"
            "scenario: two\nmatch: {user: {equals: hello you}}\nturns: [{reply: {text: '2'}}]\n"
        )
        body = first_body(protocol, "m", "hello you")
        _, again, _ = skeleton_answers(protocol, "m", body, others=others)
        assert again.scenario == "hello-you"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/files"), ("POST", "/a/b?x=1&y=%20z"), ("DELETE", "/v1/things/1*")],
)
def test_a_route_that_nothing_answers_gets_a_scenario(method, path):
    from mockllm.play.matching.route_selection import RouteRequest

    exchange = journal_entry(method, path, {}, b"{}", outcome="unknown route", status=404)
    found = explanation_json(Player(loads(OTHERS)), exchange)
    assert found is not None
    assert found["kind"] == "unknown route"
    (scenario,) = loads(found["skeleton"])
    route = RouteRequest(method, path.partition("?")[0], path.partition("?")[2], {}, b"{}")
    assert Player([scenario]).routes.index.select(route) == ((scenario, 0),)
