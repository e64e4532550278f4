"""What a session's journal is found to tell: bad clients by name, good ones not at all."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.asking import ASKING, first_body, user_text
from mockllm.auto import answer as auto_answer
from mockllm.checking.conversations import CONVERSATION_INVARIANTS, Verification, Violation, verify
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.resolve import planned_calls, resolve, turn_at
from mockllm.scenario.load import load
from mockllm.scenario.model import APIS
from mockllm.session import Exchange, Session
from mockllm.shipped import shipped_scenarios
from tests.checking.bad_clients import (
    BAD,
    BOOK,
    BOTH,
    BREAKS,
    DELETE,
    ENDLESS,
    FIND,
    HOPS,
    MALFORMED,
    OTHER,
    RESULTS,
    TOOLS,
    TWO,
    A,
    B,
    Talk,
    W,
    a_result_twice,
    another_id,
    never_stops,
    renamed,
    results_one_by_one,
)
from tests.checking.talking import Said, body, call, called, gave, results_of_responses

every_api = pytest.mark.parametrize("api", APIS)
every_judging = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])


# Clients that are right


@every_api
@every_judging
def test_nothing_is_told_of_a_client_that_is_right(api, strict):
    """Calls answered in the order they came, or in another, with more words afterwards."""
    talk = Talk(TWO + OTHER, api, strict=strict)
    talk.ask("numbers")
    talk.ask("numbers", BOTH, *RESULTS)
    talk.ask("weather")
    talk.ask("weather", called(W), gave(W, "snow"))
    talk.ask("numbers", called(B, A), *reversed(RESULTS), Said("Done."), "and the weather?")
    assert talk.verify() == Verification()
    assert talk.verify().good


MEETS = "Error: not found. CONFIRMED"
"""What meets every regular expression in the shipped scenarios."""


def told(scenario, position, api):
    """The calls of a turn that parse, and the results that the turn after it wants."""
    prefix = PROTOCOLS[api].call_prefix
    planned = planned_calls(scenario, position, api, prefix) or ()
    broken = {one.id for one in planned if one.malformed}
    turn = resolve(scenario, position, api, prefix)
    calls = [one for one in turn.tool_calls if one.id not in broken]
    after = turn_at(scenario, position + 1, api)
    wanted = dict(after.request.results) if after is not None and after.request else {}
    texts = {id: MEETS if one.text.op == "regex" else one.text.value for id, one in wanted.items()}
    return calls, [texts.get(one.id, "fine") for one in calls]


@every_api
@pytest.mark.parametrize("scenario", load([shipped_scenarios()]), ids=lambda one: one.name)
def test_shipped_conversations(api, scenario):
    """A client that goes through a shipped scenario to its end is told nothing."""
    talk, asking = Talk(scenario, api), ASKING[api]
    asked = first_body(asking, "mock", user_text(scenario), scenario.tools)
    for position in range(len(scenario.turns)):
        for _ in turn_at(scenario, position, api).attempts:
            talk.send(asked)
        exchange = talk.send(asked)
        assert exchange.outcome in ("played", "error"), exchange.problems
        if exchange.outcome == "error" or scenario.name == "auto":
            break
        calls, results = told(scenario, position, api)
        if not calls:
            break
        asked = asking.then(asked, exchange.answer_id or "", calls, results)
    assert talk.verify().violations == ()


@every_api
def test_conversations_side_by_side(api):
    """Two conversations that are alike are not taken for one that contradicts itself."""
    talk = Talk(TWO, api)
    talk.ask("numbers")
    talk.ask("numbers", ended=None)
    talk.ask("numbers", BOTH, gave(A, "1"), gave(B, "2"))
    talk.ask("numbers", BOTH, gave(A, "3"), gave(B, "4"))
    assert talk.verify().good


@st.composite
def plays(draw):
    """Scenarios, and the order in which some clients of them ask, each its next request or the
    one before once more."""
    numbers = count()
    documents = []
    for name in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
        turns = [
            {
                "reply": [
                    {"tool": draw(st.sampled_from(TOOLS)), "id": f"call_{next(numbers)}"}
                    for _ in range(size)
                ]
                or [{"text": "Said."}]
            }
            for size in sizes
        ]
        documents.append({"scenario": f"s{name}", "match": {"user": f"word{name}"}, "turns": turns})
    order = draw(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
    return "\n---\n".join(map(json.dumps, documents)), len(documents), order


def right(talk, scenario, name):
    """The requests of a client that is right, each after the answer to the one before."""
    items = [f"word{name}"]
    for position in range(len(scenario.turns)):
        yield list(items)
        turn = resolve(scenario, position, talk.api, PROTOCOLS[talk.api].call_prefix)
        calls = turn.tool_calls
        items.append(called(*calls) if calls else Said(turn.text))
        items += [gave(one, f"{one.id} gave this") for one in calls] or ["Go on."]


@every_api
@given(play=plays())
@settings(max_examples=40)
def test_no_client_that_is_right_is_blamed(api, play):
    """Whatever the calls, however many clients ask at once and again: nothing is told."""
    text, names, order = play
    talk = Talk(text, api)
    known = talk.player.catalogue.by_name
    clients = [right(talk, known[f"s{n % names}"], n % names) for n in range(4)]
    latest = {}
    for number, again in order:
        if not again or number not in latest:
            latest[number] = next(clients[number], latest.get(number))
        if latest[number] is not None:
            talk.ask(*latest[number])
    found = talk.verify()
    assert (found.unmatched, found.invalid) == ((), ())
    assert [one for one in found.violations if one.invariant != "multi-hop"] == []
    for client in clients:
        for items in client:
            talk.ask(*items)
    assert talk.verify().violations == ()


@every_api
@pytest.mark.parametrize("kept", [True, False])
def test_malformed_calls_may_be_left_out(api, kept):
    """A call that never parsed is sent back in any form, or not at all."""
    broken, fine = call("number", "call_x", "{}"), call("number", "call_y", '{"of":"bob"}')
    calls = (broken, fine) if kept else (fine,)
    talk = Talk(MALFORMED, api)
    talk.ask("broken")
    talk.ask("broken", called(*calls), *(gave(one, "x") for one in calls))
    assert talk.verify().good


@every_api
def test_the_same_request_may_come_again(api):
    """Retries that are identical are right, after an error or without one."""
    talk = Talk(BREAKS, api)
    for _ in range(3):
        talk.ask("delete")
    for _ in range(3):
        talk.ask("delete", called(DELETE), gave(DELETE, "done"))
    talk.ask("delete", called(DELETE), gave(DELETE, "done"), "Try again.")
    assert talk.verify().violations == ()


@every_api
def test_an_abandoned_stream_may_be_asked_for_again(api):
    """A client that gives up waiting and asks once more goes on from the second answer."""
    talk = Talk(TWO, api)
    talk.ask("numbers", client_gone=True, ended=None, duration=0.5)
    talk.ask("numbers")
    talk.ask("numbers", BOTH, *RESULTS)
    assert talk.verify().good


@every_api
def test_a_user_may_go_on_after_a_cancellation(api):
    """Results that say that a call was cancelled, with new words of the user, are right."""
    talk = Talk(TWO, api)
    talk.ask("numbers", client_gone=True, ended=None, duration=0.5)
    talk.ask("numbers", BOTH, gave(A, "cancelled"), gave(B, "cancelled"), "Stop, please.")
    assert talk.verify().violations == ()


@every_api
def test_histories_from_elsewhere(api):
    """Of turns that were not streamed in this session nothing is known, so nothing is told."""
    talk = Talk(TWO, api)
    talk.ask("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)
    assert talk.verify().violations == ()


@every_api
def test_old_turns_may_be_shortened(api):
    """Only the turn that is new has to be faithful; of older ones clients leave things out."""
    talk = Talk(HOPS, api)
    talk.ask("book")
    talk.ask("book", called(FIND), gave(FIND, "found"))
    shortened = renamed(FIND, arguments='{"left":"out"}')
    talk.ask("book", called(shortened), gave(FIND, "..."), called(BOOK), gave(BOOK, "ok"))
    assert talk.verify().good


def test_ids_that_gemini_lacks():
    """Calls of models that give no ids are told apart by name and arguments."""
    talk = Talk(TWO, "gemini")

    def ask(*items):
        given = json.loads(json.dumps(body("gemini", *items)).replace('"id": ', '"no": '))
        talk.send(given)

    ask("numbers")
    ask("numbers", called(B, A), *reversed(RESULTS))
    assert talk.verify().good
    ask("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)
    (violation,) = talk.verify().violations
    assert violation.invariant == "history-faithful"
    assert '{"of":"eve"}' in violation.message


def responses(answer: Exchange, *items) -> dict:
    """A request of Responses that points at an earlier answer."""
    given = {"model": "gpt-4o", "input": results_of_responses(items)}
    return {**given, "previous_response_id": answer.answer_id}


def test_turns_that_the_service_keeps():
    """What points at an earlier answer sends no calls back, and needs none."""
    talk = Talk(HOPS, "responses")
    one = talk.ask("book")
    two = talk.send(responses(one, gave(FIND, "found")))
    talk.send(responses(two, gave(BOOK, "ok")))
    assert talk.verify().good


def test_conversations_and_references_that_the_service_keeps():
    """A conversation by name, and items by reference, are followed as well."""
    talk = Talk(HOPS, "responses")
    for items in (["book"], [gave(FIND, "found")], [gave(BOOK, "ok")]):
        given = {"model": "gpt-4o", "input": results_of_responses(items)}
        talk.send({**given, "conversation": "conv_1"})
    answer = talk.ask("book")
    reference = {"type": "item_reference", "id": f"fc_{answer.answer_id.partition('_')[2]}0000"}
    said = [*results_of_responses(["book"]), reference]
    talk.send({"model": "m", "input": said + results_of_responses([gave(FIND, "found")])})
    assert talk.verify().good


def test_hosted_tools_are_none_of_ours():
    """Results of tools that are part of Responses itself have calls that scenarios have not."""
    talk = Talk(OTHER, "responses")
    hosted = [
        {"type": "computer_call", "call_id": "cc_1", "action": {}},
        {"type": "computer_call_output", "call_id": "cc_1", "output": {}},
    ]
    talk.send({"model": "m", "input": [*hosted, {"role": "user", "content": "weather"}]})
    assert talk.verify().violations == ()


# Clients that are not


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
