"""Quotas over HTTP: headers that count down, refusals in the form of each API, and clients that
wait."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import anthropic
import httpx
import openai
import pytest

from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.quota_plan import read_quotas
from mockllm.wire.protocols import PROTOCOLS
from tests.conftest import Served

TEXT = """
scenario: hello
match: any
turns:
- {reply: [{text: "Hello there, and welcome."}], repeat: true}
"""
DAY = "per=1440m"
"""So that nothing fills while a test runs."""

KEYS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
KEYS["x-goog-api-key"] = "k"
HELLO: Any = [{"role": "user", "content": "hello"}]

Serve = Callable[..., Served]


def limited(serve: Serve, *quotas: str, **options: Any) -> Served:
    """A server with quotas of a day."""
    return serve(TEXT, quotas=read_quotas(f"{text} {DAY}" for text in quotas), **options)


def send(served: Served, api: str = "chat", *, model: str = "m", **headers: str) -> httpx.Response:
    """The answer to a first request."""
    protocol = PROTOCOLS[api]
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = first_body(protocol, model, "hello")
    return served.http.post(
        protocol.client.path_of(model), json=body, headers=named or KEYS | protocol.client.headers
    )


def openai_client(served: Served, retries: int = 0) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="k", max_retries=retries)


def anthropic_client(served: Served, retries: int = 0) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=served.url, api_key="k", max_retries=retries)


@pytest.mark.parametrize("api", PROTOCOLS.over_http)
def test_each_api_refuses_in_its_form(serve: Serve, api: str) -> None:
    """So many requests are answered; the next one gets status 429, an error that the API's decoder
    reads, and stands in the journal with the wait."""
    served, protocol = limited(serve, "requests=2"), PROTOCOLS[api]
    assert [send(served, api).status_code for _ in range(2)] == [200, 200]
    refused = send(served, api)
    assert refused.status_code == 429, refused.text
    body = refused.json()
    error = protocol.decode_error(body)
    assert error is not None or "error" in (body[0] if isinstance(body, list) else body)
    *played, last = served.journal()
    assert [entry["outcome"] for entry in played] == ["played"] * 2
    assert (last["outcome"], last["cause"]) == ("error", "quota")
    assert (last["status"], last["scenario"]) == (429, None)
    assert 43_000 < last["retry_after"] <= 43_200
    stated = refused.headers.get("retry-after")
    assert stated is None or last["retry_after"] <= int(stated) <= 43_200
    assert last["stream"] is True


def test_openai_sdk(serve: Serve) -> None:
    """Its headers count down, and its error has the code of the service; other tokens are those of
    the request and of its `max_tokens`."""
    served = limited(serve, "requests=3 tokens=1000")
    with openai_client(served) as client:
        left = []
        for _ in range(2):
            raw = client.chat.completions.with_raw_response.create(
                model="m", messages=HELLO, max_tokens=100
            )
            assert raw.parse().choices[0].message.content == "Hello there, and welcome."
            assert raw.headers["x-ratelimit-limit-requests"] == "3"
            assert raw.headers["x-ratelimit-limit-tokens"] == "1000"
            names = ("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens")
            left.append(tuple(raw.headers[name] for name in names))
        assert left == [("2", "898"), ("1", "796")]
        with pytest.raises(openai.RateLimitError) as caught:
            client.chat.completions.create(model="gpt", messages=HELLO, max_tokens=900)
        error, headers = caught.value, caught.value.response.headers
        assert (error.code, error.type) == ("rate_limit_exceeded", "tokens")
        assert "on tokens per day (TPD): Limit 1000, Used 204, Requested 902." in error.message
        assert "Please try again in 2h" in error.message
        assert headers["x-ratelimit-remaining-tokens"] == "796"
        assert headers["x-ratelimit-remaining-requests"] == "1"  # a refused one takes nothing
        assert headers["x-ratelimit-reset-requests"].startswith(("15h", "16h"))
        assert 9000 < int(headers["retry-after"]) <= 9159
        with pytest.raises(openai.RateLimitError, match="Request too large for m in") as too_large:
            client.responses.create(model="m", input="hello", max_output_tokens=1000)
        assert "retry-after" not in too_large.value.response.headers


def test_anthropic_sdk(serve: Serve) -> None:
    """It counts input and output tokens apart: those of the request, and those of the answer's
    usage once it is sent. Resets are times."""
    served = limited(serve, "requests=9 input-tokens=100 output-tokens=10")
    with anthropic_client(served) as client:
        message = {"model": "m", "max_tokens": 500, "messages": HELLO}
        left = []
        for _ in range(2):
            raw = client.messages.with_raw_response.create(**message)
            assert raw.parse().usage.output_tokens == 7
            kinds = ("requests", "input-tokens", "output-tokens")
            left.append([raw.headers[f"anthropic-ratelimit-{kind}-remaining"] for kind in kinds])
            reset = datetime.fromisoformat(raw.headers["anthropic-ratelimit-output-tokens-reset"])
            assert 0 < reset.timestamp() - time.time() < 2 * 86_400
        assert left == [["8", "98", "3"], ["7", "96", "0"]]
        with pytest.raises(anthropic.RateLimitError) as caught:
            client.messages.create(**message)
        assert caught.value.body["error"]["type"] == "rate_limit_error"
        assert "of 10 output tokens per day." in caught.value.body["error"]["message"]
        headers = caught.value.response.headers
        assert headers["anthropic-ratelimit-requests-remaining"] == "7"
        assert (
            headers["anthropic-ratelimit-tokens-remaining"] == "480000"
        )  # of which there is no quota
        assert int(headers["retry-after"]) > 40_000  # 4 tokens are owed, and one is needed
        counted = client.messages.count_tokens(model="m", messages=HELLO)
        assert counted.input_tokens == 2


def test_gemini_sdk(serve: Serve) -> None:
    """The error names the quota, and how long to wait; there are no headers."""
    from google import genai
    from google.genai import errors, types

    served = limited(serve, "requests=1 by=model")
    options = types.HttpOptions(base_url=served.url)
    with genai.Client(api_key="k", http_options=options) as client:
        client.models.generate_content(model="one", contents="hello")
        client.models.generate_content(model="other", contents="hello")
        with pytest.raises(errors.ClientError) as caught:
            client.models.generate_content(model="one", contents="hello")
        assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
        failure, retry = caught.value.details["error"]["details"]
        (violation,) = failure["violations"]
        assert violation["quotaValue"] == "1"
        assert violation["quotaDimensions"]["model"] == "one"
        assert violation["quotaId"].startswith("GenerateRequestsPerDay")
        assert retry["retryDelay"].startswith("863")
        assert "limit: 1, model: one\nPlease retry in 863" in caught.value.message


def test_bedrock_models_of_anthropic(serve: Serve) -> None:
    """Their answers have no headers of Anthropic, and their errors are those of AWS."""
    served = limited(serve, "requests=1")
    path = "/model/anthropic.claude/invoke"
    body = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": HELLO}
    first, refused = (served.http.post(path, json=body, headers=KEYS) for _ in range(2))
    assert (first.status_code, refused.status_code) == (200, 429)
    assert refused.json() == {"message": "Too many requests, please wait before trying again."}
    assert refused.headers["x-amzn-errortype"].startswith("ThrottlingException")
    for answer in (first, refused):
        assert not [name for name in answer.headers if "ratelimit" in name]


def test_without_a_quota_nothing_changes(serve: Serve) -> None:
    """The headers are those that were compiled with the answer; so are those of resources that
    have no quota."""
    plain = [send(serve(TEXT)).headers for _ in range(2)]
    assert plain[0] == plain[1]
    headers = send(limited(serve, "requests=5")).headers
    assert headers["x-ratelimit-remaining-requests"] == "4"
    assert headers["x-ratelimit-remaining-tokens"] == plain[0]["x-ratelimit-remaining-tokens"]


TIMED = """
scenario: timed
match: any
turns:
- {reply: [{text: one two three}], timing: {every: 1ms}, repeat: true}
"""


@pytest.mark.parametrize("options", [{}, {"speed": 0}])
@pytest.mark.parametrize("stream", [True, False])
def test_the_body_is_the_same(serve: Serve, options: dict[str, Any], stream: bool) -> None:
    """Only the head is another one, whichever way the answer is written."""
    body = {"model": "m", "messages": HELLO, "stream": stream}
    quotas = read_quotas(["requests=1000000"])
    servers = [serve(TIMED, **options), serve(TIMED, quotas=quotas, **options)]
    answers = [served.http.post("/v1/chat/completions", json=body) for served in servers]
    one, other = (answer.content for answer in answers)
    assert one == other
    assert answers[1].headers["x-ratelimit-remaining-requests"] == "999999"


def test_the_metrics_count_refusals(serve: Serve) -> None:
    """As errors without a scenario."""
    served = limited(serve, "requests=1")
    for _ in range(3):
        send(served)
    text = served.http.get("/_mockllm/metrics").text
    assert 'requests_total{api="chat",scenario="(none)",outcome="error"} 2.0' in text
    assert 'requests_total{api="chat",scenario="hello",outcome="played"} 1.0' in text


def test_by_key(serve: Serve) -> None:
    """Each API key has a quota of its own, in whichever header it is sent; it stands nowhere."""
    served = limited(serve, "requests=1 by=key")

    def status(**headers: str) -> int:
        return send(served, "chat", **headers).status_code

    assert status(authorization="Bearer sk-first") == 200
    assert status(authorization="Bearer sk-other") == 200
    assert status(authorization="Bearer sk-first") == 429
    assert status(x_api_key="sk-first") == 429
    assert status(accept="*/*") == 200  # those without a key have one together
    signed = "AWS4-HMAC-SHA256 Credential=AKIA{}/20260101/x/bedrock/aws4_request, Signature={}"
    assert status(authorization=signed.format("ONE", "abc")) == 200
    assert status(authorization=signed.format("ONE", "def")) == 429
    assert "sk-first" not in served.http.get("/_mockllm/journal").text


def test_several_quotas_hold_together(serve: Serve) -> None:
    """That of a model, and that of all; the headers have the least of both."""
    served = limited(serve, "requests=2 by=model", "requests=3")
    left, statuses = [], []
    for model in ("a", "b", "a", "c"):
        answer = send(served, model=model)
        statuses.append(answer.status_code)
        left.append(answer.headers["x-ratelimit-remaining-requests"])
    assert statuses == [200, 200, 200, 429]
    assert left == ["1", "1", "0", "0"]


ATTEMPTS = """
scenario: tries
match: any
turns:
- attempts: [{http: {status: 503}}]
  reply: [{text: fine}]
  repeat: true
"""


def test_a_refused_request_is_no_attempt(serve: Serve) -> None:
    """The turn's tries are those of requests that get through. Its own errors have the headers,
    too."""
    served = serve(ATTEMPTS, quotas=read_quotas([f"requests=1 by=key {DAY}"]))
    first = send(served, authorization="a")
    assert first.status_code == 503
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert send(served, authorization="a").status_code == 429
    assert send(served, authorization="b").status_code == 200


def test_only_requests_for_answers_count(serve: Serve) -> None:
    """Not lists of models and counts of tokens; but what is refused for a mistake counts."""
    served = limited(serve, "requests=2")
    for _ in range(3):
        assert served.http.get("/v1/models", headers=KEYS).status_code == 200
    refused = served.http.post("/v1/chat/completions", content=b"{", headers=KEYS)
    assert refused.status_code == 400
    assert refused.headers["x-ratelimit-remaining-requests"] == "1"
    assert [send(served).status_code for _ in range(2)] == [200, 429]


LIMIT = """
scenario: limited
match: any
turns:
- {http: {status: 429, retry_after: 2s}, repeat: true}
"""


def test_a_scenario_with_a_limit_says_it_itself(serve: Serve) -> None:
    """Its error says that nothing is left, whatever the quota has."""
    answer = send(serve(LIMIT, quotas=read_quotas(["requests=100"])))
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_sdk_that_waits(serve: Serve, sdk: str) -> None:
    """Of two requests, one right after the other, the later one is told to wait, does so, and gets
    through. The journal has the wait, and the verdict finds nothing."""
    served = serve(TEXT, quotas=read_quotas(["requests=1 per=250ms"]))

    def ask() -> None:
        if sdk == "openai":
            with openai_client(served, retries=20) as client:
                client.chat.completions.create(model="m", messages=HELLO)
        else:
            with anthropic_client(served, retries=20) as client:
                client.messages.create(model="m", max_tokens=5, messages=HELLO)

    for _ in range(50):  # a busy machine may take longer than the bucket to fill
        for _ in range(2):
            ask()
        journal = served.journal()
        if any(entry["outcome"] == "error" for entry in journal):
            break
    told = [
        (one["retry_after"], two["at"] - one["at"])
        for one, two in itertools.pairwise(journal)
        if one["outcome"] == "error"
    ]
    assert told
    assert all(0 < wait <= 0.25 and waited > wait - 0.01 for wait, waited in told)
    assert journal[-1]["outcome"] == "played"
    verdict = served.http.get("/_mockllm/verify").json()
    assert verdict["verdict"] == "good", verdict


def test_the_judge_sees_who_does_not_wait(serve: Serve) -> None:
    """A refused request is a try of the turn that answers it at last."""
    from mockllm.checking.conversations.judge import verify

    served = serve(TEXT, quotas=read_quotas(["requests=1 per=300ms"]))
    with openai_client(served, retries=0) as client:
        refused = 0
        while not refused or served.journal()[-1]["outcome"] == "error":
            try:
                client.chat.completions.create(model="m", messages=HELLO)
            except openai.RateLimitError:
                refused += 1
        session = served.server.sessions.get("default")
        rules = frozenset({"retry-after-honoured"})
        verification = verify(session, served.server.player.served.by_name, require=rules)
        assert any("retry-after-honoured" in str(line) for line in verification.violations)
