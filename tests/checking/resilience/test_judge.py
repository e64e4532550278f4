"""The rules of resilience, each with outcomes that keep it and outcomes that break it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Call, Outcome, Trouble
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.rule_verdicts import judge
from mockllm.checking.rules import RESILIENCE
from mockllm.play.replay.broken_answer import fault_mistakes
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.check import check
from mockllm.scenario.reading.faults import parse_faults
from tests.apis import OVER_HTTP
from tests.cases import for_all
from tests.entries import amend, journal_entry

CASES = {case.name.partition("/")[2]: case for case in fault_cases("chat")}
CLOSED = {"tasks": 0, "threads": 0, "connections": 0}
POLICY = ResiliencePolicy(longest_wait=60, final_errors=frozenset({"insufficient_quota"}))


def requests(*waits: float, status: int = 200, **fields: Any) -> list[Exchange]:
    """Requests of 0.1 s each, with these seconds between them."""
    found, at = [], 100.0
    for number, wait in enumerate((0.0, *waits), 1):
        at += wait
        one = journal_entry("POST", "/v1/chat/completions", {}, b"{}", number=number, status=status)
        amend(one, **{"clock": at, "duration": 0.1, "outcome": "played", "struck": 0.0, **fields})
        at += 0.1
        found.append(one)
    return found


def outcome(text: str = "", *calls: str, error: str | None = None, **fields: Any) -> Outcome:
    """What a client hands on; `error` is the kind of its error."""
    errors = () if error is None else (Trouble("it broke", type="BrokenError", cause=error),)
    handed = tuple(Call("get_weather", json.loads(call)) for call in calls)
    settings = {"open_at_end": CLOSED, "errors": errors, **fields}
    return Outcome(text=text, tool_calls=handed, **settings)


def verdict(rule: str, case: Case, *judged: Any, policy: ResiliencePolicy = POLICY) -> str:
    """The verdict of one rule; `judged` are requests and outcomes."""
    exchanges, outcomes = judged[0], judged[1:]
    found = {one.rule: one for one in judge(case, exchanges, outcomes, policy)}
    assert found[rule].verdict in ("right", "wrong", "not judged", "not applicable")
    assert found[rule].verdict == "right" or found[rule].text
    return found[rule].verdict


PARIS = '{"city":"Paris","days":12}'
ROME = '{"city":"Rome","days":1}'
TEXT = CASES["dies-and-succeeds-close"].expected.text
BEGIN = TEXT[:12]
ONE, TWO = requests(), requests(0.5)
LATE = outcome(answered=False)
GONE = requests(client_gone=True)


@for_all(
    ("rule", "case", "judged", "expected"),
    [
        ("cut-reported", "cut-in-text-close", (ONE, outcome(BEGIN, error="network")), "right"),
        ("cut-reported", "cut-in-text-close", (ONE, outcome(BEGIN)), "wrong"),
        ("cut-reported", "cut-in-text-close", (ONE, outcome()), "wrong"),
        (
            "cut-reported",
            "cut-in-text-close",
            (ONE, outcome(BEGIN, error="network", partial=False)),
            "wrong",
        ),
        ("cut-reported", "cut-in-text-close", (ONE, LATE), "not judged"),
        ("cut-reported", "dies-and-succeeds-close", (TWO, outcome(TEXT)), "right"),
        ("cut-call-not-executed", "cut-in-call-close", (ONE, outcome(error="network")), "right"),
        ("cut-call-not-executed", "cut-in-call-close", (ONE, outcome("", PARIS)), "wrong"),
        ("cut-call-not-executed", "cut-in-call-close", (ONE, outcome("", "{}")), "wrong"),
        (
            "cut-call-not-executed",
            "cut-after-call-close",
            (ONE, outcome("", PARIS, error="network", partial=True)),
            "right",
        ),
        (
            "cut-call-not-executed",
            "cut-after-call-close",
            (ONE, outcome("", PARIS, error="network")),
            "not judged",
        ),
        (
            "cut-call-not-executed",
            "cut-after-call-close",
            (ONE, outcome("", PARIS, error="network", partial=False)),
            "wrong",
        ),
        ("cut-call-not-executed", "other-call-after-retry", (TWO, outcome("", PARIS)), "right"),
        ("wrong-body-reported", "body-html", (ONE, outcome(error="protocol")), "right"),
        ("wrong-body-reported", "body-html", (ONE, outcome()), "wrong"),
        ("no-duplicate-output", "dies-and-succeeds-close", (TWO, outcome(TEXT)), "right"),
        (
            "no-duplicate-output",
            "dies-and-succeeds-close",
            (TWO, outcome(TEXT, handed_on=BEGIN + TEXT)),
            "wrong",
        ),
        (
            "no-duplicate-output",
            "dies-and-succeeds-close",
            (ONE, outcome(BEGIN, error="network")),
            "right",
        ),
        (
            "no-duplicate-output",
            "dies-and-succeeds-close",
            (TWO, outcome("Sorry", handed_on="Sorry")),
            "not judged",
        ),
        ("no-phantom-call", "other-call-after-retry", (TWO, outcome("", PARIS)), "right"),
        ("no-phantom-call", "other-call-after-retry", (TWO, outcome("", ROME, PARIS)), "wrong"),
        (
            "no-phantom-call",
            "other-call-after-retry",
            (ONE, outcome(error="network")),
            "not judged",
        ),
        ("no-phantom-call", "text-instead-of-call-after-retry", (TWO, outcome(TEXT)), "right"),
        ("retry-bounded", "status-503", (requests(1, 1), outcome(error="server")), "right"),
        ("retry-bounded", "status-503", (requests(1, 1, 1), outcome(error="server")), "wrong"),
        ("retry-bounded", "status-503", (ONE, outcome()), "wrong"),
        ("retry-bounded", "status-503", (ONE, LATE), "not judged"),
        (
            "retry-after-honoured",
            "retry-after-seconds",
            (requests(1.0, retry_after=1.0), outcome(TEXT)),
            "right",
        ),
        (
            "retry-after-honoured",
            "retry-after-seconds",
            (requests(0.5, retry_after=1.0), outcome(TEXT)),
            "wrong",
        ),
        (
            "retry-after-honoured",
            "retry-after-seconds",
            (requests(9.0, retry_after=1.0), outcome(TEXT)),
            "wrong",
        ),
        (
            "retry-after-honoured",
            "retry-after-seconds",
            (ONE, outcome(error="rate_limit")),
            "not applicable",
        ),
        (
            "retry-after-honoured",
            "retry-after-too-long",
            (ONE, outcome(error="rate_limit")),
            "right",
        ),
        (
            "retry-after-honoured",
            "retry-after-too-long",
            (requests(0.5, retry_after=3600), outcome(TEXT)),
            "wrong",
        ),
        ("no-retry-where-useless", "status-401", (ONE, outcome(error="request")), "right"),
        (
            "no-retry-where-useless",
            "status-401",
            (requests(1, status=401), outcome(error="request")),
            "wrong",
        ),
        (
            "no-retry-where-useless",
            "final-error",
            (requests(1, status=429), outcome(error="rate_limit")),
            "wrong",
        ),
        ("stall-times-out", "stall-after-words", (GONE, outcome(error="timeout")), "right"),
        ("stall-times-out", "stall-after-words", (ONE, LATE), "wrong"),
        ("stall-times-out", "stall-after-words", (GONE, outcome(BEGIN)), "wrong"),
        ("stall-times-out", "stall-after-words", (GONE, LATE), "not judged"),
        ("stall-times-out", "slow-and-alive", (ONE, outcome(TEXT)), "right"),
        ("stall-times-out", "slow-and-alive", (GONE, outcome(BEGIN, error="timeout")), "wrong"),
        ("stall-times-out", "slow-and-alive", (ONE, LATE), "not judged"),
        ("cancel-closes", "cancelled-leave", (GONE, outcome(BEGIN)), "right"),
        ("cancel-closes", "cancelled-leave", (ONE, outcome(BEGIN)), "wrong"),
        ("cancel-closes", "cancelled-drop", (ONE, outcome(BEGIN)), "wrong"),
        ("error-names-cause", "status-429", (ONE, outcome(error="rate_limit")), "right"),
        ("error-names-cause", "status-429", (ONE, outcome(error="network")), "wrong"),
        ("error-names-cause", "status-429", (ONE, outcome()), "not judged"),
        ("recovers", "next-after-cut", (TWO, outcome(error="network"), outcome(TEXT)), "right"),
        ("recovers", "next-after-cut", (TWO, outcome(TEXT), outcome(BEGIN)), "wrong"),
        ("recovers", "next-after-cut", (TWO, outcome(TEXT), LATE), "wrong"),
        ("isolated", "beside-stall", (TWO, outcome(error="timeout"), outcome(TEXT)), "right"),
        ("isolated", "beside-stall", (TWO, LATE, outcome(error="timeout")), "wrong"),
        ("isolated", "beside-stall", (TWO, LATE), "not judged"),
        ("leaves-nothing", "body-html", (ONE, outcome(error="protocol")), "right"),
        ("leaves-nothing", "body-html", (ONE, replace(outcome(), open_at_end=None)), "not judged"),
        (
            "leaves-nothing",
            "body-html",
            (ONE, replace(outcome(), open_at_end={"tasks": 1})),
            "wrong",
        ),
    ],
)
def test_rules(rule: str, case: str, judged: tuple[Any, ...], expected: str) -> None:
    """What a client did, and the verdict."""
    assert verdict(rule, CASES[case], *judged) == expected


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        ((0.5, 1.0, 2.0, 3.0, 0.6, 1.2, 2.2), "right"),
        ((0.5, 0.5, 0.5, 3.0, 0.6, 0.6, 0.6), "wrong"),
        ((0.5, 1.0, 2.0, 3.0, 0.5, 1.0, 2.0), "wrong"),
        ((0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0), "wrong"),
        ((2.0, 1.0, 0.5, 3.0, 2.1, 1.1, 0.6), "wrong"),
        ((0.5, 3.0, 0.7), "not judged"),
        ((3.0,), "not applicable"),
        ((3.0, 1.0), "not judged"),
        ((0.5, 3.0, 0.5), "not judged"),
    ],
)
def test_waits(waits: tuple[float, ...], expected: str) -> None:
    """Two requests, each tried several times: the waits grow, and are not the same twice."""
    failed = outcome(error="server")
    assert verdict("backoff-grows", CASES["backoff"], requests(*waits), failed, failed) == expected


def test_tries_are_the_same_request() -> None:
    """The body and the idempotency key."""
    case, done = CASES["dies-and-succeeds-close"], outcome(TEXT)
    assert verdict("retry-same", case, TWO, done) == "right"
    assert verdict("retry-same", case, ONE, done) == "not applicable"
    for changes in ({"body": b"[]"}, {"path": "/v2"}, {"headers": {"idempotency-key": "b"}}):
        first, second = requests(0.5, headers={"idempotency-key": "a"})
        assert verdict("retry-same", case, [first, amend(second, **changes)], done) == "wrong"


def test_what_a_client_declares_counts() -> None:
    """A policy is no mistake."""
    stall, failed = CASES["stall-after-words"], outcome(error="timeout")
    slow = ResiliencePolicy(idle_timeout=600)
    assert verdict("stall-times-out", stall, ONE, LATE, policy=slow) == "not judged"
    none = ResiliencePolicy(has_idle_timeout=False)
    assert verdict("stall-times-out", stall, ONE, failed, policy=none) == "wrong"
    final = CASES["final-error"]
    repeated = requests(1, status=429)
    plain = ResiliencePolicy()
    found = verdict("no-retry-where-useless", final, repeated, failed, policy=plain)
    assert found == "not applicable"
    five = requests(1, 1, 1, 1)
    bounded = ResiliencePolicy(tries=5)
    assert verdict("retry-bounded", CASES["status-503"], five, failed, policy=bounded) == "right"


def test_a_fault_that_did_not_strike_is_not_judged() -> None:
    """A client that does not stream gets the whole answer where events were to be cut."""
    missed = requests(struck=None, missed="it is not streamed")
    found = judge(CASES["cut-in-text-close"], missed, [outcome(TEXT)], POLICY)
    judged = {one.rule: one for one in found if one.rule != "leaves-nothing"}
    assert {one.verdict for one in judged.values()} == {"not judged"}
    assert "not streamed" in judged["cut-reported"].text


def test_other_requests_are_no_tries() -> None:
    """Such as for a list of models."""
    five = [*requests(1, 1), *requests(1, outcome="unknown route")]
    assert verdict("retry-bounded", CASES["status-503"], five, outcome(error="server")) == "right"
    refused = requests(outcome="invalid", problems=("messages: is missing",))
    found = judge(CASES["status-503"], refused, [outcome(error="request")], POLICY)
    judged = {one.rule: one for one in found if one.rule != "leaves-nothing"}
    assert {one.verdict for one in judged.values()} == {"not judged"}
    assert "messages: is missing" in judged["retry-bounded"].text
    changed = [*requests(), *requests(outcome="invalid", body=b"[]", number=2)]
    case = CASES["dies-and-succeeds-close"]
    assert verdict("retry-same", case, changed, outcome(error="request")) == "wrong"


def test_a_client_that_has_not_answered_has_no_waits() -> None:
    """Which requests are tries of which is not known then."""
    several = requests(0.5, 1, 0.1, 0.5)
    assert verdict("backoff-grows", CASES["backoff"], several, LATE) == "not judged"


def test_without_retries_a_closed_connection_is_an_error() -> None:
    """A client that declares no tries reports it; one that retries must recover."""
    case, judged = CASES["next-after-idle-connection"], (outcome(TEXT), outcome(error="network"))
    once = ResiliencePolicy(tries=1, retries=False)
    first = requests(struck=None)
    assert verdict("recovers", case, first, *judged) == "wrong"
    assert verdict("recovers", case, first, *judged, policy=once) == "not applicable"


def test_without_a_request_nothing_is_judged() -> None:
    """The client did not use the base URL."""
    found = judge(CASES["body-html"], [], [outcome()], POLICY)
    assert {one.verdict for one in found} == {"not judged"}


@pytest.mark.parametrize("api", sorted(OVER_HTTP))
def test_cases_are_valid_and_judge_every_rule(api: str) -> None:
    """Each scenario can be loaded, each fault strikes, and each rule has a case."""
    cases = fault_cases(api)
    assert {rule for case in cases for rule in case.rules} == set(RESILIENCE)
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        assert not check(case.scenario)
        turn = case.scenario.turns[0]
        faults = tuple(fault for text in case.fault.texts for fault in parse_faults(text))
        broken = replace(case.scenario, turns=(replace(turn, fault=faults),))
        assert not list(fault_mistakes(broken)), case.name
