"""Quotas as options write them, and the buckets of requests."""

from __future__ import annotations

import pytest

from mockllm.core.errors import UsageError
from mockllm.core.quotas import Limit
from mockllm.play.replay.quota_plan import Demand, Quota, charges, needs_request, read_quotas


def test_as_it_is_written() -> None:
    """In any order, with any white space."""
    first, second = read_quotas(["requests=60  tokens=10000", "per=1440m by=key requests=5"])
    assert first == Quota((Limit("requests", 60), Limit("tokens", 10000)))
    assert second == Quota((Limit("requests", 5, 86400.0),), "key")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("request=5", "there is no 'request'; did you mean 'requests'?"),
        ("x=5", "there are: requests, tokens, input-tokens, output-tokens, by, per"),
        ("requests", "must be KEY=VALUE, such as requests=60 tokens=10000 by=key, got 'requests'"),
        ("requests=1 requests=2", "has 'requests' twice; keep one"),
        ("requests=0", "requests must be a whole number from 1, got '0'"),
        ("requests=1.5", "requests must be a whole number from 1, got '1.5'"),
        ("requests=1 by=user", "by must be key or model, got 'user'"),
        ("requests=1 per=soon", "per must be a duration such as 300ms, 2s, 500us or 1m"),
        ("requests=1 per=0", "per must be more than 0"),
        ("by=key", "it limits nothing"),
        ("", "must be KEY=VALUE, such as requests=60"),
    ],
)
def test_mistakes(text: str, why: str) -> None:
    """The message has the option, and what to write instead."""
    with pytest.raises(UsageError) as caught:
        read_quotas([text])
    assert f"--quota {text!r}: " in str(caught.value)
    assert why in str(caught.value)


def test_a_limit_twice() -> None:
    """It would count each request twice."""
    with pytest.raises(UsageError, match="requests=5 is given twice"):
        read_quotas(["requests=5", "tokens=7 requests=5"])
    assert len(read_quotas(["requests=5", "requests=5 by=key"])) == 2


def test_buckets_are_shared_as_the_quota_says() -> None:
    """By key, by model, or by all; and no bucket has the key in its name."""
    quotas = read_quotas(["requests=1", "requests=1 by=key", "requests=1 by=model"])

    def buckets(key: str, model: str) -> list[str]:
        return [charge.bucket for charge in charges(quotas, Demand(key, model))]

    one, other = buckets("sk-secret", "a"), buckets("sk-other", "b")
    assert [a == b for a, b in zip(one, other, strict=True)] == [True, False, False]
    assert buckets("sk-secret", "b")[1] == one[1]
    assert buckets("sk-other", "a")[2] == one[2]
    assert len(set(one)) == 3
    assert not any("secret" in name for name in one)


def test_what_a_request_takes() -> None:
    """One request; its own tokens, and with `tokens` those that its answer may have."""
    quotas = read_quotas(["requests=9 tokens=9 input-tokens=9 output-tokens=9"])
    amounts = {d.limit.resource: d.amount for d in charges(quotas, Demand("", "", 3, 4))}
    assert amounts == {"requests": 1, "tokens": 7, "input-tokens": 3, "output-tokens": 0}


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("requests=1 by=key", False),
        ("output-tokens=1", False),
        ("tokens=1", True),
        ("input-tokens=1", True),
        ("requests=1 by=model", True),
    ],
)
def test_bodies_are_read_only_where_it_is_necessary(text: str, reads: bool) -> None:
    """Requests alone are counted without it."""
    assert needs_request(read_quotas([text])) is reads
