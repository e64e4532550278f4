"""Conversations of clients that are right: nothing is told of them."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.checking.conversations.judge import Verification
from mockllm.matching.positions import planned_calls, turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.client_requests import ASKING, first_body, user_text
from mockllm.replay.resolve import resolve
from mockllm.replay.loading import load
from mockllm.scenario.model import APIS
from mockllm.scenario.shipped import shipped_scenarios
from tests.checking.bad_clients import (
    BOOK,
    BOTH,
    BREAKS,
    DELETE,
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
    renamed,
    responses,
)
from tests.checking.talking import Said, body, call, called, gave, results_of_responses

every_api = pytest.mark.parametrize("api", APIS)
every_judging = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])


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


@pytest.mark.slow
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


@pytest.mark.slow
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
