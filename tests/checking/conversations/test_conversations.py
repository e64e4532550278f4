"""The verdict on a session's journal: each bad client breaks the one invariant that it should."""

from __future__ import annotations

import json

import pytest

from mockllm.checking.conversations.invariants import ON_REQUEST
from mockllm.checking.conversations.judge import verify
from mockllm.checking.conversations.session_history import Violation
from mockllm.checking.rules import CONVERSATION_INVARIANTS
from mockllm.core.errors import UsageError
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.auto.autoreply import auto_parts
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.sessions.session import Session
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.cases import for_all
from tests.checking.conversations.bad_clients import (
    BAD,
    BOOK,
    DRAW,
    ENDLESS,
    EXCEPT,
    FIND,
    HOPS,
    LOOKS_TWICE,
    OTHER,
    REPORT,
    RESULTS,
    THINK,
    THOUGHT,
    TOOLS,
    TWO,
    A,
    B,
    Conversation,
    W,
    a_result_twice,
    another_id,
    loses_its_tools,
    never_stops,
    other_arguments,
    renamed,
    responses,
    results_one_by_one,
    thinks,
    thoughtful_body,
)
from tests.checking.conversations.mcp.agents import OVER_TOOLS
from tests.checking.conversations.request_bodies import AssistantMessage, body, call, called, result
from tests.serve.server.sockets.test_mistakes import BAD as BAD_OVER_SOCKETS

APIS = CALLING

every_api = for_all("api", APIS)
strict_and_lenient = for_all("strict", [True, False], ids=["strict", "lenient"])


@pytest.mark.slow
@for_all("bad", BAD, ids=lambda bad: bad.__name__)
@every_api
@strict_and_lenient
def test_a_bad_client_breaks_exactly_one_invariant(bad, api, strict):
    """One mistake breaks one invariant and no other, whether requests are refused or not."""
    text, invariant = BAD[bad]
    conversation = Conversation(text, api, strict=strict)
    bad(conversation)
    options = {"depth": 4, "require": frozenset({invariant}) & ON_REQUEST}
    found = conversation.verify(**options).violations
    if api in EXCEPT.get(bad, ()):
        assert {one.invariant for one in found} <= {"request-valid", "results-come"}
        return
    assert {one.invariant for one in found} == {invariant}, found
    assert not conversation.verify(**options, leave_out=frozenset({invariant})).violations
    last = conversation.session.journal[-1].number
    assert all(one.exchange == last for one in found) or bad is never_stops


def test_every_invariant_has_a_bad_client():
    """Each invariant of conversations is broken by at least one of the bad clients; those of
    recordings, jobs, agents, WebSockets and MCP in tests of their own."""
    broken = {name for _, name in BAD.values()} | {"request-unchanged", "answer-fetched"}
    broken.add("turn-repeated")
    broken |= set(BAD_OVER_SOCKETS.values()) | OVER_TOOLS
    assert broken == set(CONVERSATION_INVARIANTS)


@every_api
def test_what_a_request_lost_is_a_remark(api):
    """The verdict is good; the remark names the request. Where it is required, it counts."""
    conversation = Conversation(REPORT, api)
    loses_its_tools(conversation)
    found = conversation.verify()
    assert found.verdict == "good"
    ((remark,), shown) = found.remarks, found.as_json()["remarks"]
    assert (remark.invariant, remark.exchange, len(shown)) == ("tools-kept", 2, 1)
    assert "the tools of request 1" in remark.message
    assert conversation.verify(require=frozenset({"tools-kept"})).verdict == "bad"


def test_arguments_that_a_schema_refuses():
    """A mistake in the mock would test the wrong thing; malformed arguments are meant so."""
    text = "scenario: s\nmatch: {user: x}\nturns:\n  - reply: {tool: find, arguments: ARGUMENTS}"
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool = {"type": "function", "function": {"name": "find", "parameters": schema}}

    def remarks(arguments, tools):
        conversation = Conversation(text.replace("ARGUMENTS", arguments), "chat")
        conversation.send({**body("chat", "x"), **({"tools": tools} if tools else {})})
        return [remark.message for remark in conversation.verify().remarks]

    (message,) = remarks("{n: one}", [tool])
    assert "'one' is not of type 'integer'" in message
    assert remarks("{n: 1}", [tool]) == remarks("{n: one}", []) == []
    assert remarks("'{\"n\": ', malformed: true", [tool]) == []


@pytest.mark.parametrize("bad", [results_one_by_one, a_result_twice, another_id])
def test_a_violation_is_reported_once(bad):
    """Later requests repeat the whole history; a violation in it is reported for the first only."""
    conversation = Conversation(TWO, "chat", strict=False)
    bad(conversation)
    before = conversation.verify().violations
    bad(conversation)
    assert conversation.verify().violations == before


@pytest.mark.parametrize(
    ("items", "invariant"),
    [
        ([result(A, "42")], "tools-after-end"),
        ([*RESULTS, result(A, "42")], "answer-each-once"),
        ([result(A, "42"), result(renamed(B, id="nobody"), "7")], "answer-each-once"),
        (["never mind"], "request-valid"),
    ],
)
@strict_and_lenient
def test_results_for_a_stored_turn(items, invariant, strict):
    """With `previous_response_id` results are compared with the calls that were streamed."""
    conversation = Conversation(TWO, "responses", strict=strict)
    answer = conversation.request("numbers")
    conversation.send(responses(answer, *items))
    assert conversation.broken_invariants() == {invariant}


def test_a_second_result_for_a_stored_turn():
    """With `previous_response_id` a call that has a result must not get a second one."""
    conversation = Conversation(HOPS, "responses", strict=False)
    first = conversation.request("book")
    second = conversation.send(responses(first, result(FIND, "found")))
    conversation.send(responses(second, result(FIND, "found"), result(BOOK, "ok")))
    assert conversation.broken_invariants() == {"answer-each-once"}


def test_depth_counts_stored_turns():
    """A client that sends `previous_response_id` reaches the same depth as one that sends all."""
    conversation = Conversation(ENDLESS, "responses")
    answer = conversation.request("search")
    for position in range(5):
        turn = resolve(conversation.player.served.by_name["endless"], position, "responses")
        results = [result(call, "nothing") for call in turn.tool_calls]
        answer = conversation.send(responses(answer, *results))
    assert conversation.verify(depth=6).good
    (violation,) = conversation.verify(depth=5).violations
    assert (violation.invariant, violation.exchange) == ("depth-bounded", 6)


def test_depth_counts_tool_calls_and_not_messages():
    """Eight turns of text break no limit of two: only turns with tool calls are counted."""
    conversation = Conversation(
        ENDLESS.replace("tool: search, arguments: {q: x}", "text: Tick."), "chat"
    )
    items = ["search"]
    for _ in range(8):
        conversation.request(*items)
        items += [AssistantMessage("Tick."), "search"]
    assert conversation.verify(depth=2).good


def test_calls_of_a_failed_stream_must_not_be_answered():
    """A result for a call that was streamed before an error breaks `continuation-error`."""
    text = HOPS.replace("{tool: book, id: call_2, arguments: {n: 1}}", "BROKEN").replace(
        "BROKEN", "[{tool: book, id: call_2, arguments: {n: 1}}, {error: {message: Oh.}}]"
    )
    conversation = Conversation(text, "chat")
    conversation.request("book")
    conversation.request("book", called(FIND), result(FIND, "found"))
    conversation.request(
        "book", called(FIND), result(FIND, "found"), AssistantMessage("Half an ans"), "Go on."
    )
    assert conversation.verify().violations == ()
    conversation.request(
        "book", called(FIND), result(FIND, "found"), called(BOOK), result(BOOK, "ok")
    )
    assert conversation.broken_invariants() == {"continuation-error"}


@every_api
def test_a_later_call_that_is_left_out(api):
    """Whether tools are offered or not: the client takes calls, as its history shows."""
    conversation = Conversation(LOOKS_TWICE, api, strict=False)
    first = AssistantMessage("I will look.", (FIND,)), result(FIND, "found")
    for items in ((), first, (*first, AssistantMessage("Again."), "And?")):
        conversation.send(body(api, "look", *items))
    (violation,) = conversation.verify().violations
    assert (violation.invariant, violation.exchange) == ("history-faithful", 3)


# Opaque values


@pytest.mark.parametrize(
    ("api", "thought", "message"),
    [
        ("anthropic", {}, "the thinking block that was streamed before the calls is not sent back"),
        ("anthropic", {"signature": "b3RoZXI="}, "with the signature 'b3RoZXI='"),
        ("anthropic", {"thinking": "Hm"}, "and the text 'Hm', which were not streamed together"),
        ("bedrock", {}, "the reasoning that was streamed before the calls is not sent back"),
        ("bedrock", {"reasoningContent": {"reasoningText": {"text": "Hm."}}}, "the signature None"),
        ("bedrock", {"reasoningContent": {"redactedContent": "bw=="}}, "is sent back as 'bw=='"),
        ("gemini", {}, "was streamed with a thought signature and is sent back without"),
        ("gemini", {"thoughtSignature": "b3RoZXI="}, "is sent back as 'b3RoZXI='"),
        ("gemini", {"thoughtSignature": 7}, "is sent back as 7, but was streamed as 'Y2FsbA=='"),
        ("responses", {}, "the reasoning item 'rs_1' is sent back without its encrypted content"),
        ("responses", {"encrypted_content": "b3RoZXI="}, "is sent back as 'b3RoZXI='"),
    ],
)
def test_an_opaque_value_that_is_lost_or_changed(api, thought, message):
    """The violation names the value that the service would refuse."""
    conversation = Conversation(THINK, api, strict=False)
    thinks(conversation)
    whole = THOUGHT[api] if thought and api == "anthropic" else {}
    conversation.send(thoughtful_body(api, {**whole, **thought}))
    (violation,) = conversation.verify().violations
    assert (violation.invariant, violation.exchange) == ("opaque-kept", 2)
    assert message in violation.message


REDACTED = """
scenario: redacted
match: {user: think}
turns:
  - reply:
      - frame:
          data:
            contentBlockDelta:
              contentBlockIndex: 0
              delta: {reasoningContent: {redactedContent: eA==}}
        api: bedrock
      - {tool: find, id: call_1}
  - reply: {text: Found.}
"""


@pytest.mark.parametrize(
    ("content", "is_good"),
    [({"redactedContent": "eA=="}, True), ({"redactedContent": "eQ=="}, False), (None, False)],
)
def test_redacted_reasoning_of_bedrock(content, is_good):
    """It goes back as it was streamed; left out it may be only where thinking is not enabled."""
    conversation = Conversation(REDACTED, "bedrock")
    conversation.send(thoughtful_body("bedrock"))
    conversation.send(thoughtful_body("bedrock", {"reasoningContent": content} if content else {}))
    assert (conversation.broken_invariants() == set()) == is_good


@pytest.mark.parametrize(
    ("data", "is_good"), [("c2VjcmV0", True), ("b3RoZXI=", False), (None, False)]
)
def test_redacted_thinking_of_anthropic(data, is_good):
    """It goes back before the call as it was streamed, also where nothing else was thought."""
    text = """
scenario: redacted
match: {user: think}
turns:
  - reply:
      - {native: {type: redacted_thinking, data: c2VjcmV0}, api: anthropic}
      - {tool: find, id: call_1}
  - reply: {text: Found.}
"""
    conversation = Conversation(text, "anthropic")
    conversation.send(thoughtful_body("anthropic"))
    block = {"type": "redacted_thinking", "data": data} if data else {}
    conversation.send(thoughtful_body("anthropic", block))
    assert (conversation.broken_invariants() == set()) == is_good


CAT = {"inlineData": {"mimeType": "image/gif", "data": "R0lGODlhAQABAAAAACwAAAAAAQABAAA="}}


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ({}, "was streamed with 1 image and is sent back with 0"),
        (CAT, "of an image is sent back as None, but was streamed as 'aW1hZ2U='"),
        (CAT | {"thoughtSignature": "b3RoZXI="}, "is sent back as 'b3RoZXI='"),
        (CAT | {"thoughtSignature": "aW1hZ2U="}, None),
        ({"fileData": {"fileUri": "f"}, "thoughtSignature": "aW1hZ2U"}, None),
    ],
)
def test_an_image_that_is_lost_or_changed(image, message):
    """The model edits the images that the history has."""
    conversation = Conversation(DRAW, "gemini", strict=False)
    conversation.request("draw")
    given = body("gemini", "draw", AssistantMessage("A cat."), "Bigger.", tools=TOOLS)
    given["contents"][1]["parts"] += [image] if image else []
    conversation.send(given)
    found = [one.message for one in conversation.verify().violations]
    assert len(found) == (message is not None)
    assert message is None or message in found[0]


# Each answer once


HELLO = """
scenario: hello
match: any
turns: [{reply: {text: Hello.}}]
"""


@every_api
def test_one_answer_for_three_requests(api):
    """Each further request for an answer that was given is a violation that names the first."""
    conversation = Conversation(HELLO, api)
    for text in ("Who are you?", "And why?", "Who are you?"):
        conversation.request(text)
    assert conversation.verify().good
    second, third = conversation.verify(once=True).violations
    assert [(one.invariant, one.exchange) for one in (second, third)] == [
        ("extra-request", 2),
        ("extra-request", 3),
    ]
    assert second.message.startswith(
        "turn 1 of scenario 'hello' was the answer to request 1 already, and is requested again "
        "with another body"
    )
    assert "with the same body" in third.message


@for_all(
    "text",
    [
        HELLO.replace("Hello.}", "Hello.}, repeat: true"),
        HELLO + "then: restart\n",
        HELLO.replace("reply: {text: Hello.}", "http: 503"),
        HELLO.replace("{text: Hello.}", "[{text: Hel}, {error: {message: Oh.}}]"),
        HELLO.replace("Hello.}", "Hello.}, wire: {quirks: ['sse-cut:reset']}"),
        HELLO.replace("Hello.}", "Hello.}, wire: {quirks: ['sse-cut']}"),
    ],
    ids=["repeat", "restart", "status", "error in the stream", "reset", "cut"],
)
@every_api
def test_answers_that_may_be_requested_again(text, api):
    """A scenario that repeats, an error and a cut stream allow any number of requests."""
    conversation = Conversation(text, api)
    for question in ("Who?", "Who?", "Why?"):
        conversation.request(question)
    assert conversation.verify(once=True).violations == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"client_gone": True, "ended": None, "duration": 0.5},
        {"client_gone": True, "ended": 0.2, "duration": 0.5},
        {"ended": None},
        {"complete": False},
        {"status": 502},
    ],
    ids=["left", "left at the end", "still open", "connection broken", "recorded error"],
)
def test_a_retry_is_no_extra_request(fields):
    """After an answer that the client did not get in full, the same request may be sent again;
    the request after that is one too many."""
    conversation = Conversation(HELLO, "chat")
    conversation.request("Who?", **fields)
    conversation.request("Who?")
    assert conversation.verify(once=True).violations == ()
    conversation.request("Who?")
    (violation,) = conversation.verify(once=True).violations
    assert violation.exchange == 3
    assert "request 2 already" in violation.message


def test_attempts_that_fail_are_followed_by_a_retry():
    """The attempts of a turn that fail are no answers; the request after the success is extra."""
    conversation = Conversation(
        HELLO.replace("Hello.}", "Hello.}, attempts: [{http: 429}, {http: 500}]"), "chat"
    )
    outcomes = [conversation.request("Who?").outcome for _ in range(3)]
    assert outcomes == ["error", "error", "played"]
    assert conversation.verify(once=True).violations == ()
    conversation.request("Who?")
    assert conversation.broken_invariants(once=True) == {"extra-request"}


def test_a_harmless_quirk_allows_no_retry():
    """A correct client reads a stream with CRLF line ends, so it has no reason to try again."""
    quirked = HELLO.replace("Hello.}", "Hello.}, wire: {quirks: [sse-crlf]}")
    conversation = Conversation(quirked, "chat")
    for _ in range(2):
        conversation.request("Who?")
    assert conversation.broken_invariants(once=True) == {"extra-request"}


# How tools are offered


CHAT_TOOL = {"type": "function", "function": {"name": "number", "parameters": {"type": "object"}}}
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
    ("chat", {"tools": [CHAT_TOOL], "tool_choice": {"type": "function", "name": "number"}}),
    ("chat", {"tools": [CHAT_TOOL], "tool_choice": {"type": "tool", "name": "number"}}),
    ("chat", {"tools": [CHAT_TOOL], "tool_choice": {"type": "auto"}}),
]


@for_all(("api", "fields"), BAD_TOOLS)
@strict_and_lenient
def test_an_invalid_tool_offer_is_reported_once(api, fields, strict):
    """A bad tool name, schema or choice is one violation, however often it is sent."""
    conversation = Conversation(TWO, api, strict=strict)
    for _ in range(2):
        conversation.send({**body(api, "numbers"), **fields})
    (violation,) = conversation.verify().violations
    assert violation.invariant == "request-valid"


def test_a_refused_request_breaks_request_valid():
    """The violation names the request and the field for which the API refuses it."""
    conversation = Conversation(TWO, "chat")
    conversation.send({**body("chat", "numbers"), "temperature": 3})
    (violation,) = conversation.verify().violations
    assert (violation.invariant, violation.exchange) == ("request-valid", 1)
    assert "temperature" in violation.message


def test_a_request_condition_of_a_turn_breaks_no_invariant():
    """A request that differs from a turn's `request` is refused, and is no violation."""
    conversation = Conversation(
        OTHER.replace("- reply", "- request: {offers: [x]}\n    reply", 1), "chat"
    )
    conversation.request("weather")
    found = conversation.verify()
    assert (found.invalid, len(found.mistakes)) == ((1,), 1)


# The verdict


def test_a_verdict_as_json():
    """The JSON holds violations, unplayed turns, and unmatched and invalid requests."""
    conversation = Conversation(TWO, "chat")
    results_one_by_one(conversation)
    conversation.request("nothing answers this")
    found = conversation.verify()
    assert not found.good
    report = json.loads(json.dumps(found.as_json()))
    assert report["violations"] == [
        {
            "invariant": "tools-after-end",
            "exchange": 2,
            "message": found.violations[0].message,
        }
    ]
    assert report["unplayed"] == [{"scenario": "two", "turn": 1}]
    assert (report["unmatched"], report["invalid"], report["good"]) == ([3], [2], False)


@every_api
def test_a_verdict_covers_dropped_entries(api):
    """A violation stays in the verdict when the journal has dropped its request, and an entry that
    was dropped is known to later ones."""
    conversation = Conversation(TWO + OTHER, api, strict=False)
    conversation.session.max_exchanges = 3
    other_arguments(conversation)
    before = conversation.verify().violations
    conversation.request("weather")
    for _ in range(5):
        conversation.request("weather", called(W), result(W, "snow"))
    assert len(conversation.session.journal) == 3
    found = conversation.verify(once=True)
    assert found.violations[0] == before[0]
    assert [violation.exchange for violation in found.violations[1:]] == [5, 6, 7, 8]
    assert (found.dropped, found.forgotten, found.verdict) == (5, 0, "bad")


def test_a_verdict_that_does_not_cover_all():
    """A session with forgotten requests has the verdict `unknown`, unless a violation is left."""
    conversation = Conversation(HELLO + "then: restart", "chat")
    session = conversation.session = Session("s", max_exchanges=1, max_dropped=1)
    for _ in range(4):
        conversation.request("Hi")
    found = conversation.verify()
    assert (found.forgotten, found.dropped, found.verdict, found.good) == (2, 3, "unknown", False)
    session.evicted = True
    assert conversation.verify().evicted
    conversation.send({**body("chat", "Hi"), "temperature": 3})
    assert conversation.verify().verdict == "bad"


@pytest.mark.slow
@every_api
@strict_and_lenient
def test_large_bodies_are_judged(api, strict):
    """Of a large body so much is kept that its conversation can be judged as if all were kept."""
    for mistake in (False, True):
        conversation = Conversation(TWO, api, strict=strict)
        document = "numbers" + "é" * 1_000_000
        second = renamed(B, arguments='{"of":"eve"}') if mistake else B
        conversation.request(document)
        conversation.request(document, called(A, second), result(A, "A" * 2_000_000), RESULTS[1])
        for exchange in conversation.session.journal:
            exchange.settle()
            assert len(exchange.body) < 200_000
        found = conversation.verify()
        assert {violation.invariant for violation in found.violations} == (
            {"history-faithful"} if mistake else set()
        )
        assert (found.not_judged, found.good) == ((), not mistake)


@every_api
def test_long_arguments_that_were_cut_are_not_compared(api):
    """The part of a call's arguments that is kept cannot show whether they were changed."""
    long = '{"of":"%s"}' % ("x" * 40_000)
    text = TWO.replace("{of: bob}", f"'{long}'")
    conversation = Conversation(text, api)
    second = renamed(B, arguments=long)
    conversation.request("numbers")
    conversation.request("numbers", called(A, second), *RESULTS)
    assert conversation.verify().good


def test_a_violation_as_a_line():
    """A violation as text names the invariant and the request."""
    assert str(Violation("multi-hop", 3, "why")) == "multi-hop, request 3: why"


def test_an_unknown_invariant_name_suggests_the_nearest():
    """A misspelt name in `leave_out` is an error that suggests the nearest name."""
    with pytest.raises(UsageError, match="did you mean 'multi-hop'"):
        verify(Session("s"), {}, leave_out=frozenset({"multihop"}))


CUT = """
scenario: cut
match: any
obey: [max_tokens]
turns:
  - reply: [{tool: add, id: c1, arguments: {x: 1}}, {tool: add, id: c2, arguments: {x: 2}}]
  - reply: {text: bye}
"""


def test_an_answer_is_judged_as_the_limits_of_its_request_cut_it():
    """A call that the limit left out need not be in the history."""
    first = call("add", "c1", '{"x":1}')
    for most, broken in ((3, set()), (300, {"history-faithful"})):
        conversation = Conversation(CUT, "chat", strict=False)
        conversation.send({**body("chat", "hi", tools=["add"]), "max_completion_tokens": most})
        conversation.request("hi", called(first), result(first, "2"))
        assert conversation.broken_invariants() == broken


def test_calls_of_an_automatic_reply_are_compared():
    """Arguments that were changed in the history of an automatic reply break `history-faithful`."""
    conversation = Conversation(
        "scenario: auto\nmatch: any\nturns: [{reply: {auto: true}, repeat: true}]", "chat"
    )
    given = {**body("chat", "hi", tools=["number"]), "tool_choice": "required"}
    conversation.send(given)
    request = PROTOCOLS["chat"].parse(given, NO_TARGET, True)
    scenario = conversation.player.served.by_name["auto"]
    (tool_call,) = resolve(scenario, 0, "chat", auto=auto_parts(request)).tool_calls
    conversation.request(
        "hi", called(renamed(tool_call, arguments='{"a":1}')), result(tool_call, "x")
    )
    assert conversation.broken_invariants() == {"history-faithful"}
