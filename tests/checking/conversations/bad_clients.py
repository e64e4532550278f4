"""Clients that make one mistake in a conversation, and the scenarios that show it.

Each client is a function that sends the requests of one `Conversation`. `BAD` names the scenarios
that it needs and the invariant that it breaks. The golden record holds the names of the functions.
"""

from __future__ import annotations

import json
from itertools import count

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Exchange, Received, Sent
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS
from tests.checking.conversations.request_bodies import (
    MODELS,
    AssistantMessage,
    ToolResult,
    body,
    call,
    called,
    result,
    results_of_responses,
)
from tests.entries import amend

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
LOOK = """
scenario: look
match: {user: look}
turns:
  - reply:
      - text: I will look.
      - {tool: find, id: call_1}
  - reply: {text: Found.}
"""
LOOKS_TWICE = """
scenario: looks-twice
match: {user: look}
turns:
  - reply:
      - text: I will look.
      - {tool: find, id: call_1}
  - reply:
      - text: Again.
      - {tool: book, id: call_2, arguments: {n: 1}}
  - reply: {text: Found.}
"""
TIDY = """
scenario: tidy
match: {user: tidy}
turns:
  - reply: {tool: find, id: call_1}
  - reply: {text: Tidy.}
"""
THINK = """
scenario: think
match: {user: think}
turns:
  - reply:
      - {reasoning: Hm., signature: c2lnbmVk}
      - {tool: find, id: call_1, signature: Y2FsbA==}
  - reply: {text: Found.}
"""
DRAW = """
scenario: draw
match: {user: draw}
turns:
  - reply:
      - text: A cat.
      - image: {base64: R0lGODlhAQABAAAAACwAAAAAAQABAAA=, type: image/gif}
        signature: aW1hZ2U=
  - reply: {text: It is bigger.}
"""
REPORT = """
scenario: report
match: {user: weather}
turns:
  - reply: {text: It is going to snow for a long time.}
  - reply: {text: Well.}
"""
A = call("number", "call_a", '{"of":"alice","deep":[1,{"x":true}]}')
B = call("number", "call_b", '{"of":"bob"}')
W = call("weather", "call_w", '{"city":"Oslo"}')
FIND, BOOK = call("find", "call_1"), call("book", "call_2", '{"n":1}')
READ, LIST = call("read", "call_r"), call("list", "call_l")
DELETE = call("delete", "call_d")
TOOLS = ("number", "weather", "find", "book", "read", "list", "delete", "search")
BOTH = called(A, B)
RESULTS = (result(A, "42"), result(B, "7"))


class Conversation:
    """A session without a server; each request begins one second after the one before."""

    def __init__(self, text: str | Scenario, api: str, *, strict: bool = True) -> None:
        scenarios = loads(text) if isinstance(text, str) else [text]
        self.player = Player(scenarios, strict=strict)
        self.session = Session("default")
        self.api = api
        self._clock = count(1.0)

    def request(self, *items, **fields) -> Exchange:
        """Sends the whole history; `fields` are those of the exchange that delivery fills in."""
        return self.send(body(self.api, *items, tools=TOOLS), **fields)

    def send(self, given: dict, **fields) -> Exchange:
        protocol = PROTOCOLS[self.api]
        target = client_target(protocol, MODELS.get(self.api, "mock"))
        data, clock = json.dumps(given).encode(), next(self._clock)
        answered = self.player.play(ApiCall(protocol, target, {}, data, self.session))
        received = Received("POST", protocol.client.path, {}, data, clock=clock, target=target)
        sent = Sent(clock, complete=not answered.answer.closes_connection)
        exchange = Exchange(received, answered.played, sent)
        self.session.record(exchange)
        return amend(exchange, **{"ended": 0.0, **fields})

    def verify(self, **options) -> Verification:
        return verify(self.session, self.player.served.by_name, **options)

    def broken_invariants(self, **options) -> set[str]:
        return {violation.invariant for violation in self.verify(**options).violations}


def renamed(one, **fields):
    """A copy of a call with some fields changed."""
    return call(
        fields.get("name", one.name),
        fields.get("id", one.id),
        fields.get("arguments", one.arguments),
    )


def responses(answer: Exchange, *items) -> dict:
    """A request of Responses with the id of an earlier answer."""
    given = {"model": "gpt-4o", "input": results_of_responses(items)}
    return {**given, "previous_response_id": answer.played.answer_id}


def results_one_by_one(conversation):
    """Sends the result of the first of two calls alone."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, result(A, "42"))


def results_too_early(conversation):
    """Sends the results before the stream of the calls has ended."""
    conversation.request("numbers", ended=5.0)
    conversation.request("numbers", BOTH, *RESULTS)


def results_while_open(conversation):
    """Sends the results while the stream of the calls is still open."""
    conversation.request("numbers", ended=None)
    conversation.request("numbers", BOTH, *RESULTS)


def results_before_leaving(conversation):
    """Sends the results before it aborts the stream of the calls."""
    conversation.request("numbers", client_gone=True, ended=None, duration=9.0)
    conversation.request("numbers", BOTH, *RESULTS)


def a_result_twice(conversation):
    """Sends the result of one call twice."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS, result(A, "42"))


def a_result_for_nobody(conversation):
    """Sends a result with the id of an item, which no call has."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, result(A, "42"), ToolResult("item_7", "number", "7"))


def other_arguments(conversation):
    """Sends a call back with other arguments."""
    conversation.request("numbers")
    conversation.request("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)


def deep_arguments(conversation):
    """Sends a call back with true turned into 1, deep in its arguments."""
    conversation.request("numbers")
    changed = renamed(A, arguments='{"of":"alice","deep":[1,{"x":1}]}')
    conversation.request("numbers", called(changed, B), *RESULTS)


def another_id(conversation):
    """Sends a call back with an id of its own."""
    conversation.request("numbers")
    other = renamed(B, id="call_new")
    conversation.request("numbers", called(A, other), result(A, "42"), result(other, "7"))


def another_name(conversation):
    """Sends a call back with the name of another tool."""
    conversation.request("numbers")
    other = renamed(B, name="weather")
    conversation.request("numbers", called(A, other), result(A, "42"), result(other, "7"))


def a_call_left_out(conversation):
    """Leaves one of two calls and its result out of the history."""
    conversation.request("numbers")
    conversation.request("numbers", called(A), result(A, "42"))


def a_call_left_out_without_tools(conversation):
    """Leaves one of two calls and its result out of the history, and offers no tools."""
    conversation.send(body(conversation.api, "numbers"))
    conversation.send(body(conversation.api, "numbers", called(A), result(A, "42")))


def a_call_made_up(conversation):
    """Adds a call to the history that was not streamed."""
    conversation.request("numbers")
    more = call("number", "call_c", '{"of":"eve"}')
    conversation.request("numbers", called(A, B, more), *RESULTS, result(more, "1"))


def a_result_without_its_call(conversation):
    """Leaves a call out of the history and sends its result."""
    conversation.request("numbers")
    conversation.request("numbers", called(A), *RESULTS)


def a_call_that_waits_again(conversation):
    """Leaves a result out of a later request that had been sent before."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    conversation.request("numbers", BOTH, result(A, "42"), AssistantMessage("Done."), "and then?")


def a_call_that_was_never_executed(conversation):
    """Goes on without the results that it sent before."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    conversation.request("numbers", BOTH, "and then?")


def a_call_that_is_both(conversation):
    """Repeats an answered call beside a new one, without a second result."""
    conversation.request("book")
    conversation.request("book", called(FIND), result(FIND, "x"))
    conversation.request(
        "book", called(FIND), result(FIND, "x"), called(BOOK, FIND), result(BOOK, "y")
    )


def a_failure_as_a_success(conversation):
    """Sends a failed tool result without the error flag."""
    conversation.request("read")
    conversation.request("read", called(READ, LIST), result(READ, "all fine"), result(LIST, "a b"))


def a_failure_not_answered(conversation):
    """Sends no result for the tool that failed."""
    conversation.request("read")
    conversation.request("read", called(READ, LIST), result(LIST, "a b"))


def one_round_only(conversation):
    """Stops after the first of two rounds of tool calls."""
    conversation.request("book")
    conversation.request("book", called(FIND), result(FIND, "found"))


def never_stops(conversation):
    """Answers the calls of a model that never stops calling."""
    items = ["search"]
    for _ in range(7):
        conversation.request(*items)
        calls = resolve(
            conversation.player.served.by_name["endless"],
            (len(items) - 1) // 2,
            conversation.api,
        ).tool_calls
        items += [called(*calls), *(result(one, "nothing") for one in calls)]


def goes_on_after_leaving(conversation):
    """Aborts the stream of the calls and sends their results."""
    conversation.request("numbers", client_gone=True, ended=None, duration=0.5)
    conversation.request("numbers", BOTH, *RESULTS)


def runs_the_tool_again(conversation):
    """Runs a tool again after the continuation failed with status 500."""
    conversation.request("delete")
    conversation.request("delete", called(DELETE), result(DELETE, "deleted 3 files"))
    conversation.request("delete", called(DELETE), result(DELETE, "deleted 0 files"))


def takes_an_error_for_an_answer(conversation):
    """Goes on with a new message as if the failed continuation had been answered."""
    conversation.request("delete")
    conversation.request("delete", called(DELETE), result(DELETE, "done"))
    conversation.request(
        "delete",
        called(DELETE),
        result(DELETE, "done"),
        AssistantMessage("All is well."),
        "Thanks.",
    )


def results_of_another_conversation(conversation):
    """Sends the result of a call of another conversation."""
    conversation.request("numbers")
    conversation.request("weather")
    conversation.request("weather", called(W), result(A, "42"))


def calls_of_another_conversation(conversation):
    """Sends a call and a result of another conversation."""
    conversation.request("numbers")
    conversation.request("weather")
    conversation.request("weather", called(A), result(A, "42"))


def a_result_without_any_call(conversation):
    """Sends a result in a history without calls."""
    conversation.request(result(W, "snow"), "numbers")


def a_call_without_its_result(conversation):
    """Sends calls back without results."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, "and then?")


def requests_an_answer_again(conversation):
    """Sends a request again whose answer it received in full."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    conversation.request("numbers", BOTH, *RESULTS)


def empty_arguments(conversation):
    """Sends a call without arguments back with an empty text in place of an object."""
    conversation.request("tidy")
    given = body(conversation.api, "tidy", called(FIND), result(FIND, "found"), tools=TOOLS)
    conversation.send(with_empty_arguments(given))


def with_empty_arguments(value):
    """A body in which the arguments of all calls are an empty text."""
    if isinstance(value, dict):
        return {
            name: ""
            if name in ("arguments", "args", "input") and one in ("{}", {})
            else with_empty_arguments(one)
            for name, one in value.items()
        }
    if isinstance(value, list):
        return [with_empty_arguments(one) for one in value]
    return value


def text_left_out(conversation):
    """Sends back the calls of a turn without its text."""
    conversation.request("look")
    conversation.request("look", called(FIND), result(FIND, "found"))


def calls_twice(conversation):
    """Sends the calls of a turn back twice."""
    conversation.request("numbers")
    conversation.request("numbers", AssistantMessage("", (A, B, A, B)), *RESULTS)


def a_round_trip_twice(conversation):
    """Sends the calls and their results back twice."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS, BOTH, *RESULTS)


def the_results_again(conversation):
    """Sends the calls and their results again after the answer to them."""
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    done = AssistantMessage("Done.")
    conversation.request("numbers", BOTH, *RESULTS, done, "and?", BOTH, *RESULTS)


def an_opaque_value_left_out(conversation):
    """Sends a call back without the signature or the encrypted reasoning that came with it."""
    thinks(conversation)
    conversation.send(thoughtful_body(conversation.api, {}))


def thinks(conversation):
    """Requests the turn with reasoning and a call."""
    conversation.send(thoughtful_body(conversation.api))


THOUGHT = {
    "anthropic": {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
    "bedrock": {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2lnbmVk"}}},
    "gemini": {"thoughtSignature": "Y2FsbA=="},
    "interactions": {"type": "thought", "signature": "c2lnbmVk"},
    "responses": {"encrypted_content": "c2lnbmVk"},
}
"""The opaque values of the turn, as a correct client sends them back."""


def thoughtful_body(api, thought=None):
    """A request with reasoning enabled; with `thought`, one that continues the turn with it."""
    history = ["think"] if thought is None else ["think", called(FIND), result(FIND, "found")]
    given = body(api, *history, tools=TOOLS)
    if api == "anthropic":
        given |= {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024}}
        if thought:
            given["messages"][1]["content"].insert(0, thought)
    elif api == "bedrock":
        thinking = {"type": "enabled", "budget_tokens": 1024}
        given["additionalModelRequestFields"] = {"thinking": thinking}
        if thought:
            given["messages"][1]["content"].insert(0, thought)
    elif api == "interactions" and thought:
        given["input"].insert(1, thought)
    elif api == "gemini" and thought is not None:
        given["contents"][1]["parts"][0] |= thought
    elif api == "responses":
        given["store"] = False
        if thought is not None:
            reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
            given["input"].insert(1, {**reasoning, **thought})
    return given


def an_image_left_out(conversation):
    """Goes on with the text of a turn, and without the image that the model made."""
    conversation.request("draw")
    conversation.request("draw", AssistantMessage("A cat."), "Bigger.")


def reads_on(conversation):
    """Goes on with the user's next message and reads the cancelled stream to its end."""
    conversation.request("weather", ended=9.0)
    conversation.request("weather", AssistantMessage("It is"), "Stop. And the numbers?")


_SYSTEM = {
    "responses": {"instructions": "Be brief."},
    "anthropic": {"system": "Be brief."},
    "interactions": {"system_instruction": "Be brief."},
    "gemini": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
    "live": {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
    "bedrock": {"system": [{"text": "Be brief."}]},
}


def with_system(given, api):
    """A request with a system prompt."""
    if api == "realtime":
        return {**given, "session": {**given["session"], "instructions": "Be brief."}}
    if api in _SYSTEM:
        return {**given, **_SYSTEM[api]}
    system = {"role": "system", "content": "Be brief."} | ({"id": "s"} if api == "agui" else {})
    return {**given, "messages": [system, *given["messages"]]}


_MORE = ("weather", AssistantMessage("It is going to snow for a long time."), "And then?")


def loses_the_system_prompt(conversation):
    """Sends the system prompt with the first request only."""
    conversation.send(with_system(body(conversation.api, "weather", tools=TOOLS), conversation.api))
    conversation.request(*_MORE)


def loses_its_tools(conversation):
    """Offers its tools with the first request only."""
    conversation.request("weather")
    conversation.send(body(conversation.api, *_MORE))


def offers_another_tool(conversation):
    """Offers a tool, but not the one that the scenario calls."""
    conversation.send(body(conversation.api, "tidy", tools=["search"]))


BAD = {
    loses_the_system_prompt: (REPORT, "system-kept"),
    loses_its_tools: (REPORT, "tools-kept"),
    offers_another_tool: (TIDY, "call-offered"),
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
    a_call_left_out_without_tools: (TWO, "history-faithful"),
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
    requests_an_answer_again: (TWO, "extra-request"),
    empty_arguments: (TIDY, "empty-arguments-object"),
    text_left_out: (LOOK, "text-in-history"),
    calls_twice: (TWO, "history-faithful"),
    a_round_trip_twice: (TWO, "answer-each-once"),
    the_results_again: (TWO, "answer-each-once"),
    an_opaque_value_left_out: (THINK, "opaque-kept"),
    an_image_left_out: (DRAW, "opaque-kept"),
    reads_on: (REPORT, "stream-abandoned"),
    a_result_without_any_call: (TWO, "request-valid"),
    a_call_without_its_result: (TWO, "request-valid"),
}

EXCEPT = {
    empty_arguments: ("agui", "gemini", "live"),
    an_opaque_value_left_out: ("chat", "agui", "cohere", "ollama", "realtime", "live"),
    a_call_without_its_result: ("realtime", "live"),
    results_one_by_one: ("live",),
    an_image_left_out: tuple(api for api in PROTOCOLS if api != "gemini"),
}
"""The APIs in which a client does not break the invariant: AG-UI streams an empty text for no
arguments, Gemini refuses it, so that the request is not valid, and Live has arguments as JSON; Chat
Completions, AG-UI, Cohere, Ollama, Realtime and Live require no opaque values, and Gemini alone has
images in its history. Realtime takes results later, and Live cancels calls where the user goes
on."""
