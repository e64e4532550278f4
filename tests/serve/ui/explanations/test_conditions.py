"""Conditions are all met where, and only where, the matcher answers; notes are its messages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.errors import NoMatchError
from mockllm.play.matching.index import SCENARIO_HEADER, ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.scenario.model import CombinedText, Match, Scenario, TextCondition
from mockllm.scenario.model import TurnSpec as Turn
from mockllm.scenario.part_model import AutoPart, TextPart, ToolPart
from mockllm.serve.ui.explanation import explanation_json, scenario_conditions
from tests.entries import journal_entry
from tests.serve.ui.explanations.requests import APIS, bodies, known, names, played, request_of

words = st.sampled_from(["a", "b", "ab", "- a: b", "x", "Say"])
plain_conditions = st.builds(
    TextCondition,
    st.sampled_from(["contains", "equals", "regex"]),
    st.sampled_from(["a", "b", " "]),
)
conditions = plain_conditions | st.builds(
    CombinedText,
    st.sampled_from(["any", "all", "not"]),
    st.lists(plain_conditions, min_size=1, max_size=1).map(tuple),
)
plain_matches = st.builds(
    Match,
    anything=st.just(False),
    user=st.none() | conditions,
    model=st.sampled_from([None, "gpt-4", "m*", "*"]),
    system=st.none() | conditions,
    tools=st.lists(st.sampled_from(["get", "set-it"]), max_size=2, unique=True).map(tuple),
    headers=st.lists(st.tuples(st.just("x-team"), conditions), max_size=1).map(tuple),
    body=st.sampled_from([None, {"model": "gpt-4"}, {"stream": True, "no": 1}, {}]),
    stream=st.sampled_from([None, True, False]),
)
entries = st.lists(plain_matches.filter(lambda match: match.conditions), max_size=2).map(tuple)
matches = plain_matches | st.builds(
    replace, plain_matches, any_of=entries, all_of=entries.map(lambda some: some[:1])
)
matches |= st.builds(
    lambda match, negated: replace(match, negated=negated[0] if negated else None),
    matches,
    entries,
)
turns = st.sampled_from(
    [
        Turn(reply=(TextPart("one"),)),
        Turn(reply=(ToolPart("get", "call_00", "{}"),)),
        Turn(reply=(AutoPart(),)),
        Turn(reply=(TextPart("on"),), repeat=True),
    ]
)
scenarios = st.builds(
    Scenario,
    name=st.just("one"),
    turns=st.lists(turns, min_size=1, max_size=3).map(tuple),
    match=matches | st.none() | st.just(Match(anything=True)),
    apis=st.sampled_from([(), ("chat",), ("anthropic", "gemini")]),
    restart=st.booleans(),
)


def is_answered(scenario, request, headers, protocol) -> bool:
    """Whether the matcher selects a scenario that is served alone."""
    try:
        select(ScenarioIndex([scenario]), request, headers)
    except NoMatchError:
        return False
    return True


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_all_conditions_are_met_exactly_where_the_scenario_answers(api, data):
    with known(api) as protocol:
        model, body = data.draw(bodies(protocol))
        scenario = data.draw(scenarios)
        headers = data.draw(
            st.sampled_from([{}, {"x-team": "a"}, {SCENARIO_HEADER: "one"}, {SCENARIO_HEADER: "x"}])
        )
        request = request_of(protocol, model, body)
        found = scenario_conditions(scenario, request, headers)
        answered = is_answered(scenario, request, headers, protocol)
        assert all(one.met for one in found) == answered, found


SCENARIOS = """\
scenario: weather
match:
  user: {contains: weather}
  model: gpt-*
  tools: [get_weather]
  headers: {x-team: {equals: blue}, authorization: {contains: sk-1}}
  body: {temperature: 0, top_p: 1}
  stream: true
turns:
  - reply: {text: Sunny.}
---
scenario: asks
match: {user: begin}
turns:
  - reply: [{tool: get, id: call_1, arguments: {}}]
  - request:
      results: {call_1: {equals: "42"}}
      offers: [get, put]
      tool_choice: required
      user: {regex: "^begin$"}
      body: {model: other}
      schema: {required: [seed, model]}
    reply: {text: Done.}
"""


def test_each_condition_has_what_is_expected_and_what_was_sent():
    with known("chat") as protocol:
        body = first_body(protocol, "gpt-4", "What is the wether?") | {"temperature": 0}
        headers = {"x-team": "red", "authorization": "***"}
        player = Player(loads(SCENARIOS))
        found = explanation_json(player, played(protocol, "gpt-4", body, player, headers))
        assert found["kind"] == "unmatched"
        nearest = found["nearest"][0]
        assert (nearest["scenario"], nearest["turn"]) == ("weather", None)
        assert {condition["path"]: condition["met"] for condition in nearest["conditions"]} == {
            "match.user": False,
            "match.model": True,
            "match.tools": False,
            "match.headers.authorization": False,
            "match.headers.x-team.equals": False,
            "match.body.temperature": True,
            "match.body.top_p": False,
            "match.stream": True,
        }
        by_path = {condition["path"]: condition for condition in nearest["conditions"]}
        user = by_path["match.user"]
        assert (user["expected"], user["actual"]) == ("weather", "What is the wether?")
        assert by_path["match.tools"]["actual"] == "none"
        assert by_path["match.body.top_p"]["expected"] == "1"
        assert "keeps no credentials" in by_path["match.headers.authorization"]["note"]
        assert user["note"] in found["message"]  # the message has the same words


COMBINED = """\
scenario: weather
match:
  user: {any: [weather, {regex: "(?i)rain"}]}
  any: [{model: mistral-*}, {headers: {authorization: sk-1}}]
  not: {user: Paris}
turns:
  - reply: {text: Sunny.}
"""


def test_a_group_is_one_condition_with_all_that_it_expects():
    with known("chat") as protocol:
        body = first_body(protocol, "gpt-4", "Is there weather in Paris?")
        player = Player(loads(COMBINED))
        found = explanation_json(
            player, played(protocol, "gpt-4", body, player, {"authorization": "***"})
        )
        user, model, negated = found["nearest"][0]["conditions"]
        assert (user["path"], user["met"]) == ("match.user.any", True)
        assert user["expected"] == '["weather", {"regex": "(?i)rain"}]'
        assert (model["path"], model["met"]) == ("match.any", False)
        assert model["expected"] == '[{"model": "mistral-*"}, {"headers.authorization": "sk-1"}]'
        assert "keeps no credentials" in model["note"]
        assert (negated["path"], negated["met"]) == ("match.not", False)
        assert negated["note"].startswith(
            "match.not: this must not hold, but it does: user 'Paris'"
        )


def test_a_turn_that_refuses_shows_each_condition_of_its_request():
    with known("chat") as protocol:
        from mockllm.core.turn import ToolCall

        player = Player(loads(SCENARIOS), strict=False)
        body = first_body(protocol, "m", "begin")
        body = protocol.client.continuation(body, "", [ToolCall("get", "call_1", ("{}",))], ["41"])
        found = explanation_json(player, played(protocol, "m", body, player))
        assert found["kind"] == "refused"
        (turn,) = found["nearest"]
        assert (turn["scenario"], turn["turn"]) == ("asks", 1)
        assert names(turn["conditions"]) == [
            "request.results.call_1.equals",
            "request.offers",
            "request.offers",
            "request.tool_choice",
            "request.user.regex",
            "request.body.model",
            "request.schema",
        ]
        assert [condition["met"] for condition in turn["conditions"]] == [False] * 4 + [
            True,
            False,
            False,
        ]
        result = turn["conditions"][0]
        assert (result["expected"], result["actual"]) == ("42", "41")
        for condition in turn["conditions"]:
            assert condition["met"] or condition["note"] in found["message"], condition


def test_what_was_answered_has_its_conditions_and_other_refusals_have_their_message():
    with known("chat") as protocol:
        player = Player(loads("scenario: any\nmatch: any\nturns: [{reply: {text: x}}]\n"))
        body = first_body(protocol, "m", "hi")
        answered = explanation_json(player, played(protocol, "m", body, player))
        assert (answered["kind"], answered["skeleton"]) == ("played", None)
        assert [(one["scenario"], one["conditions"]) for one in answered["nearest"]] == [
            ("any", [])
        ]
        refused = played(protocol, "m", {"model": 1}, player)
        found = explanation_json(player, refused)
        assert (found["kind"], found["nearest"], found["skeleton"]) == ("invalid", [], None)
        assert found["message"] == "\n".join(refused.problems) != ""


def test_a_body_that_was_shortened_gets_no_skeleton():
    with known("chat") as protocol:
        player = Player(loads(SCENARIOS))
        exchange = played(protocol, "m", first_body(protocol, "m", "x" * 2**21), player)
        exchange.settle()
        found = explanation_json(player, exchange)
        assert exchange.body_size is not None
        assert found["nearest"]
        assert found["skeleton"] is None
        assert "too large" in found["skeleton_why"]


def test_conditions_of_a_route_are_judged():

    player = Player(
        loads(
            "scenario: files\nroute: GET /v1/files\nmatch: {query: {limit: {equals: '2'}}}\n"
            "turns: [{answer: {json: []}}]\n"
        )
    )
    exchange = journal_entry("GET", "/v1/files?limit=3", {}, b"", outcome="unmatched", status=404)
    (nearest,) = explanation_json(player, exchange)["nearest"]
    (one,) = nearest["conditions"]
    assert (one["path"], one["met"], one["expected"], one["actual"]) == (
        "match.query.limit.equals",
        False,
        "2",
        "3",
    )


def test_a_route_whose_header_is_masked_says_so():
    text = "scenario: files\nroute: GET /v1/files\nmatch: {headers: {authorization: sk-1}}\n"
    player = Player(loads(text + "turns: [{answer: {json: []}}]\n"))
    headers = {"authorization": "***"}
    exchange = journal_entry("GET", "/v1/files", headers, b"", outcome="unmatched", status=404)
    (nearest,) = explanation_json(player, exchange)["nearest"]
    assert "keeps no credentials" in nearest["conditions"][0]["note"]


def test_the_file_and_the_line_of_a_scenario_are_known(tmp_path):
    from mockllm.play.replay.loading import load

    file = tmp_path / "two.yaml"
    file.write_text("# first\n" + SCENARIOS)
    served = load(file)
    assert [(one.file, one.line) for one in served] == [(str(file), 2), (str(file), 13)]
    assert served == loads(SCENARIOS) == tuple(replace(one, file="", line=0) for one in served)


def test_a_body_may_be_nested_as_deeply_as_it_can_be_read():
    import json

    from mockllm.serve.ui.explanation import conversation_json

    text = (
        "scenario: deep\nmatch: {user: hi, body: {deep: [1], x: 1}}\nturns: [{reply: {text: x}}]\n"
    )
    with known("chat") as protocol:
        player = Player(loads(text))
        for depth in range(900, 1000, 6):
            nested = "[" * depth + "]" * depth
            exchange = played(protocol, "m", first_body(protocol, "m", "hi"), player)
            assert exchange.outcome == "unmatched"
            body = exchange.body[:-1] + f', "deep": {nested}, "x": {nested}}}'.encode()
            exchange = exchange.copy(body)
            assert json.dumps(explanation_json(player, exchange))
            assert json.dumps(conversation_json("chat", exchange))
