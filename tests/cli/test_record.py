"""`mockllm record`, and `mockllm serve --record`."""

import contextlib
import http.client
import json
import re
from urllib.parse import urlsplit

import pytest

from mockllm.cli.options import recording
from mockllm.core.errors import UsageError
from mockllm.play.replay.loading import load
from mockllm.record.recording.store.locks import alone
from mockllm.wire.protocols import PROTOCOLS
from tests.cli.conftest import chat
from tests.serve.server.recording.odd_upstream import OddUpstream, script, text_events

SERVICE = "https://api.odd.test"


@pytest.fixture
def upstream():
    """A service that answers every request with "hi"."""
    with OddUpstream(script(*text_events("hi"))) as service:
        yield service


@pytest.mark.slow
def test_a_recording(program, upstream, tmp_path):
    """The output has the base URLs, the services and the folder; then two lines for each exchange:
    its request, and its recorded turn."""
    folder = tmp_path / "new" / "recorded"
    recorder = program(
        "record", "--upstream", upstream.url, "-o", folder, "--port", "0"
    ).listening()
    assert recorder.line_with("Give to") == "Give to clients (with their own API keys):"
    assert recorder.line_with("OPENAI_BASE_URL") == (
        f"  OPENAI_BASE_URL={recorder.url}/v1  # chat, responses, completions, realtime"
    )
    line = recorder.line_with("Recording")
    assert line == f"Recording {', '.join(PROTOCOLS.over_http)} from {upstream.url}"
    assert recorder.line() == f"into {folder}"
    assert chat(recorder.url, "hello")[0] == 200
    assert re.search(r"chat +-  -        forwarded  200 ", recorder.line_with("forwarded"))
    assert recorder.line_with("recorded:").startswith("          recorded: turn 1 of hello")
    recorder.signal()
    code, output, errors = recorder.end()
    assert (code, errors) == (0, "")
    assert output.splitlines()[-2:] == ["1 recorded", f"next: mockllm serve {folder}"]
    assert [scenario.name for scenario in load([folder])] == ["hello"]


@pytest.mark.slow
def test_a_lost_recording_is_reported_even_quietly(program, upstream, tmp_path):
    """If nothing can be written, the client has its answer, and `--quiet` prints the reason."""
    folder = tmp_path / "recorded"
    options = ("--upstream", upstream.url, "-o", folder, "--port", "0", "--quiet")
    recorder = program("record", *options).listening()
    assert chat(recorder.url, "first")[0] == 200
    folder.rename(tmp_path / "gone")
    folder.write_text("in the way")
    assert chat(recorder.url, "hello")[0] == 200
    recorder.signal()
    _, output, _ = recorder.end()
    assert "not recorded: POST /v1/chat/completions: it cannot be written: " in output


@pytest.mark.slow
def test_json_lines(program, upstream, tmp_path):
    """With `--log-format json` the services, each recorded exchange and the summary are objects."""
    folder = tmp_path / "recorded"
    options = ("--upstream", f"openai={upstream.url}", "-o", folder, "--port", "0")
    recorder = program("record", *options, "--log-format", "json").listening()
    recorder.line()
    assert json.loads(recorder.line()) == {
        "event": "recording",
        "folder": str(folder),
        "mode": "add",
        "upstreams": dict.fromkeys(("chat", "responses", "completions"), upstream.url),
    }
    chat(recorder.url, "hello")
    found = json.loads(recorder.line_with('"recorded","source"'))
    assert (found["scenario"], found["turn"], found["outcome"]) == ("hello", 0, "neutral")
    recorder.signal()
    assert json.loads(recorder.end()[1].splitlines()[-1]) == {
        "event": "summary",
        "recorded": 1,
        "not_found": 0,
        "skipped": 0,
        "lost": 0,
    }


@pytest.mark.slow
def test_an_exchange_that_is_not_recorded(program, upstream, tmp_path):
    """If an exchange is not recorded for any reason, `record` and `serve --record` count it and
    exit with 1."""
    for number, form in enumerate((("record",), ("serve", "--record", "all"))):
        folder = tmp_path / f"recorded-{number}"
        folder.mkdir()
        command = (*form, folder) if number else form
        options = ("--upstream", upstream.url, "-o", folder, "--port", "0", "--quiet")
        recorder = program(*command, *options).listening()
        folder.rename(tmp_path / f"gone-{number}")
        folder.write_text("in the way")
        assert chat(recorder.url, "hello")[0] == 200
        recorder.signal()
        code, output, errors = recorder.end()
        assert code == 1
        assert "not recorded: POST /v1/chat/completions: it cannot be written: " in output
        assert (
            "\nmockllm: 0 recorded; 1 not recorded, of them 1 that could not be written " in errors
        )


@pytest.mark.slow
def test_a_probe_of_the_port_is_counted_and_not_missed(program, upstream, tmp_path):
    """Its line and the summary say that it is not recorded; the exit code is 0."""
    options = ("--upstream", upstream.url, "-o", tmp_path, "--port", "0")
    recorder = program("record", *options).listening()
    with contextlib.closing(http.client.HTTPConnection(*address(recorder.url))) as connection:
        connection.request("GET", "/")
        connection.getresponse().read()
    assert "GET /: a probe of the port" in recorder.line_with("not recorded: ")
    recorder.signal()
    code, output, errors = recorder.end()
    assert (code, errors) == (0, "")
    assert "0 recorded; 1 not recorded" in output
    assert not list(tmp_path.glob("*.yaml"))


def address(url):
    """Host and port of a URL."""
    parts = urlsplit(url)
    return parts.hostname, parts.port


@pytest.mark.slow
def test_every_exchange_is_on_disk_at_the_end(program, upstream, tmp_path):
    """Every exchange before a signal is a scenario when the program has ended."""
    recorder = program("record", "--upstream", upstream.url, "-o", tmp_path, "--port", "0")
    recorder.listening()
    for number in range(20):
        assert chat(recorder.url, f"number {number}")[0] == 200
    recorder.signal()
    assert recorder.end()[0] == 0
    assert len(load([tmp_path])) == 20


@pytest.mark.slow
def test_serving_and_recording(program, upstream, folder):
    """`serve DIR --record new_episodes` plays recorded requests and records new ones; the service
    is that of the environment."""
    served = program(
        "serve", folder, "--port", "0", "--record", "new_episodes",
        MOCKLLM_UPSTREAM_OPENAI=upstream.url,
    ).listening()  # fmt: skip
    assert (
        served.line_with("Recording")
        == f"Recording chat, responses, completions from {upstream.url}"
    )
    assert chat(served.url, "hello")[0] == 200
    assert upstream.requests == []
    assert chat(served.url, "something new")[0] == 200
    assert len(upstream.requests) == 1
    served.signal()
    served.end()
    assert sorted(scenario.name for scenario in load([folder])) == ["hello", "something-new"]


@pytest.mark.slow
def test_serve_creates_a_missing_folder(program, upstream, tmp_path):
    """`serve --record` creates a folder that does not exist."""
    served = program(
        "serve", tmp_path / "new", "--port", "0", "--record", "once", "--upstream", upstream.url
    ).listening()
    assert chat(served.url, "hello")[0] == 200
    served.signal()
    assert served.end()[0] == 0
    assert [scenario.name for scenario in load([tmp_path / "new"])] == ["hello"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["record", "-o", "x"], "recording needs a service: --upstream https://api.openai.com"),
        (["record", "-o", "x", "--upstream", "api.openai.com"], "needs a base URL"),
        (["record", "-o", "x", "--upstream", "chat=ftp://x"], "--upstream chat= needs a base URL"),
        (["record", "-o", "x", "--upstream", "https://x?a=b"], "needs a base URL"),
        (
            ["record", "-o", "x", "--upstream", SERVICE, "--match", "user,colour"],
            "'colour' is none of user, system, model, tools",
        ),
        (["record", "--upstream", SERVICE], "Missing option '-o' / '--output'"),
        (["serve", ".", "--upstream", SERVICE], "need --record"),
        (["serve", ".", "-o", "x"], "need --record"),
        (["serve", "missing"], "Path 'missing' does not exist"),
        (
            ["serve", ".", "../x", "--record", "all", "--upstream", SERVICE],
            "serve one folder, or name one with --output",
        ),
        (["serve", ".", "--record", "often"], "'often' is not one of 'none', 'once'"),
    ],
)
def test_wrong_use(mockllm, arguments, message, tmp_path, monkeypatch):
    """Wrong use is an error that explains the option, with exit code 2."""
    monkeypatch.chdir(tmp_path)
    found = mockllm(*arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())


def test_a_folder_that_cannot_be_loaded(mockllm, tmp_path):
    """A folder with a broken file is an error, and nothing is recorded."""
    (tmp_path / "broken.yaml").write_text("scenario: [")
    found = mockllm("record", "--upstream", SERVICE, "-o", tmp_path, "--port", "0")
    assert found.exit_code == 2
    assert "broken.yaml:2:1: not valid YAML" in found.output


def test_the_precedence_of_services():
    """Options override the environment, and a service for one API overrides one for all."""
    environment = {
        "MOCKLLM_UPSTREAM": "https://all.test/",
        "MOCKLLM_UPSTREAM_OPENAI": "https://openai.test",
    }
    found = recording.services((), environment)
    assert found["chat"] == found["responses"] == "https://openai.test"
    assert found["gemini"] == "https://all.test"
    found = recording.services(("gemini=https://g.test", "https://any.test/v1"), environment)
    assert found["gemini"] == "https://g.test"
    assert {found[api] for api in ("chat", "responses", "anthropic", "agui")} == {
        "https://any.test/v1"
    }
    with pytest.raises(UsageError, match="MOCKLLM_UPSTREAM_AGUI needs a base URL"):
        recording.services((), {"MOCKLLM_UPSTREAM_AGUI": "nowhere"})


@pytest.mark.slow
def test_a_second_signal_ends_at_once(program, upstream, tmp_path):
    """While a recorder waits to write an exchange, a second signal ends it at once. The next
    recorder tells that it has no recording. (Where it takes more than half a second to end in
    order, its writer is left, and writes the exchange when it can.)"""
    options = ("--upstream", upstream.url, "-o", tmp_path, "--port", "0")
    recorder = program("record", *options).listening()
    assert chat(recorder.url, "first")[0] == 200
    assert recorder.line_with("recorded:")
    with alone(tmp_path):
        assert chat(recorder.url, "hello")[0] == 200
        recorder.signal()
        recorder.line_with("stopping")
        recorder.signal()
        assert recorder.process.wait() == 130  # not the end of its output, which a writer has, too
    recorder.end()
    is_written = [scenario.name for scenario in load([tmp_path])] != ["first"]
    recorder = program("record", *options).listening()
    if not is_written:
        line = recorder.line_with("not recorded:")
        assert "its recorder was killed before it was written" in line
    recorder.signal()
    assert recorder.end()[0] == int(not is_written)
