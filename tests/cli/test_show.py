"""`mockllm show`: the bytes of an answer without a server."""

import json

import pytest

from mockllm.play.replay.client_requests import first_body, user_text
from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.framing.frame_text import readable
from mockllm.wire.protocols import PROTOCOLS
from tests.carried import CARRIED
from tests.cases import for_all
from tests.cli.conftest import post

NAMES = ("secret-numbers", "unicode", "reasoning", "auto", "keepalive", "stream-error")


@pytest.fixture(scope="module")
def server():
    from mockllm.play.replay.loading import shipped_scenarios

    with ServerThread(load([shipped_scenarios()]), ServerOptions(speed=0)) as thread:
        yield thread


def sent(server, protocol, scenario, **fields):
    """Status and body that the server sends for the first turn."""
    client, model = protocol.client, f"mock/{scenario.name}"
    body = first_body(protocol, model, user_text(scenario))
    path = client.path_of(model, stream=fields.get("stream") is not False)
    if protocol.name == "gemini":
        fields = {}
    if protocol.name == "agui":
        path += f"/{scenario.name}"
    headers = {"content-type": "application/json", **client.headers}
    with post(server.url, path, json.dumps({**body, **fields}).encode(), headers) as response:
        return response.status, response.read()


@pytest.mark.slow
@for_all("name", NAMES)
@for_all("api", PROTOCOLS.over_http)
def test_the_output_is_what_the_server_sends(mockllm, server, name, api):
    """The output is the body that a client receives, byte for byte, streamed or not."""
    scenario = server.server.player.served.by_name[name]
    status, streamed = sent(server, PROTOCOLS[api], scenario)
    assert status == 200
    printed = mockllm("show", name, "--api", api).stdout_bytes
    lines = b"".join(readable([streamed]))
    if PROTOCOLS[api].usual.name == "eventstream":  # a write that ends inside a frame says so
        printed = b"".join(
            line for line in printed.splitlines(keepends=True) if not line.startswith("…".encode())
        )
    assert printed == lines
    if api == "agui":
        return  # AG-UI always streams
    status, whole = sent(server, PROTOCOLS[api], scenario, stream=False)
    printed = mockllm("show", name, "--api", api, "--body").stdout_bytes
    assert printed == whole if status == 200 else printed.endswith(b"\r\n\r\n" + whole)


def test_the_first_api_is_the_default(mockllm):
    """Without `--api` the first API of the scenario is used."""
    assert mockllm("show", "unicode").stdout == mockllm("show", "unicode", "--api", "chat").stdout


def test_the_turn_option(mockllm):
    """`--turn` counts from 1; the error for a turn too many has the number of turns."""
    assert "Bob's" in mockllm("show", "secret-numbers", "--turn", "2").stdout
    result = mockllm("show", "secret-numbers", "--turn", "3")
    assert (result.exit_code, result.stderr) == (
        2,
        "mockllm: scenario 'secret-numbers' has 2 turns, not 3\n",
    )


def test_timing_writes_due_times(mockllm):
    """`--timing` writes the due time before each event."""
    printed = mockllm("show", "secret-numbers", "--turn", "2", "--timing").stdout
    times = [line.split()[0] for line in printed.splitlines() if line.startswith("+")]
    assert times[0] == "+0.000s"
    assert "+0.020s" in times
    assert times == sorted(times)


def test_an_http_error_is_printed_whole(mockllm):
    """A failing attempt is printed with status line, headers and body."""
    printed = mockllm("show", "rate-limited", "--attempt", "1").stdout_bytes
    head, _, body = printed.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"retry-after: " in head
    assert "error" in json.loads(body)
    assert mockllm("show", "rate-limited").stdout.startswith("data: ")
    result = mockllm("show", "rate-limited", "--attempt", "9")
    assert (result.exit_code, result.stderr) == (2, "mockllm: this turn has 3 attempts, not 9\n")


def test_the_http_error_is_what_the_server_sends(mockllm, server):
    """The printed error has the body that the server sends."""
    scenario = server.server.player.served.by_name["rate-limited"]
    status, body = sent(server, PROTOCOLS["chat"], scenario)
    assert status == 429
    assert mockllm("show", "rate-limited", "--attempt", "1").stdout_bytes.endswith(body)


def test_a_given_request_body(mockllm):
    """`--request` adds fields of a request body; a body that is no object is an error."""
    usage = '{"stream_options": {"include_usage": true}}'
    printed = mockllm("show", "unicode", "--api", "chat", "--request", "-", stdin=usage).stdout
    assert '"usage":{' in printed
    assert '"usage":{' not in mockllm("show", "unicode", "--api", "chat").stdout
    result = mockllm("show", "unicode", "--request", "-", stdin="[]")
    assert (result.exit_code, result.stdout) == (2, "")


def test_gates_are_named(mockllm, tmp_path):
    """The bytes are those without gates; where each is, and for how long, is on standard error."""
    written = "scenario: a\nturns: [{reply: [one, {gate: b}, two], gate: {name: c, limit: 5s}}]\n"
    (tmp_path / "a.yaml").write_text(written)
    shown = mockllm("show", "a", "--scenarios", tmp_path)
    before = shown.stdout.index("\n\n", shown.stdout.index("one")) + 2
    assert shown.stderr.splitlines() == [
        "mockllm: before status and headers, the answer waits at the gate 'c', for 5s at most",
        f"mockllm: after {before:,} bytes, the answer waits at the gate 'b', for 30s at most",
    ]
    (tmp_path / "a.yaml").write_text("scenario: a\nturns: [{reply: [one, two]}]\n")
    assert mockllm("show", "a", "--scenarios", tmp_path).stdout == shown.stdout


def test_an_api_that_the_scenario_does_not_play(mockllm, tmp_path):
    """The error for an API outside the scenario's `apis` names those inside."""
    (tmp_path / "a.yaml").write_text("scenario: a\napis: [chat]\nturns: [{reply: {text: x}}]\n")
    result = mockllm("show", "a", "--scenarios", tmp_path, "--api", "responses")
    assert result.exit_code == 2
    assert "does not play over responses; it plays over: chat" in result.stderr


def test_a_path_in_place_of_a_name(mockllm, tmp_path):
    """A path in place of a name is an error that explains `--scenarios`."""
    (tmp_path / "a.yaml").write_text("scenario: a\nturns: [{reply: {text: x}}]\n")
    error = mockllm("show", tmp_path / "a.yaml").stderr
    assert f"it is a path: name a scenario of it, and the path with --scenarios {tmp_path}" in error


def test_frames_are_printed_as_lines(mockllm, monkeypatch):
    """Those of an AWS event stream are binary; JSON lines are lines."""
    for name, protocol in CARRIED.items():
        monkeypatch.setitem(PROTOCOLS, name, protocol)
    plain = mockllm("show", "sample-text", "--api", "chat").stdout
    events = [line.removeprefix("data: ") for line in plain.splitlines() if line]
    printed = mockllm("show", "sample-text", "--api", "chat-eventstream").stdout
    assert printed.splitlines() == [f"event (no name) {event}" for event in events]
    timed = mockllm("show", "sample-text", "--api", "chat-eventstream", "--timing").stdout
    assert timed.startswith("+0.000s event (no name) {")
    assert mockllm("show", "sample-text", "--api", "chat-ndjson").stdout.splitlines() == events
