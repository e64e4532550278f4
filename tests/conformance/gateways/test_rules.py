"""What a gateway's answers and requests are judged by, without a gateway: texts and costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mockllm.checking.resilience.rule_verdicts import Finding
from mockllm.conformance.gateways.answer_rules import Observed, answer_findings
from mockllm.conformance.gateways.cases import GatewayCase, Pair, gateway_cases
from mockllm.conformance.gateways.check import Gateway, case_lines
from mockllm.conformance.gateways.reading import HttpReply, Reading, read_reply
from mockllm.conformance.gateways.request_rules import request_findings
from mockllm.core.http import TimedBytes
from mockllm.core.turn import Turn
from mockllm.play.replay.client_requests import client_target
from mockllm.play.replay.sessions.exchange import Exchange
from tests.entries import journal_entry

CHAT = Pair("chat", "chat")
CASES = {case.name.partition("/")[2]: case for case in gateway_cases(CHAT)}
Json = dict[str, Any]


def upstream(case: GatewayCase, body: Json, **values: Any) -> Exchange:
    """A request that reached the upstream."""
    up = case.pair.protocols[1]
    values = {"outcome": "played", "status": 200, **values}
    target = client_target(up, "model")
    data = json.dumps(body).encode()
    return journal_entry(body=data, api=up.name, target=target, **values)


def observed(name: str, *exchanges: Exchange, **reading: Any) -> Observed:
    """A case whose answer came as the upstream sent it, but for what is given."""
    case = CASES[name]
    body = case.body("model", "n")
    reply = HttpReply(
        case.answer.status,
        case.answer.headers,
        list(map(TimedBytes, case.answer.times, case.answer.data)),
    )
    read = read_reply(reply, case.pair.protocols[0], streamed=case.request.stream)
    return Observed(case, body, replace(read, **reading), exchanges or (upstream(case, body),))


def wrong(findings: list[Finding]) -> list[tuple[str, str, str | None]]:
    """Rule, text and cost of the mistakes."""
    return [(one.rule, one.text, one.costs) for one in findings if one.verdict == "wrong"]


def judged(seen: Observed) -> list[tuple[str, str, str | None]]:
    return wrong(list(answer_findings(seen, None)))


@pytest.mark.parametrize("name", ["words", "calls", "refusal", "signed-reasoning"])
def test_an_answer_that_came_as_it_was_sent_is_right(name: str) -> None:
    assert judged(observed(name)) == []


def _turn(name: str, change: Callable[[Turn], Turn]) -> Observed:
    seen = observed(name)
    return replace(seen, reading=replace(seen.reading, turn=change(seen.reading.turn)))


def test_calls_are_compared_as_a_program_executes_them() -> None:
    """A call of the gateway's own is worse than one that is lost, and another order least."""
    reversed_calls = _turn("calls", lambda turn: replace(turn, parts=turn.parts[::-1]))
    assert [(rule, cost) for rule, _, cost in judged(reversed_calls)] == [
        ("calls-kept", "wrong metadata")
    ]
    ((_, text, cost),) = judged(_turn("calls", lambda turn: replace(turn, parts=turn.parts[:1])))
    assert text.startswith("lost ")
    assert cost == "data lost"
    twice = judged(_turn("calls", lambda turn: replace(turn, parts=turn.parts * 2)))
    assert [rule for rule, *_ in twice] == ["calls-kept"]
    assert twice[0][1].startswith("the calls are ")
    assert twice[0][2] == "wrong call"


def test_ends_of_a_refusal_may_differ() -> None:
    """Services name the end of a refusal differently; other ends are those that were sent."""
    for finish in ("refusal", "content_filter", "stop"):
        assert judged(_turn("refusal", lambda turn, to=finish: replace(turn, finish=to))) == []
    assert judged(_turn("words", lambda turn: replace(turn, finish="length"))) == [
        ("finish-kept", "it ended by length, not by stop", "wrong metadata")
    ]


def test_more_requests_than_the_client_sent() -> None:
    """One is enough for an answer; where it fails, as many as the gateway is known to try."""
    case = CASES["words"]
    sent = upstream(case, case.body("model", "n"))
    assert judged(observed("words", sent, sent)) == [
        ("one-request", "2 requests reach the upstream, and 1 would do", "unreliable")
    ]
    failing = observed("cut-text-close", *[sent] * 3, ending="broken")
    assert judged(replace(failing, tries=3)) == []
    assert [rule for rule, *_ in judged(replace(failing, tries=2))] == ["one-request"]


def with_body(name: str, change: Callable[[bytes], bytes]) -> Observed:
    """A case whose answer came with other bytes than the upstream sent."""
    seen = observed(name)
    reply = replace(seen.reading.reply)
    reply.chunks = [TimedBytes(0, change(seen.reading.reply.body))]
    return replace(seen, reading=read_reply(reply, seen.case.pair.protocols[0], streamed=True))


def test_what_clients_read_differently_is_a_mistake_of_its_own() -> None:
    """With each value, and the ways that read it; what follows from a broken form is not said."""
    named = b'"function":{"arguments"', b'"function":{"name":"get_weather","arguments"'
    ((rule, text, cost),) = judged(with_body("call", lambda data: data.replace(*named)))
    assert (rule, cost) == ("readings-agree", "wrong call")
    assert text.startswith('calls by several readings: get_weather {"city": "Paris", "days": 12} ')
    assert "get_weatherget_weather" in text
    assert "all names of each call joined" in text
    first = b'"tool_calls":[{"index":1', b'"tool_calls":[{"index":0'
    broken = judged(with_body("calls", lambda data: data.replace(*first)))
    assert [rule for rule, *_ in broken if rule in ("stream-valid", "readings-agree")] == [
        "stream-valid"
    ]


def test_lost_sources_and_stop_sequences_are_mistakes() -> None:
    """Where both APIs have a place for them."""
    cited = with_body("cited", lambda data: data.replace(b'"annotations"', b'"others"'))
    assert [(rule, text) for rule, text, _ in judged(cited)] == [
        ("text-kept", 'lost the citation of "https://weather.example/paris"')
    ]
    pair = Pair("anthropic", "anthropic")
    case = next(c for c in gateway_cases(pair) if c.name.endswith("/stop-sequence"))
    body, answer = case.body("model", "n"), case.answer
    data = b"".join(answer.data).replace(b'"stop_sequence":"three"', b'"stop_sequence":null')
    reply = HttpReply(answer.status, answer.headers, [TimedBytes(0, data)])
    reading = read_reply(reply, pair.protocols[0], streamed=True)
    assert judged(Observed(case, body, reading, (upstream(case, body),))) == [
        ("finish-kept", 'the stop sequence is missing, not "three"', "wrong metadata")
    ]


def refused(status: int, message: str, *headers: tuple[str, str]) -> list[tuple[str, str | None]]:
    """What is said where the upstream refuses with 429, and the client gets this."""
    case = CASES["error-429"]
    body = case.body("model", "n")
    error = json.dumps({"error": {"message": message, "type": "rate_limit"}}).encode()
    kind = ("content-type", "application/json")
    reply = HttpReply(status, (kind, *headers), [TimedBytes(0, error)])
    reading = read_reply(reply, case.pair.protocols[0], streamed=True)
    sent = upstream(case, body, outcome="error", status=429)
    return [(text, cost) for _, text, cost in judged(Observed(case, body, reading, (sent,)))]


def test_an_error_keeps_status_message_and_time_to_wait() -> None:
    """Each that is lost is a mistake of its own."""
    message, wait = "Twelve requests a minute are allowed.", ("retry-after", "1")
    assert refused(429, message, wait) == []
    assert refused(429, message) == [("the time to wait (retry-after) is lost", "wrong metadata")]
    assert refused(500, message, wait) == [("status 429 comes as 500", "wrong metadata")]
    assert refused(429, "upstream error", wait) == [
        (f'the message is "upstream error", not "{message}"', "wrong metadata")
    ]


def test_a_gateway_leaves_with_its_client() -> None:
    """Within a second; it may not read on to the end."""

    def stays(**sent: Any) -> list[str]:
        case = CASES["leaves"]
        exchange = upstream(case, case.body("model", "n"), clock=100.0, **sent)
        seen = observed("leaves", exchange)
        seen.reading.reply.left = 101.0
        return [text for _, text, _ in judged(seen)]

    assert stays(client_gone=True, duration=1.5) == []
    assert stays(client_gone=True, duration=3.5) == ["the gateway leaves 2.5 s after its client"]
    assert stays(client_gone=False, duration=1.5) == [
        "the gateway reads on after its client has left"
    ]


# Requests


def kept(name: str, change: Callable[[Json], object]) -> list[str]:
    """What is said of a request that a gateway changed."""
    case = CASES[name]
    body = json.loads(json.dumps(case.body("model", "n")))
    change(body)
    found = wrong(list(request_findings(observed(name, upstream(case, body)))))
    assert {rule for rule, *_ in found} <= {"request-kept"}
    return [text for _, text, _ in found]


@pytest.mark.parametrize("name", ["request-results", "choice-required", "request-parameters"])
def test_a_request_that_is_handed_on_is_right(name: str) -> None:
    assert kept(name, lambda body: None) == []


def test_changes_of_a_request_are_named() -> None:
    """The tool, the message, and the choice that differ."""
    assert kept("choice-required", lambda body: body["tools"].clear()) == [
        "the tool get_weather is not offered"
    ]
    assert kept("choice-required", lambda body: body.update(tool_choice="auto")) == [
        "the choice of tools is 'auto', not 'required'"
    ]
    assert kept("request-results", lambda body: body["messages"].pop()) == [
        "the messages are user, assistant, tool, not user, assistant, tool, tool"
    ]
    assert kept("request-results", lambda body: body["messages"][-1].update(content="11:30")) == [
        'the result is "11:30", not "10:30"'
    ]


def test_results_may_come_in_the_order_of_their_calls() -> None:
    """What counts is the call that each one is of."""

    def sort(body: Json) -> None:
        body["messages"][-2:] = reversed(body["messages"][-2:])

    def swap(body: Json) -> None:
        first, second = body["messages"][-2:]
        first["content"], second["content"] = second["content"], first["content"]

    assert kept("request-results-swapped", sort) == []
    assert kept("request-results-swapped", swap) == [
        'the result is "rain", not "snow"',
        'the result is "snow", not "rain"',
    ]


def test_definitions_may_stand_in_their_places() -> None:
    """A schema is the same with its definitions where they are referred to."""

    def inline(body: Json) -> None:
        schema = body["tools"][0]["function"]["parameters"]
        place = schema.pop("$defs")["place"]
        schema["properties"]["from"] = place
        schema["properties"]["via"]["items"]["anyOf"][0] = place

    assert kept("request-definitions", inline) == []
    (lost,) = kept(
        "request-definitions", lambda body: body["tools"][0]["function"]["parameters"].pop("$defs")
    )
    assert lost.startswith("route.parameters.properties.from.type must be 'object'")


def test_features_of_a_request_are_kept() -> None:
    """What it says beside its neutral form."""
    assert kept("request-end-user", lambda body: None) == []
    assert kept("request-end-user", lambda body: body.pop("user")) == [
        'end user: missing, not "user-1815"'
    ]
    assert kept("request-systems", lambda body: body["messages"].pop(1)) == [
        'the system prompt is "You answer in one sentence.", not "You answer in one sentence.\\n'
        'Speak like a pirate."'
    ]


def test_what_came_out_is_sent_back() -> None:
    """With the ids of the gateway; the second request is judged like the first."""
    seen = observed("next-calls")
    body = seen.case.next_body(seen.body, seen.reading.turn, seen.reading.id, "gw-1")
    ids = [call["id"] for call in body["messages"][-3]["tool_calls"]]
    assert ids == ["call_1", "call_2"]
    assert [message["tool_call_id"] for message in body["messages"][-2:]] == ids
    renamed = json.loads(json.dumps(body))
    renamed["messages"][-1]["tool_call_id"] = "call_3"
    again = replace(seen, body=body, exchanges=(upstream(seen.case, renamed),))
    assert [rule for rule, *_ in wrong(list(request_findings(again)))] == ["ids-kept"]


def test_the_result_of_a_tool_that_failed_stays_one() -> None:
    """Where both APIs can say that it failed."""
    pair = Pair("anthropic", "anthropic")
    case = next(c for c in gateway_cases(pair) if c.name.endswith("request-failed-result"))
    body = json.loads(json.dumps(case.body("model", "n")))
    failed = body["messages"][-1]["content"][0]
    seen = Observed(case, body, Reading(HttpReply(), "whole"), (upstream(case, body),))
    assert wrong(list(request_findings(seen))) == []
    failed.pop("is_error")
    seen = replace(seen, body=case.body("model", "n"), exchanges=(upstream(case, body),))
    assert [text for _, text, _ in wrong(list(request_findings(seen)))] == [
        "the result of a tool that failed is sent as that of one that did not"
    ]


# Lines of a results file


def lines(*rounds: Observed) -> dict[str, tuple[str, str, str]]:
    """Verdict, mistake or reason, and what was seen once, by rule."""
    case = rounds[0].case
    found = case_lines(case, [{case.name: seen} for seen in rounds], Gateway(pair=CHAT))
    return {
        line.group: (line.verdict, "; ".join(line.differences) or line.reason, line.unconfirmed)
        for line in found
    }


def test_a_mistake_counts_that_every_round_has() -> None:
    """One that a single round has is said beside a right line."""
    right = observed("words")
    short = _turn("words", lambda turn: replace(turn, finish="length"))
    text = "it ended by length, not by stop"
    assert lines(short, short)["finish-kept"] == ("wrong", text, "")
    assert lines(short, right)["finish-kept"] == ("right", "", text)
    assert lines(right, short)["finish-kept"] == ("right", "", text)
    assert lines(right, right)["finish-kept"] == ("right", "", "")


def test_an_answer_to_which_no_request_came_is_wrong() -> None:
    """It says what the client got in its place."""
    case, body = CASES["words"], CASES["words"].body("model", "n")
    error = b'{"error": {"message": "no route"}}'
    reply = HttpReply(502, (("content-type", "application/json"),), [TimedBytes(0, error)])
    reading = read_reply(reply, case.pair.protocols[0], streamed=True)
    assert lines(Observed(case, body, reading, ())) == {
        "answer-delivered": (
            "wrong",
            "no request reaches the upstream, and the client gets status 502: no route",
            "",
        )
    }
    answered = replace(observed("words"), exchanges=())
    assert lines(answered)["answer-delivered"][1].endswith("and the client gets: whole")
