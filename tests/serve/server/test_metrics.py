"""What Prometheus reads: figures of requests, streams, lateness, journals and the state store."""

import pytest

from mockllm.play.replay.sessions.session import Sessions
from mockllm.serve.server.metrics.figures import LATENESS, Figures
from mockllm.serve.server.metrics.names import render
from mockllm.wire.protocols import PROTOCOLS
from tests.entries import journal_entry

SCENARIOS = """
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hello.}
    repeat: true
---
scenario: paced
match: {user: paced}
turns:
  - reply: {text: abcdef, split: chars}
    timing: {every: 1ms}
    repeat: true
---
scenario: waits
match: {user: waits}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
"""
OWN = [
    {
        "scenario": "private",
        "match": {"user": "hello"},
        "turns": [{"reply": {"text": "x"}, "repeat": True}],
    }
]


def send(served, text, *, prefix="", stream=False):
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}
    return served.http.post(f"{prefix}/v1/chat/completions", json=body)


def figures(served):
    """The samples, each with its labels, by Prometheus' own parser."""
    from prometheus_client.parser import text_string_to_metric_families

    answer = served.http.get("/_mockllm/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return answer.text, {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def requests(found):
    return {
        tuple(value for _, value in labels): count
        for (name, *labels), count in found.items()
        if name == "mockllm_requests_total"
    }


def test_requests_are_counted(serve):
    """They are counted by API, outcome and scenario, in this order of labels; control routes and
    probes are none."""
    served = serve(SCENARIOS)
    for _ in range(3):
        send(served, "hello")
    send(served, "nothing")
    served.http.get("/v1/nothing")
    served.http.get("/_mockllm/health")
    assert requests(figures(served)[1]) == {
        ("chat", "played", "hello"): 3,
        ("chat", "unmatched", "(none)"): 1,
        ("(none)", "unknown route", "(none)"): 1,
    }


def test_no_figure_names_what_is_private(serve):
    """Names of sessions, of their scenarios and models, and paths are in no label."""
    served = serve(SCENARIOS)
    made = served.http.post(
        "/_mockllm/sessions", json={"session": "secret-session", "scenarios": OWN}
    )
    assert made.status_code == 201
    assert send(served, "hello", prefix="/s/secret-session").status_code == 200
    served.http.get("/secret-path")
    text, found = figures(served)
    assert requests(found)["chat", "played", "(other)"] == 1
    assert "private" not in text
    assert "secret" not in text


def test_the_lateness_of_chunks_is_counted(serve):
    """Each timed part of a stream is counted once, in one of the classes."""
    served = serve(SCENARIOS)
    assert send(served, "paced", stream=True).status_code == 200
    _, found = figures(served)
    count = found["mockllm_chunk_lateness_seconds_count",]
    assert count >= len("abcdef")
    assert found["mockllm_chunk_lateness_seconds_bucket", ("le", "+Inf")] == count
    assert found["mockllm_chunk_lateness_seconds_sum",] >= 0


def test_open_streams_are_counted(serve):
    """A stream is open until it has ended."""
    served = serve(SCENARIOS)
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "waits"}]}
    with served.http.stream("POST", "/v1/chat/completions", json=body) as stream:
        parts = stream.iter_raw()
        next(parts)
        assert figures(served)[1]["mockllm_open_streams",] == 1


def test_dropped_entries_are_counted():
    """Entries that leave a journal, and those of an evicted session, are counted for ever."""
    sessions = Sessions(max_sessions=1)
    for _ in range(1003):
        sessions.record(sessions.get("one"), journal_entry(outcome="played"))
    assert sessions.dropped == 3
    sessions.get("two")
    assert sessions.dropped == 1003
    sessions.delete("two")
    assert sessions.dropped == 1003


def test_names_are_escaped():
    """A line break, a quotation mark and a backslash in a scenario's name break no line."""
    from prometheus_client.parser import text_string_to_metric_families

    name = 'a"b\\c\nd'
    metrics = Figures(requests={("chat", name, "played"): 2})
    (family,) = [
        family
        for family in text_string_to_metric_families(render(metrics).decode())
        if family.name == "mockllm_requests"
    ]
    assert [(sample.labels["scenario"], sample.value) for sample in family.samples] == [(name, 2)]


def test_the_number_of_series_is_bounded():
    """Beyond 2,000 series, requests are counted without the name of their scenario."""
    metrics = Figures()
    names = {f"s{n}": None for n in range(5000)}
    for name in names:
        one = journal_entry("POST", "/", {}, b"", api="chat", scenario=name, outcome="played")
        metrics.note_answered(one, names)
    found = metrics.copy(0, 0).requests
    assert len(found) == 2001
    assert found["chat", "(other)", "played"] == 3000


def test_figures_of_processes_add_up():
    """Processes that are one server hand their figures over as JSON values, and they are added."""
    metrics = Figures()
    for _ in range(3):
        metrics.late.note(0.02)
    metrics.late.note(-0.001)
    metrics.late.note(1000)
    metrics.note_store_error()
    metrics.note_answered(journal_entry("POST", "/", {}, b"", api="chat"), {})
    one = metrics.copy(2, 5)
    total = Figures.from_json(one.as_json())
    assert total == one
    total.add(one)
    assert total.requests == {("chat", "(none)", "invalid"): 2}
    assert total.late.counts[LATENESS.index(0.025)] == 6
    assert (total.late.counts[0], total.late.counts[-1]) == (2, 2)
    assert total.late.total == pytest.approx(2 * (3 * 0.02 + 1000))
    assert (total.open_streams, total.dropped, total.store_errors) == (4, 10, 2)
    assert b"mockllm_store_errors_total 2.0" in render(total)


def test_every_api_is_counted(serve):
    """Requests of every API have its name."""
    served = serve(SCENARIOS)
    for protocol in PROTOCOLS.values():
        served.http.post(f"{protocol.address.base_path}/nothing")
    assert sum(requests(figures(served)[1]).values()) == len(PROTOCOLS)
