"""Figures under the names of vLLM and of OpenTelemetry, for dashboards that know these."""

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mockllm.core.turn import TokenUsage
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.compilation.http_answer import Generated, HttpAnswer
from mockllm.serve.server.metrics.by_model import MOST_MODELS, Models
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.metrics.names import render
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import journal_entry

SCENARIOS = """
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hello to you., split: words}
    usage: {input: 7, output: 3}
    repeat: true
---
scenario: long
match: {user: long}
turns:
  - reply: {text: one two three, split: words}
    usage: {input: 5, output: 3}
    timing: {ttft: 20ms, every: 2ms}
    finish: length
    repeat: true
---
scenario: limited
match: {user: limited}
turns:
  - http: {status: 429}
    repeat: true
---
scenario: waits
match: {user: waits}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
"""
KEYS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "x-goog-api-key": "k"}
KEYS["authorization"] = "Bearer k"
VLLM = (("engine", "0"), ("model_name", "m"))
OTEL = (
    ("gen_ai_operation_name", "chat"),
    ("gen_ai_provider_name", "openai"),
    ("gen_ai_request_model", "m"),
)


def send(served, text, *, model="m", stream=True):
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": text}]}
    return served.http.post("/v1/chat/completions", json=body)


def samples(text):
    """The samples, each with its labels, by Prometheus' own parser."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(served):
    return samples(served.http.get("/metrics").text)


def bounds(found, name):
    """The bounds of the classes of a histogram."""
    return [
        float(value)
        for family, *labels in found
        if family == f"{name}_bucket"
        for label, value in labels
        if label == "le"
    ]


def test_vllm(serve):
    """Requests, tokens and times have the names, labels and classes of vLLM; requests that are
    refused never reach its engine, and are not counted there."""
    served = serve(SCENARIOS, metrics=("vllm",))
    send(served, "hello")
    send(served, "hello", stream=False)
    send(served, "long")
    send(served, "limited")
    send(served, "nothing")
    found = scraped(served)
    assert not [name for name, *_ in found if not name.startswith("vllm:")]
    assert found["vllm:request_success_total", VLLM[0], ("finished_reason", "stop"), VLLM[1]] == 2
    assert found["vllm:request_success_total", VLLM[0], ("finished_reason", "length"), VLLM[1]] == 1
    assert found["vllm:prompt_tokens_total", *VLLM] == 7 + 7 + 5
    assert found["vllm:generation_tokens_total", *VLLM] == 9
    assert found["vllm:e2e_request_latency_seconds_count", *VLLM] == 3
    assert found["vllm:time_to_first_token_seconds_count", *VLLM] == 2
    assert found["vllm:request_time_per_output_token_seconds_count", *VLLM] == 2
    assert found["vllm:num_requests_running", *VLLM] == 0
    assert found["vllm:num_requests_waiting", *VLLM] == 0
    between = found["vllm:inter_token_latency_seconds_count", *VLLM]
    assert found["vllm:time_per_output_token_seconds_count", *VLLM] == between <= 2
    assert bounds(found, "vllm:time_to_first_token_seconds")[:4] == [0.001, 0.005, 0.01, 0.02]
    assert bounds(found, "vllm:inter_token_latency_seconds")[-2:] == [80, float("inf")]
    assert bounds(found, "vllm:e2e_request_latency_seconds")[:3] == [0.3, 0.5, 0.8]
    assert found["vllm:time_to_first_token_seconds_sum", *VLLM] >= 0.02


@pytest.mark.parametrize("models", [("m",), ("m", "n")])
def test_waiting_requests(models):
    """Requests that wait are those of the model where there is one; it is not known which of
    several."""
    figures = Figures(models=Models(), waiting=3)
    for model in models:
        figures.note_sent(entry(model), answer(), 1.0)
    found = samples(render(figures, ("mockllm", "vllm")).decode())
    assert found["mockllm_waiting_requests",] == 3
    waiting = [value for (name, *_), value in found.items() if name == "vllm:num_requests_waiting"]
    assert waiting == ([3] if len(models) == 1 else [0, 0, 3])


def test_a_running_answer(serve):
    """An answer that is on its way is counted as running."""
    served = serve(SCENARIOS, metrics=("vllm",))
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "waits"}]}
    with served.http.stream("POST", "/v1/chat/completions", json=body) as stream:
        parts = stream.iter_raw()
        next(parts)
        assert scraped(served)["vllm:num_requests_running", *VLLM] == 1


def test_opentelemetry(serve):
    """The names, attributes and classes are those of the semantic conventions; an error has its
    status as `error_type`."""
    served = serve(SCENARIOS, metrics=("otel",))
    send(served, "hello")
    send(served, "long")
    send(served, "limited")
    found = scraped(served)
    assert not [name for name, *_ in found if not name.startswith("gen_ai_")]
    assert found["gen_ai_server_request_duration_seconds_count", *OTEL] == 2
    failed = ("error_type", "429")
    assert found["gen_ai_server_request_duration_seconds_count", failed, *OTEL] == 1
    assert found["gen_ai_server_time_to_first_token_seconds_count", *OTEL] == 2
    assert found["gen_ai_server_time_per_output_token_seconds_count", *OTEL] == 2
    used = {
        kind: found["gen_ai_client_token_usage_sum", *OTEL, ("gen_ai_token_type", kind)]
        for kind in ("input", "output")
    }
    assert used == {"input": 12, "output": 6}
    assert bounds(found, "gen_ai_server_time_to_first_token_seconds")[-2:] == [10, float("inf")]
    assert bounds(found, "gen_ai_server_time_per_output_token_seconds")[-2] == 2.5
    assert bounds(found, "gen_ai_server_request_duration_seconds")[:2] == [0.01, 0.02]
    assert bounds(found, "gen_ai_client_token_usage")[:3] == [1, 4, 16]


def test_every_api_has_a_provider(serve):
    """Each API is counted with a provider and an operation, those of the conventions where there
    are some."""
    served = serve(SCENARIOS, metrics=("otel",))
    for protocol in (PROTOCOLS[name] for name in PROTOCOLS.over_http):
        body = first_body(protocol, "m", "hello")
        answer = served.http.post(protocol.client.path_of("m"), json=body, headers=KEYS)
        assert answer.status_code == 200, (protocol.name, answer.text)
    name = "gen_ai_server_time_to_first_token_seconds_count"
    found = {
        tuple(dict(labels)[f"gen_ai_{of}"] for of in ("provider_name", "operation_name"))
        for family, *labels in scraped(served)
        if family == name
    }
    assert found == {
        ("openai", "chat"),
        ("openai", "text_completion"),
        ("anthropic", "chat"),
        ("gcp.gemini", "generate_content"),
        ("agui", "invoke_agent"),
        ("ollama", "chat"),
        ("cohere", "chat"),
        ("aws.bedrock", "chat"),
    }


def test_several_names_at_once(serve):
    """Each of the names is there, in the order of the options, here and at the control route."""
    served = serve(SCENARIOS, metrics=("mockllm", "otel"))
    send(served, "hello")
    found = scraped(served)
    assert found["mockllm_open_streams",] == 0
    assert found["gen_ai_server_request_duration_seconds_count", *OTEL] == 1
    assert samples(served.http.get("/_mockllm/metrics").text).keys() == found.keys()


def test_models_are_named_only_where_asked_for(serve):
    """Without the option no figure names a model."""
    served = serve(SCENARIOS)
    send(served, "hello", model="secret-model")
    assert "secret-model" not in served.http.get("/metrics").text


def test_a_route_of_a_scenario_wins(serve):
    """A scenario may have the path /metrics itself."""
    own = "scenario: own\nroute: GET /metrics\nturns:\n  - answer: {text: mine}\n"
    assert serve(own).http.get("/metrics").text == "mine"


def entry(model, status=200):
    return journal_entry("POST", "/", api="chat", model=model, outcome="played", status=status)


def answer(finish="stop", failed=False):
    made = Generated(TokenUsage(2, 3), beats=3, first=0, finish=finish, failed=failed)
    return HttpAnswer(200, (), (b"abc",), (0,), True, b"", generated=made)


def test_the_number_of_models_is_bounded():
    """Beyond a number of models, and for names that are very long, models have no names."""
    models = Models()
    for number in range(MOST_MODELS + 50):
        models.note(entry(f"model-{number}"), answer(), ())
    models.note(entry("x" * 1000), answer(), ())
    counted = {model: own.first.count for (_, model), own in models}
    assert len(counted) == MOST_MODELS + 1
    assert counted["(other)"] == 51


@pytest.mark.parametrize(
    ("fields", "made", "reason"),
    [
        ({}, {}, "stop"),
        ({}, {"finish": "tool_calls"}, "stop"),
        ({}, {"finish": "length"}, "length"),
        ({}, {"finish": None, "failed": True}, "error"),
        ({"client_gone": True}, {}, "abort"),
        ({"complete": False}, {}, "abort"),
    ],
)
def test_how_an_answer_ends(fields, made, reason):
    """vLLM has four endings; only streams that ended well have times of tokens."""
    figures, exchange = Figures(models=Models()), entry("m")
    for name, value in fields.items():
        setattr(exchange.sent, name, value)
    figures.note_sent(exchange, answer(**made), 1.0)
    found = samples(render(figures, ("vllm", "otel")).decode())
    counted = "vllm:request_success_total", VLLM[0], ("finished_reason", reason), VLLM[1]
    assert found[counted] == 1
    is_well = reason in ("stop", "length")
    assert found["vllm:time_to_first_token_seconds_count", *VLLM] == is_well
    error = [] if is_well else [("error_type", reason)]
    assert found["gen_ai_server_request_duration_seconds_count", *error, *OTEL] == 1


def test_times_between_tokens():
    """vLLM's time between tokens is that between two writes; a wait before the answer's start
    belongs to the time to the first token."""
    figures, exchange = Figures(models=Models()), entry("m")
    exchange.sent.duration = 1.06
    figures.models.note(exchange, answer(), [0.02, 0.03, 0.08])
    found = samples(render(figures, ("vllm",)).decode())
    assert found["vllm:time_to_first_token_seconds_sum", *VLLM] == pytest.approx(1.0)
    assert found["vllm:e2e_request_latency_seconds_sum", *VLLM] == pytest.approx(1.06)
    assert found["vllm:inter_token_latency_seconds_sum", *VLLM] == pytest.approx(0.06)
    assert found["vllm:inter_token_latency_seconds_count", *VLLM] == 2
    per_token = found["vllm:request_time_per_output_token_seconds_sum", *VLLM]
    assert per_token == pytest.approx(0.03)


def test_figures_of_models_add_up():
    """Processes that are one server hand over their figures of models, too."""
    figures = Figures(models=Models())
    figures.models.begin(entry("m"))
    figures.note_sent(entry("m"), answer(), 1.0)
    figures.note_sent(entry("other", status=500), answer(), 1.0)
    total = Figures.from_json(json.loads(json.dumps(figures.as_json())))
    total.add(figures)
    found = samples(render(total, ("vllm",)).decode())
    assert found["vllm:num_requests_running", *VLLM] == 2
    assert found["vllm:generation_tokens_total", *VLLM] == 6
    assert ("vllm:prompt_tokens_total", VLLM[0], ("model_name", "other")) in found
