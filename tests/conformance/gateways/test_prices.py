"""Costs that gateways state, judged by their prices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.conformance.gateways.answer_rules import Observed, answer_findings
from mockllm.conformance.gateways.cases import GatewayCase, Pair, gateway_cases, outside
from mockllm.conformance.gateways.prices import Prices
from mockllm.conformance.gateways.reading import HttpReply, read_reply
from mockllm.core.http import TimedBytes
from mockllm.core.turn import TokenUsage
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.extra import with_extra_in_body
from tests.apis import OVER_HTTP
from tests.entries import journal_entry

PRICES = Prices.of("input=2.5 output=10")


def test_prices_are_for_a_million_tokens_and_caches_have_their_own() -> None:
    usage = TokenUsage(input=1000, output=100, cached=400, cache_written=200)
    assert Prices.of("input=1 output=2").cost(usage) == pytest.approx(0.0012)
    assert Prices.of("input=1, output=2, cached=0.1, cache_written=1.25").cost(
        usage
    ) == pytest.approx((400 * 1 + 400 * 0.1 + 200 * 1.25 + 100 * 2) / 1e6)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_cache_without_a_price_of_its_own_changes_nothing(new: int, old: int, out: int) -> None:
    cached = TokenUsage(new + old, out, cached=old)
    assert PRICES.cost(cached) == pytest.approx(PRICES.cost(TokenUsage(new + old, out)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input=2.5", "without output"),
        ("input=2.5 output=free", "output must be a number from 0, got 'free'"),
        ("input=2.5 output=nan", "output must be a number from 0"),
        ("input=-1 output=1", "input must be a number from 0"),
        ("input=1 output=1 cache=1", "there is no 'cache'; did you mean 'cached'?"),
    ],
)
def test_prices_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Prices.of(text)


def _case(pair: Pair, name: str) -> GatewayCase:
    return next(case for case in gateway_cases(pair) if case.name.endswith(f"/{name}"))


def _stated(case: GatewayCase, body: bytes, *headers: tuple[str, str]) -> list[tuple[str, str]]:
    """Verdict and text of the finding about the cost of an answer."""
    answer = case.answer
    reply = HttpReply(200, (*answer.headers, *headers), [TimedBytes(0, body)])
    reading = read_reply(reply, case.pair.protocols[0], streamed=case.request.stream)
    assert reading.ending == "whole"
    seen = Observed(case, {}, reading, (journal_entry(body=b""),), prices=PRICES)
    found = answer_findings(seen, None)
    return [(one.verdict, one.text) for one in found if one.rule == "cost-right"]


RIGHT = PRICES.cost(TokenUsage(21, 12))  # of the case `words`


def _with_cost(case: GatewayCase, *costs: float) -> bytes:
    """The stream of a case of Chat, in which the last chunk with usage has a cost, once for each
    that is given."""
    lines = b"".join(case.answer.data).decode().split("\n\n")
    at = max(n for n, line in enumerate(lines) if '"usage":{' in line.replace(" ", ""))
    chunk: dict[str, Any] = json.loads(lines[at].removeprefix("data: "))
    usage = chunk["usage"]
    lines[at : at + 1] = [
        "data: " + dumps(chunk | {"usage": usage | {"cost": cost}}) for cost in costs
    ]
    return "\n\n".join(lines).encode()


def test_a_cost_in_a_stream_is_compared_with_the_tokens_of_the_upstream() -> None:
    case = _case(Pair("chat", "chat"), "words")
    assert _stated(case, _with_cost(case, RIGHT)) == [("right", "")]
    assert _stated(case, _with_cost(case, round(RIGHT, 8))) == [("right", "")]
    assert _stated(case, _with_cost(case, RIGHT * 2)) == [
        ("wrong", f"the cost is {RIGHT * 2:g}, and by the prices {RIGHT:g}")
    ]


def test_a_cost_that_stands_twice_is_paid_twice_by_who_adds_up() -> None:
    case = _case(Pair("chat", "chat"), "words")
    twice = "the cost stands in 2 places, and a client may add them up"
    assert _stated(case, _with_cost(case, RIGHT, RIGHT)) == [("wrong", twice)]
    header = ("x-litellm-response-cost", str(RIGHT))
    assert _stated(case, _with_cost(case, RIGHT), header) == [("wrong", twice)]
    assert _stated(case, b"".join(case.answer.data), header) == [("right", "")]


def test_an_answer_without_a_cost_is_not_judged_and_says_so() -> None:
    case = _case(Pair("chat", "chat"), "words")
    unjudged = [("not judged", "the answer does not say what it costs")]
    assert _stated(case, b"".join(case.answer.data)) == unjudged
    assert _stated(case, b"".join(case.answer.data), ("x-litellm-response-cost", "None")) == (
        unjudged
    )


@pytest.mark.parametrize("name", ["words-unterminated", "cut-text-orderly"])
def test_no_cost_is_wrong_where_the_tokens_may_not_have_come(name: str) -> None:
    case = _case(Pair("chat", "chat"), name)
    words = _case(Pair("chat", "chat"), "words")
    assert _stated(case, _with_cost(words, RIGHT * 2)) == []


@pytest.mark.parametrize("api", OVER_HTTP)
def test_a_cost_beside_the_token_counts_of_a_body_is_read_of_each_api(api: str) -> None:
    case = _case(Pair(api, api), "words")
    down = case.pair.protocols[0]
    if "usage" not in down.normalize.places:
        pytest.skip("the API has no object for token counts")
    case = replace(case, request=replace(case.request, stream=False))
    expected = case.expected
    assert expected.usage is not None
    options = down.options(case.request)
    body = down.encode_body(expected, Reply("s", "0" * 40, "m", options, expected.usage))
    body = with_extra_in_body(down, body, {"usage": {"cost": RIGHT}})
    reply = HttpReply(200, (("content-type", "application/json"),), [])
    reply.chunks.append(TimedBytes(0, dumps(body).encode()))
    assert read_reply(reply, down, streamed=False).costs == (RIGHT,)


def test_a_run_without_prices_says_that_costs_are_not_judged() -> None:
    pair = Pair("chat", "chat")
    assert set(outside(pair)) - set(outside(pair, priced=True)) == {
        "with `prices` only: what answers cost"
    }
