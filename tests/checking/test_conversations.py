"""What a session's journal is found to tell: bad clients, each by one name."""

from __future__ import annotations

import json

import pytest

from mockllm.checking.conversations.judge import (
    CONVERSATION_INVARIANTS,
    Verification,
    Violation,
    verify,
)
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.replay.autoreply import answer as auto_answer
from mockllm.replay.resolve import resolve
from mockllm.replay.session import Session
from mockllm.scenario.model import APIS
from tests.checking.bad_clients import (
    BAD,
    BOOK,
    ENDLESS,
    FIND,
    HOPS,
    OTHER,
    RESULTS,
    TWO,
    A,
    B,
    Talk,
    a_result_twice,
    another_id,
    never_stops,
    renamed,
    responses,
    results_one_by_one,
)
from tests.checking.talking import Said, body, called, gave

every_api = pytest.mark.parametrize("api", APIS)
every_judging = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])


@pytest.mark.slow
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@every_api
@every_judging
def test_a_bad_client_is_told_by_one_name(bad, api, strict):
    """What one client does wrong breaks one invariant and no other, refused or not."""
    text, invariant = BAD[bad]
    talk = Talk(text, api, strict=strict)
    bad(talk)
    found = talk.verify(depth=4).violations
    assert {one.invariant for one in found} == {invariant}, found
    assert not talk.verify(depth=4, leave_out=frozenset({invariant})).violations
    last = talk.session.journal[-1].number
    assert all(one.exchange == last for one in found) or bad is never_stops


def test_every_invariant_has_a_bad_client():
    """No invariant is there in name only."""
    assert {name for _, name in BAD.values()} == set(CONVERSATION_INVARIANTS)


@pytest.mark.parametrize("bad", [results_one_by_one, a_result_twice, another_id])
def test_a_violation_is_told_once(bad):
    """Every later request brings the whole history; what was wrong in it is not told again."""
    talk = Talk(TWO, "chat", strict=False)
    bad(talk)
    before = talk.verify().violations
    bad(talk)
    assert talk.verify().violations == before


@pytest.mark.parametrize(
    ("items", "invariant"),
    [
        ([gave(A, "42")], "tools-after-end"),
        ([*RESULTS, gave(A, "42")], "answer-each-once"),
        ([gave(A, "42"), gave(renamed(B, id="nobody"), "7")], "answer-each-once"),
        (["never mind"], "request-valid"),
    ],
)
@every_judging
def test_results_for_a_turn_that_the_service_keeps(items, invariant, strict):
    """Results are judged by what was streamed where the calls are not sent back."""
    talk = Talk(TWO, "responses", strict=strict)
    answer = talk.ask("numbers")
    talk.send(responses(answer, *items))
    assert talk.blamed() == {invariant}


def test_a_result_again_for_a_turn_that_the_service_keeps():
    """A call of an earlier turn that was answered is not answered once more."""
    talk = Talk(HOPS, "responses", strict=False)
    one = talk.ask("book")
    two = talk.send(responses(one, gave(FIND, "found")))
    talk.send(responses(two, gave(FIND, "found"), gave(BOOK, "ok")))
    assert talk.blamed() == {"answer-each-once"}


def test_depth_is_counted_through_turns_that_the_service_keeps():
    """A client that points at the answer before is counted like one that sends all."""
    talk = Talk(ENDLESS, "responses")
    answer = talk.ask("search")
    for position in range(5):
        made = resolve(talk.player.catalogue.by_name["endless"], position, "responses", "call_")
        results = [gave(one, "nothing") for one in made.tool_calls]
        answer = talk.send(responses(answer, *results))
    assert talk.verify(depth=6).good
    (violation,) = talk.verify(depth=5).violations
    assert (violation.invariant, violation.exchange) == ("depth-bounded", 6)


def test_a_talk_without_end_is_no_endless_model():
    """A user may say as much as there is to say: only tools are counted."""
    talk = Talk(ENDLESS.replace("tool: search, arguments: {q: x}", "text: Tick."), "chat")
    items = ["search"]
    for _ in range(8):
        talk.ask(*items)
        items += [Said("Tick."), "search"]
    assert talk.verify(depth=2).good


def test_a_stream_that_fails_gives_no_calls():
    """Calls that came before an error in the stream are not answered."""
    text = HOPS.replace("{tool: book, id: call_2, arguments: {n: 1}}", "BROKEN").replace(
        "BROKEN", "[{tool: book, id: call_2, arguments: {n: 1}}, {error: {message: Oh.}}]"
    )
    talk = Talk(text, "chat")
    talk.ask("book")
    talk.ask("book", called(FIND), gave(FIND, "found"))
    talk.ask("book", called(FIND), gave(FIND, "found"), Said("Half an ans"), "Go on.")
    assert talk.verify().violations == ()
    talk.ask("book", called(FIND), gave(FIND, "found"), called(BOOK), gave(BOOK, "ok"))
    assert talk.blamed() == {"continuation-error"}


# How tools are offered


BAD_TOOLS = [
    ("chat", {"tools": [{"type": "function", "function": {"name": "no spaces"}}]}),
    ("chat", {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
    ("chat", {"tool_choice": "sometimes"}),
    ("responses", {"tools": [{"type": "function", "name": "x" * 65, "parameters": {}}]}),
    ("responses", {"tool_choice": {"type": "function", "name": "absent"}}),
    ("anthropic", {"tools": [{"name": "f", "input_schema": "none"}]}),
    ("anthropic", {"tool_choice": {"type": "always"}}),
    ("gemini", {"tools": [{"functionDeclarations": [{"name": "no spaces"}]}]}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}}),
    ("agui", {"tools": [{"name": "f", "description": "", "parameters": []}]}),
]


@pytest.mark.parametrize(("api", "fields"), BAD_TOOLS)
@every_judging
def test_tools_are_offered_as_the_api_takes_them(api, fields, strict):
    """A bad name, schema or choice is told once, with the words of the API."""
    talk = Talk(TWO, api, strict=strict)
    for _ in range(2):
        talk.send({**body(api, "numbers"), **fields})
    (violation,) = talk.verify().violations
    assert violation.invariant == "request-valid"


def test_what_is_refused_is_not_valid():
    """A request that the API refuses for any other reason is told, too, with the reason."""
    talk = Talk(TWO, "chat")
    talk.send({**body("chat", "numbers"), "temperature": 3})
    (violation,) = talk.verify().violations
    assert (violation.invariant, violation.exchange) == ("request-valid", 1)
    assert "temperature" in violation.message


def test_conditions_of_a_scenario_are_no_rule_of_conversations():
    """A request that a turn's `request` does not want is refused, but valid."""
    talk = Talk(OTHER.replace("- reply", "- request: {offers: [x]}\n    reply", 1), "chat")
    talk.ask("weather")
    assert talk.verify() == Verification(invalid=(1,))


# The verdict


def test_as_json():
    """Everything is there for those who are not Python."""
    talk = Talk(TWO, "chat")
    results_one_by_one(talk)
    talk.ask("nothing answers this")
    found = talk.verify()
    assert not found.good
    shown = json.loads(json.dumps(found.as_json()))
    assert shown["violations"] == [
        {
            "invariant": "tools-after-end",
            "exchange": 2,
            "message": found.violations[0].message,
        }
    ]
    assert shown["unplayed"] == [{"scenario": "two", "turn": 1}]
    assert (shown["unmatched"], shown["invalid"], shown["good"]) == ([3], [2], False)


def test_a_violation_as_a_line():
    """It names the invariant and the request."""
    assert str(Violation("multi-hop", 3, "why")) == "multi-hop, request 3: why"
    assert str(Violation("multi-hop", None, "why")) == "multi-hop: why"


def test_an_unknown_name_is_no_invariant():
    """A name to leave out that is misspelt is an error that names the nearest."""
    with pytest.raises(UsageError, match="Did you mean 'multi-hop'"):
        verify(Session("s"), {}, leave_out=frozenset({"multihop"}))


def test_an_automatic_answer_is_known_too():
    """Calls made up from the request are compared like those that were written."""
    talk = Talk("scenario: auto\nmatch: any\nturns: [{reply: {auto: true}, repeat: true}]", "chat")
    given = {**body("chat", "hi", tools=["number"]), "tool_choice": "required"}
    talk.send(given)
    request = PROTOCOLS["chat"].parse(given, {}, True)
    scenario = talk.player.catalogue.by_name["auto"]
    (made,) = resolve(scenario, 0, "chat", "call_", auto=auto_answer(request)).tool_calls
    talk.ask("hi", called(renamed(made, arguments='{"a":1}')), gave(made, "x"))
    assert talk.blamed() == {"history-faithful"}
