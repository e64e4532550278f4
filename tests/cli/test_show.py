"""`mockllm show`."""

import json

import pytest

from mockllm.protocols import PROTOCOLS
from mockllm.protocols.client_requests import ASKING, first_body, user_text
from mockllm.replay.loading import load
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.cli.conftest import asked

NAMES = ("secret-numbers", "unicode", "reasoning", "auto", "keepalive", "stream-error")


@pytest.fixture(scope="module")
def server():
    from mockllm.scenario.shipped import shipped_scenarios

    with ServerThread(load([shipped_scenarios()]), ServerOptions(speed=0)) as thread:
        yield thread


def sent(server, protocol, scenario, **fields):
    """The head's status and the body that the server sends for the first turn."""
    asking, model = ASKING[protocol.name], f"mock/{scenario.name}"
    body = first_body(asking, model, user_text(scenario))
    path = asking.path.format(model=model)
    if fields.get("stream") is False:
        path = path.replace(":streamGenerateContent?alt=sse", ":generateContent")
    if protocol.name == "gemini":
        fields = {}
    if protocol.name == "agui":
        path += f"/{scenario.name}"
    headers = {"content-type": "application/json", **asking.headers}
    with asked(server.url, path, json.dumps({**body, **fields}).encode(), headers) as response:
        return response.status, response.read()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("api", ASKING)
def test_the_bytes_are_the_servers(mockllm, server, name, api):
    """What is shown is what a client gets, byte for byte, streamed or not."""
    scenario = server.server.player.catalogue.by_name[name]
    status, streamed = sent(server, PROTOCOLS[api], scenario)
    assert status == 200
    assert mockllm("show", name, "--api", api).stdout_bytes == streamed
    if api == "agui":
        return  # it has no form that is not streamed
    status, whole = sent(server, PROTOCOLS[api], scenario, stream=False)
    shown = mockllm("show", name, "--api", api, "--body").stdout_bytes
    assert shown == whole if status == 200 else shown.endswith(b"\r\n\r\n" + whole)


def test_the_first_api_is_the_default(mockllm):
    """Without `--api` the first that the scenario plays over is shown."""
    assert mockllm("show", "unicode").stdout == mockllm("show", "unicode", "--api", "chat").stdout


def test_later_turns(mockllm):
    """`--turn` counts from 1; a turn that is not there is a mistake that names their number."""
    assert "Bob's" in mockllm("show", "secret-numbers", "--turn", "2").stdout
    result = mockllm("show", "secret-numbers", "--turn", "3")
    assert (result.exit_code, result.stderr) == (
        2,
        "mockllm: scenario 'secret-numbers' has 2 turns, not 3\n",
    )


def test_when_events_are_due(mockllm):
    """`--timing` puts its time before each event."""
    shown = mockllm("show", "secret-numbers", "--turn", "2", "--timing").stdout
    times = [line.split()[0] for line in shown.splitlines() if line.startswith("+")]
    assert times[0] == "+0.000s"
    assert "+0.020s" in times
    assert times == sorted(times)


def test_an_http_error_is_shown_whole(mockllm):
    """A turn that is an HTTP error has status line, headers and body; so has a failing try."""
    shown = mockllm("show", "rate-limited", "--attempt", "1").stdout_bytes
    head, _, body = shown.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"retry-after: " in head
    assert "error" in json.loads(body)
    assert mockllm("show", "rate-limited").stdout.startswith("data: ")
    result = mockllm("show", "rate-limited", "--attempt", "9")
    assert (result.exit_code, result.stderr) == (2, "mockllm: this turn has 3 attempts, not 9\n")


def test_the_error_is_the_servers(mockllm, server):
    """The shown failure has the body that the server sends."""
    scenario = server.server.player.catalogue.by_name["rate-limited"]
    status, body = sent(server, PROTOCOLS["chat"], scenario)
    assert status == 429
    assert mockllm("show", "rate-limited", "--attempt", "1").stdout_bytes.endswith(body)


def test_a_request_of_ones_own(mockllm):
    """`--request` shows the answer to a body that says more."""
    usage = '{"stream_options": {"include_usage": true}}'
    shown = mockllm("show", "unicode", "--api", "chat", "--request", "-", stdin=usage).stdout
    assert '"usage":{' in shown
    assert '"usage":{' not in mockllm("show", "unicode", "--api", "chat").stdout
    result = mockllm("show", "unicode", "--request", "-", stdin="[]")
    assert (result.exit_code, result.stdout) == (2, "")


def test_an_api_that_it_does_not_play(mockllm, tmp_path):
    """An API outside of the scenario's `apis` is a mistake that names those inside."""
    (tmp_path / "a.yaml").write_text("scenario: a\napis: [chat]\nturns: [{reply: {text: x}}]\n")
    result = mockllm("show", "a", "--scenarios", tmp_path, "--api", "responses")
    assert result.exit_code == 2
    assert "does not play over responses; it plays over: chat" in result.stderr


def test_a_path_in_place_of_a_name(mockllm, tmp_path):
    """Who gives the file of a scenario is told how to."""
    (tmp_path / "a.yaml").write_text("scenario: a\nturns: [{reply: {text: x}}]\n")
    told = mockllm("show", tmp_path / "a.yaml").stderr
    assert f"it is a path: name a scenario of it, and the path with --scenarios {tmp_path}" in told
