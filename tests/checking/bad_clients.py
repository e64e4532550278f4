"""Clients that get one thing wrong in a conversation, and the scenarios that show it.

Each is a function that takes a `Talk` through its conversation; `BAD` names the scenarios that it
needs and the invariant that it breaks.
"""

from __future__ import annotations

import json
from itertools import count

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.client_requests import ASKING
from mockllm.replay.player import Player
from mockllm.replay.resolve import resolve
from mockllm.replay.session import Exchange, Session
from mockllm.replay.loading import loads
from mockllm.scenario.model import Scenario
from tests.checking.talking import (
    MODELS,
    Gave,
    Said,
    body,
    call,
    called,
    gave,
    results_of_responses,
)

TWO = """
scenario: two
match: {user: numbers}
turns:
  - reply:
      - {tool: number, id: call_a, arguments: {of: alice, deep: [1, {x: true}]}}
      - {tool: number, id: call_b, arguments: {of: bob}}
  - reply: {text: Done.}
"""
OTHER = """
---
scenario: other
match: {user: weather}
turns:
  - reply: {tool: weather, id: call_w, arguments: {city: Oslo}}
  - reply: {text: Snow.}
"""
HOPS = """
scenario: hops
match: {user: book}
turns:
  - reply: {tool: find, id: call_1}
  - reply: {tool: book, id: call_2, arguments: {n: 1}}
  - reply: {text: Booked.}
"""
FAILS = """
scenario: fails
match: {user: read}
turns:
  - reply:
      - {tool: read, id: call_r}
      - {tool: list, id: call_l}
  - request: {results: {call_r: {error: true}}}
    reply: {text: I see.}
"""
BREAKS = """
scenario: breaks
match: {user: delete}
turns:
  - reply: {tool: delete, id: call_d}
  - http: 500
  - reply: {text: Gone.}
"""
ENDLESS = """
scenario: endless
match: {user: search}
turns:
  - reply: {tool: search, arguments: {q: x}}
    repeat: true
"""
MALFORMED = """
scenario: malformed
match: {user: broken}
turns:
  - reply:
      - {tool: number, id: call_x, arguments: '{"of": ', malformed: true}
      - {tool: number, id: call_y, arguments: {of: bob}}
  - reply: {text: Done.}
"""
A = call("number", "call_a", '{"of":"alice","deep":[1,{"x":true}]}')
B = call("number", "call_b", '{"of":"bob"}')
W = call("weather", "call_w", '{"city":"Oslo"}')
FIND, BOOK = call("find", "call_1"), call("book", "call_2", '{"n":1}')
READ, LIST = call("read", "call_r"), call("list", "call_l")
DELETE = call("delete", "call_d")
TOOLS = ("number", "weather", "find", "book", "read", "list", "delete", "search")
BOTH = called(A, B)
RESULTS = (gave(A, "42"), gave(B, "7"))


class Talk:
    """A session without a server: what is asked is played, a second after the last request."""

    def __init__(self, text: str | Scenario, api: str, *, strict: bool = True) -> None:
        scenarios = loads(text) if isinstance(text, str) else [text]
        self.player = Player(scenarios, strict=strict)
        self.session = Session("default")
        self.api = api
        self._clock = count(1.0)

    def ask(self, *items, **noted) -> Exchange:
        """Sends what is said; `noted` are fields of the exchange that delivery fills in."""
        return self.send(body(self.api, *items, tools=TOOLS), **noted)

    def send(self, given: dict, **noted) -> Exchange:
        asking = ASKING[self.api]
        model = MODELS.get(self.api, "mock")
        params = {name: value.format(model=model) for name, value in asking.params.items()}
        exchange = Exchange(
            "POST", asking.path, {}, json.dumps(given).encode(), self.api, clock=next(self._clock)
        )
        exchange.params = params
        self.player.play(PROTOCOLS[self.api], params, {}, self.session, exchange)
        self.session.record(exchange)
        exchange.ended = 0.0
        for name, value in noted.items():
            setattr(exchange, name, value)
        return exchange

    def verify(self, **options) -> Verification:
        return verify(self.session, self.player.catalogue.by_name, **options)

    def blamed(self, **options) -> set[str]:
        return {violation.invariant for violation in self.verify(**options).violations}


def renamed(one, **fields):
    """A call with something changed."""
    return call(
        fields.get("name", one.name),
        fields.get("id", one.id),
        fields.get("arguments", one.arguments),
    )


def responses(answer: Exchange, *items) -> dict:
    """A request of Responses that points at an earlier answer."""
    given = {"model": "gpt-4o", "input": results_of_responses(items)}
    return {**given, "previous_response_id": answer.answer_id}


def results_one_by_one(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, gave(A, "42"))


def results_too_early(talk):
    talk.ask("numbers", ended=5.0)
    talk.ask("numbers", BOTH, *RESULTS)


def results_while_open(talk):
    talk.ask("numbers", ended=None)
    talk.ask("numbers", BOTH, *RESULTS)


def results_before_leaving(talk):
    talk.ask("numbers", client_gone=True, ended=None, duration=9.0)
    talk.ask("numbers", BOTH, *RESULTS)


def a_result_twice(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, *RESULTS, gave(A, "42"))


def a_result_for_nobody(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, gave(A, "42"), Gave("item_7", "number", "7"))


def other_arguments(talk):
    talk.ask("numbers")
    talk.ask("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)


def deep_arguments(talk):
    talk.ask("numbers")
    wrong = renamed(A, arguments='{"of":"alice","deep":[1,{"x":1}]}')
    talk.ask("numbers", called(wrong, B), *RESULTS)


def another_id(talk):
    talk.ask("numbers")
    other = renamed(B, id="call_new")
    talk.ask("numbers", called(A, other), gave(A, "42"), gave(other, "7"))


def another_name(talk):
    talk.ask("numbers")
    other = renamed(B, name="weather")
    talk.ask("numbers", called(A, other), gave(A, "42"), gave(other, "7"))


def a_call_left_out(talk):
    talk.ask("numbers")
    talk.ask("numbers", called(A), gave(A, "42"))


def a_call_made_up(talk):
    talk.ask("numbers")
    more = call("number", "call_c", '{"of":"eve"}')
    talk.ask("numbers", called(A, B, more), *RESULTS, gave(more, "1"))


def a_result_without_its_call(talk):
    talk.ask("numbers")
    talk.ask("numbers", called(A), *RESULTS)


def a_call_that_waits_again(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, *RESULTS)
    talk.ask("numbers", BOTH, gave(A, "42"), Said("Done."), "and then?")


def a_call_that_was_never_executed(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, *RESULTS)
    talk.ask("numbers", BOTH, "and then?")


def a_call_that_is_both(talk):
    talk.ask("book")
    talk.ask("book", called(FIND), gave(FIND, "x"))
    talk.ask("book", called(FIND), gave(FIND, "x"), called(BOOK, FIND), gave(BOOK, "y"))


def a_failure_as_a_success(talk):
    talk.ask("read")
    talk.ask("read", called(READ, LIST), gave(READ, "all fine"), gave(LIST, "a b"))


def a_failure_not_answered(talk):
    talk.ask("read")
    talk.ask("read", called(READ, LIST), gave(LIST, "a b"))


def one_round_only(talk):
    talk.ask("book")
    talk.ask("book", called(FIND), gave(FIND, "found"))


def never_stops(talk):
    items = ["search"]
    for _ in range(7):
        talk.ask(*items)
        made = resolve(
            talk.player.catalogue.by_name["endless"],
            (len(items) - 1) // 2,
            talk.api,
            PROTOCOLS[talk.api].call_prefix,
        ).tool_calls
        items += [called(*made), *(gave(one, "nothing") for one in made)]


def goes_on_after_leaving(talk):
    talk.ask("numbers", client_gone=True, ended=None, duration=0.5)
    talk.ask("numbers", BOTH, *RESULTS)


def runs_the_tool_again(talk):
    talk.ask("delete")
    talk.ask("delete", called(DELETE), gave(DELETE, "deleted 3 files"))
    talk.ask("delete", called(DELETE), gave(DELETE, "deleted 0 files"))


def takes_an_error_for_an_answer(talk):
    talk.ask("delete")
    talk.ask("delete", called(DELETE), gave(DELETE, "done"))
    talk.ask("delete", called(DELETE), gave(DELETE, "done"), Said("All is well."), "Thanks.")


def results_of_another_conversation(talk):
    talk.ask("numbers")
    talk.ask("weather")
    talk.ask("weather", called(W), gave(A, "42"))


def calls_of_another_conversation(talk):
    talk.ask("numbers")
    talk.ask("weather")
    talk.ask("weather", called(A), gave(A, "42"))


def a_result_without_any_call(talk):
    talk.ask(gave(W, "snow"), "numbers")


def a_call_without_its_result(talk):
    talk.ask("numbers")
    talk.ask("numbers", BOTH, "and then?")


BAD = {
    results_one_by_one: (TWO, "tools-after-end"),
    results_too_early: (TWO, "tools-after-end"),
    results_while_open: (TWO, "tools-after-end"),
    results_before_leaving: (TWO, "tools-after-end"),
    a_result_twice: (TWO, "answer-each-once"),
    a_result_for_nobody: (TWO, "answer-each-once"),
    other_arguments: (TWO, "history-faithful"),
    deep_arguments: (TWO, "history-faithful"),
    another_id: (TWO, "history-faithful"),
    another_name: (TWO, "history-faithful"),
    a_call_left_out: (TWO, "history-faithful"),
    a_call_made_up: (TWO, "history-faithful"),
    a_result_without_its_call: (TWO, "history-faithful"),
    a_call_that_waits_again: (TWO, "pending-or-executed"),
    a_call_that_was_never_executed: (TWO, "pending-or-executed"),
    a_call_that_is_both: (HOPS, "pending-or-executed"),
    a_failure_as_a_success: (FAILS, "failure-reported"),
    a_failure_not_answered: (FAILS, "failure-reported"),
    one_round_only: (HOPS, "multi-hop"),
    never_stops: (ENDLESS, "depth-bounded"),
    goes_on_after_leaving: (TWO, "cancel-stops"),
    runs_the_tool_again: (BREAKS, "continuation-error"),
    takes_an_error_for_an_answer: (BREAKS, "continuation-error"),
    results_of_another_conversation: (TWO + OTHER, "conversations-separate"),
    calls_of_another_conversation: (TWO + OTHER, "conversations-separate"),
    a_result_without_any_call: (TWO, "request-valid"),
    a_call_without_its_result: (TWO, "request-valid"),
}
