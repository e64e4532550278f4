"""`mockllm record`, and `mockllm serve --record`."""

import json
import re
import shutil

import pytest

from mockllm.cli import recording
from mockllm.errors import UsageError
from mockllm.replay.loading import load
from tests.cli.conftest import chat
from tests.server.odd_upstream import OddUpstream, says, script

SERVICE = "https://api.odd.test"


@pytest.fixture
def upstream():
    """A service that says hi to everybody."""
    with OddUpstream(script(*says("hi"))) as service:
        yield service


@pytest.mark.slow
def test_a_recording(program, upstream, tmp_path):
    """The first lines say where to send clients, what is recorded and where to; then come two
    lines for each exchange: that it passed, and what it became."""
    folder = tmp_path / "new" / "recorded"
    recorder = program(
        "record", "--upstream", upstream.url, "-o", folder, "--port", "0"
    ).listening()
    assert recorder.line_with("Give to") == "Give to clients (with their own API keys):"
    assert recorder.line_with("OPENAI_BASE_URL") == (
        f"  OPENAI_BASE_URL={recorder.url}/v1  # chat, responses"
    )
    told = recorder.line_with("Recording")
    assert told == f"Recording chat, responses, anthropic, gemini, agui from {upstream.url}"
    assert recorder.line() == f"into {folder}"
    assert chat(recorder.url, "hello")[0] == 200
    assert re.search(r"chat       -  -        forwarded  200 ", recorder.line_with("forwarded"))
    assert recorder.line_with("recorded:").startswith("          recorded: turn 1 of hello")
    recorder.signal()
    code, _, errors = recorder.end()
    assert (code, errors) == (0, "")
    assert [one.name for one in load([folder])] == ["hello"]


@pytest.mark.slow
def test_what_is_lost_is_told_even_quietly(program, upstream, tmp_path):
    """Where the disk lets nothing be written the client has its answer, and the user is told."""
    folder = tmp_path / "recorded"
    options = ("--upstream", upstream.url, "-o", folder, "--port", "0", "--quiet")
    recorder = program("record", *options).listening()
    shutil.rmtree(folder)
    folder.write_text("in the way")
    assert chat(recorder.url, "hello")[0] == 200
    assert recorder.line_with("not recorded: ").startswith("not recorded: [Errno")


@pytest.mark.slow
def test_lines_for_machines(program, upstream, tmp_path):
    """With `--log-format json` the services, and what became of each exchange, are objects."""
    folder = tmp_path / "recorded"
    options = ("--upstream", f"openai={upstream.url}", "-o", folder, "--port", "0")
    recorder = program("record", *options, "--log-format", "json").listening()
    recorder.line()
    assert json.loads(recorder.line()) == {
        "event": "recording",
        "folder": str(folder),
        "mode": "add",
        "upstreams": {"chat": upstream.url, "responses": upstream.url},
    }
    chat(recorder.url, "hello")
    found = json.loads(recorder.line_with('"recorded","source"'))
    assert (found["scenario"], found["turn"], found["outcome"]) == ("hello", 0, "frames")


@pytest.mark.slow
def test_what_passes_is_on_the_disk_when_it_ends(program, upstream, tmp_path):
    """Whatever passed before a signal is a scenario after it."""
    recorder = program("record", "--upstream", upstream.url, "-o", tmp_path, "--port", "0")
    recorder.listening()
    for number in range(20):
        assert chat(recorder.url, f"number {number}")[0] == 200
    recorder.signal()
    assert recorder.end()[0] == 0
    assert len(load([tmp_path])) == 20


@pytest.mark.slow
def test_serving_and_recording(program, upstream, folder):
    """`serve DIR --record new_episodes` plays what is in the folder and adds what is not; the
    service comes from the environment."""
    served = program(
        "serve", folder, "--port", "0", "--record", "new_episodes",
        MOCKLLM_UPSTREAM_OPENAI=upstream.url,
    ).listening()  # fmt: skip
    assert served.line_with("Recording") == f"Recording chat, responses from {upstream.url}"
    assert chat(served.url, "hello")[0] == 200
    assert upstream.asked == []
    assert chat(served.url, "something new")[0] == 200
    assert len(upstream.asked) == 1
    served.signal()
    served.end()
    assert sorted(one.name for one in load([folder])) == ["hello", "something-new"]


@pytest.mark.slow
def test_serving_from_a_folder_that_is_not_there(program, upstream, tmp_path):
    """What is recorded to may be missing at first."""
    served = program(
        "serve", tmp_path / "new", "--port", "0", "--record", "once", "--upstream", upstream.url
    ).listening()
    assert chat(served.url, "hello")[0] == 200
    served.signal()
    assert served.end()[0] == 0
    assert [one.name for one in load([tmp_path / "new"])] == ["hello"]


@pytest.mark.parametrize(
    ("arguments", "words"),
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
def test_wrong_use(mockllm, arguments, words, tmp_path, monkeypatch):
    """What makes no sense is told in one line that says what to do."""
    monkeypatch.chdir(tmp_path)
    found = mockllm(*arguments)
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())


def test_a_folder_that_cannot_be_loaded(mockllm, tmp_path):
    """Nothing is recorded beside files that are broken already."""
    (tmp_path / "broken.yaml").write_text("scenario: [")
    found = mockllm("record", "--upstream", SERVICE, "-o", tmp_path, "--port", "0")
    assert found.exit_code == 2
    assert "broken.yaml:2:1: not valid YAML" in found.output


def test_services():
    """Options count more than the environment, one API more than all, and the order of neither
    matters."""
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
