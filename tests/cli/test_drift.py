"""`mockllm drift`: against mockllm itself, which does not change, and a service that does."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mockllm import ServerOptions, ServerThread
from mockllm.checking.cases.build import first_answer
from mockllm.checking.cases.scenarios import single
from mockllm.cli import main
from mockllm.conformance.forms import form_problem
from mockllm.core.http import TimedBytes
from mockllm.play.quirks.samples import TEXT_AND_CALL
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import load_tape
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.environment import client_keys
from tests.cli.conftest import post
from tests.conformance.drift.service import exchange, live, record, sse

KEYS = {**client_keys(PROTOCOLS), "OPENAI_API_KEY": "sk-live", "COLUMNS": "200"}
URL = "https://api.openai.com/v1/chat/completions"


def drift(*arguments, **environment):
    """Exit code and output."""
    result = CliRunner().invoke(main, ["drift", *map(str, arguments)], env={**KEYS, **environment})
    return result.exit_code, result.output


def chunks(finish="stop", **more):
    """A stream of Chat."""
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "tier": "a"}

    def chunk(delta, finish=None):
        return {**base, **more, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    first = chunk({"role": "assistant", "content": ""})
    last = {**base, **more, "choices": [], "usage": usage}
    return [first, chunk({"content": "Hi"}), chunk({}, finish), last]


def answering(events):
    """The answer of a service that streams events."""
    return 200, "text/event-stream", sse(*events, "[DONE]")


@pytest.fixture
def recorded(tmp_path):
    """A folder with one recording of Chat."""
    request = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    record(tmp_path / "recorded", exchange(URL, request, answering(chunks())))
    return tmp_path / "recorded"


@pytest.mark.slow
def test_an_unchanged_service_on_each_wire(tmp_path):
    """mockllm serves the recordings of itself: exit 0, and every answer was compared."""
    folder, exchanges = tmp_path / "recorded", []
    for api in PROTOCOLS.over_http:
        protocol = PROTOCOLS[api]
        request, answer = first_answer(single(TEXT_AND_CALL), api)
        url = "https://service.example" + protocol.client.path_of("mock-model", stream=True)
        made = exchange(url, dict(request.body), (200, dict(answer.headers)["content-type"], ""))
        exchanges.append(replace(made, chunks=tuple(TimedBytes(0, data) for data in answer.data)))
    record(folder, *exchanges)
    with ServerThread(load([folder]), ServerOptions(strict=False)) as server:
        agent = ("--upstream", f"agui={server.url}/agui")
        code, output = drift(folder, "--upstream", server.url, *agent, "--yes")
    assert output.splitlines()[-1] == f"same: {len(PROTOCOLS.over_http)} answers compared", output
    assert code == 0


def test_a_service_that_changed_three_fields_and_the_order(recorded, tmp_path):
    """All of it is in the report: on the terminal, as JSON in the form of its schema, as a page."""
    changed = chunks(lane="x", created="2026-01-01")
    for one in changed:
        del one["tier"]
    changed[2], changed[3] = changed[3], changed[2]
    file, page = tmp_path / "out" / "drift.json", tmp_path / "out" / "drift.html"
    before = {path: path.read_bytes() for path in recorded.iterdir() if path.is_file()}
    with live(lambda _: answering(changed)) as (url, requests):
        code, output = drift(recorded, "--upstream", url, "--yes", "-o", file, "--html", page)
    assert code == 1
    assert [request.headers["authorization"] for request in requests] == ["Bearer sk-live"]
    report = json.loads(file.read_text())
    assert not form_problem(report, "drift")
    assert report["verdict"] == "drift"
    found = {(one["kind"], one["place"]) for one in report["findings"]}
    assert {("added", "lane"), ("removed", "tier"), ("retyped", "created")} < found
    assert ("order", "Usage") in found
    assert "chat, m, streamed, api.openai.com:" in output
    assert "retyped        created  number, now string (in 1 of 1: hello turn 1; openai " in output
    assert all(one["place"] in page.read_text() for one in report["findings"])
    assert "<script src" not in page.read_text()
    assert {path: path.read_bytes() for path in before} == before  # nothing was written


def test_what_drifted_is_recorded_anew(recorded):
    """With --update: tape and YAML, with their date; then nothing differs, and the recording is
    found by its request."""
    secret = "sk-proj-" + "a1B2c3D4e5F6" * 4
    with live(lambda _: answering(chunks(lane=secret))) as (url, _):
        code, output = drift(recorded, "--upstream", url, "--yes", "--update")
        assert code == 1
        assert "recorded anew: 1\n  hello turn 1: written" in output
        assert drift(recorded, "--upstream", url, "--yes")[0] == 0
    (scenario,) = load([recorded])
    (turn,) = scenario.turns
    file = recorded / turn.recorded.file
    tape = load_tape(file.read_bytes(), str(file))
    assert secret not in file.read_text()
    assert "lane" in file.read_text()
    assert tape.exchange.at > 1_790_000_000
    assert [path.name for path in recorded.glob("*.jsonl")] == [file.name]
    with ServerThread([scenario]) as server:
        sent = tape.exchange.request_body
        with post(server.url, "/v1/chat/completions", sent) as response:
            assert response.read() == tape.exchange.body


def test_where_nothing_can_be_looked_at(recorded):
    """No key, a refusal, no service, nobody to ask: exit 2, and why."""
    code, output = drift(recorded, "--yes", OPENAI_API_KEY="")
    assert code == 2
    assert "hello turn 1: there is no key for chat: set OPENAI_API_KEY" in output
    assert output.splitlines()[-1] == "unknown: nothing was compared; 0 answers compared"
    error = json.dumps({"error": {"message": "Bad key", "type": "auth", "code": "bad"}})
    with live(lambda _: (401, "application/json", error)) as (url, requests):
        code, output = drift(recorded, "--upstream", url)
        assert (code, requests) == (2, [])
        assert "--yes sends them" in output
        code, output = drift(recorded, "--upstream", url, "--yes")
    assert code == 2
    assert "hello turn 1: HTTP 401: Bad key" in output
    code, output = drift(recorded, "--upstream", url, "--yes")
    assert code == 2
    assert "hello turn 1: the service does not answer:" in output


def test_a_model_that_is_gone(recorded):
    """An error in place of an answer is drift, with what the service says."""
    error = json.dumps({"error": {"message": "m was retired", "type": "x", "code": None}})
    with live(lambda _: (404, "application/json", error)) as (url, _):
        code, output = drift(recorded, "--upstream", url, "--yes")
    assert code == 1
    assert "status         status  200, now 404: m was retired" in output


def test_the_announcement(recorded):
    """How many requests go where, and about how many tokens they cost."""
    with live(lambda _: answering(chunks())) as (url, _):
        code, output = drift(recorded, "--upstream", url, "--yes")
    assert code == 0
    host = url.removeprefix("http://")
    first = f"1 request (1 to {host}); about 1 tokens in and 1 out"
    assert output.splitlines()[0] == first


def test_wrong_use(recorded, tmp_path):
    """Each with what to do."""
    (tmp_path / "written.yaml").write_text("scenario: a\nturns:\n  - reply: {text: Hi}\n")
    for arguments, message in (
        ((tmp_path / "written.yaml",), "there are no recordings"),
        ((recorded, "--header", "api-key=X"), "--header is for the service that --upstream names"),
        (
            (recorded, "--upstream", "http://h", "--header", "x"),
            "such as api-key=AZURE_OPENAI",
        ),
    ):
        code, output = drift(*arguments, "--yes")
        assert code == 2
        assert message in output


def test_what_is_not_recorded_anew(recorded):
    """A scenario that shares its file, and an error: the report says why, and the files stay."""
    file = recorded / "hello.yaml"
    written = file.read_text()
    other = "scenario: other\nmatch: {user: other}\nturns: [{reply: [{text: Hi}]}]\n"
    file.write_text(f"{written}---\n{other}")
    before = file.read_text()
    with live(lambda _: answering(chunks(lane="x"))) as (url, _):
        output = drift(recorded, "--upstream", url, "--yes", "--update")[1]
    assert "hello turn 1: is left as it was: its file has other scenarios, too" in output
    assert file.read_text() == before
    file.write_text(written)
    gone = json.dumps({"error": {"message": "gone"}})
    with live(lambda _: (404, "application/json", gone)) as (url, _):
        output = drift(recorded, "--upstream", url, "--yes", "--update")[1]
    assert "hello turn 1: is left as it was: an error is not recorded anew" in output
    assert file.read_text() == written
