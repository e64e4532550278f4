"""`--intercept` and `--proxy`: programs whose base URL nobody can set."""

import json
import socket
import ssl
import sys

import httpx
import pytest
import trustme

from mockllm.play.replay.loading import load
from tests.cases import for_all
from tests.serve.server.recording.odd_upstream import (
    OddUpstream,
    message_events,
    script,
    text_events,
)
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

ASKS = """
import sys, httpx
answer = httpx.post(
    sys.argv[1] + "/v1/chat/completions",
    json={"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True},
)
sys.stdout.write(f"{answer.status_code} {answer.url}\\n")
"""
OPENAI = "https://api.openai.com"


def test_a_command_that_asks_the_service_itself(program, folder):
    """Its request is played and judged, and it sees the URL of the service."""
    command = [sys.executable, "-c", ASKS, OPENAI]
    code, output, errors = program(
        "run", "--scenarios", folder, "--intercept", "known", "--", *command
    ).end()
    assert output == f"200 {OPENAI}/v1/chat/completions\n"
    assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")


def test_other_hosts_are_refused(program, folder):
    """The command fails, and standard error names the host and what to do."""
    command = [sys.executable, "-c", ASKS, "https://llm.example"]
    code, _, errors = program(
        "run", "--scenarios", folder, "--intercept", "known", "--", *command
    ).end()
    assert code != 0
    assert "mockllm does not reach llm.example" in errors
    assert "--intercept llm.example" in errors


def test_a_command_is_recorded(program, tmp_path):
    """Requests go to the service that they are for; what it answers is a scenario afterwards, which
    plays in its place."""
    folder = tmp_path / "recorded"
    with OddUpstream(script(*text_events("hi"))) as service:
        place = service.url.replace("127.0.0.1", "localhost")
        host = place.removeprefix("http://")
        command = [sys.executable, "-c", ASKS, place]
        recorder = program("record", "--intercept", host, "-o", folder, "--", *command)
        code, output, errors = recorder.end()
        assert (code, errors) == (0, "")
        assert f"200 {place}/v1/chat/completions\n" in output
        assert " recorded: turn 1 of hello\n" in output
        replay = f"mockllm run --scenarios {folder} --intercept {host} -- CMD"
        assert output.endswith(f"\n1 recorded\nnext: {replay}\n")
    assert [scenario.name for scenario in load([folder])] == ["hello"]
    played = program("run", "--scenarios", folder, "--intercept", host, "--", *command)
    code, output, errors = played.end()
    assert (code, output) == (0, f"200 {place}/v1/chat/completions\n")
    assert errors == "mockllm: 1 request: 1 played\n"


def test_the_exit_code_of_a_recorded_command(program, tmp_path):
    command = [sys.executable, "-c", "raise SystemExit(7)"]
    code, output, errors = program(
        "record", "--intercept", "known", "-o", tmp_path / "recorded", "--", *command
    ).end()
    assert (code, output, errors) == (7, "0 recorded\n", "")


def test_a_server_says_how_programs_are_led(program, folder):
    """The variables for programs that know no base URL, as text and as JSON."""
    server = program("serve", folder, "--proxy", "--port", "0").listening()
    server.line_with("Or, in the environment of programs that know no base URL:")
    variables = {}
    while line := server.line().strip():
        name, _, value = line.partition("=")
        variables[name] = value
    command = [sys.executable, "-c", ASKS, OPENAI]
    asked = program("run", "--scenarios", folder, "--", *command, **variables)
    _, output, _ = asked.end()
    assert output == f"200 {OPENAI}/v1/chat/completions\n"
    assert " 200 " in server.line_with("hello")


def test_the_variables_as_json(program, folder):
    server = program("serve", folder, "--proxy", "--port", "0", "--log-format", "json")
    server.listening()
    listening = json.loads(server.line())
    assert listening["environment"]["HTTPS_PROXY"].startswith("http://127.0.0.1:")


def test_options_that_do_not_fit(mockllm, folder):
    """They are refused before anything starts."""
    for arguments, message in (
        (("run", "--tunnel", "--", "true"), "--tunnel needs --intercept"),
        (("run", "--intercept", "https://x", "--", "true"), "takes names of hosts"),
        (("serve", folder, "--tunnel"), "--tunnel needs --proxy"),
        (("serve", folder, "--tls", "--workers", "2"), "--tls needs one process"),
        (("serve", folder, "--proxy-port", "1"), "--proxy-port needs --proxy"),
        (("serve", folder, "--proxy", "--workers", "2"), "--proxy needs one process"),
    ):
        result = mockllm(*arguments)
        assert result.exit_code == 2
        assert message in result.output


@pytest.mark.parametrize("command", [(), ("--", "true")], ids=["until a signal", "for a command"])
def test_a_proxy_port_that_is_taken(program, folder, tmp_path, command):
    """The error names the port of the proxy, not that of the server."""
    served = ("record", "-o", tmp_path / "recorded") if command else ("serve", folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        proxy = ("--proxy", "--proxy-port", port)
        code, _, errors = program(*served, "--port", 0, *proxy, *command).end()
    assert code == 2
    assert errors == (
        f"mockllm: 127.0.0.1:{port} is in use; stop what listens there, or choose another port "
        "(--proxy-port 0 picks a free one)\n"
    )


def test_a_server_with_tls(program, folder):
    """It says what its clients have to trust, and once where it is; curl believes it."""
    server = program("serve", folder, "--tls", "--port", "0").listening()
    assert server.url.startswith("https://")
    server.line_with("And in their environment, so that they trust this server:")
    variables = {}
    while line := server.line().strip():
        name, _, value = line.partition("=")
        variables[name] = value
    assert not [name for name in variables if name.endswith(("_BASE_URL", "_KEY"))]
    assert {"NODE_EXTRA_CA_CERTS", "DENO_CERT", "GIT_SSL_CAINFO"} <= variables.keys()
    command = [sys.executable, "-c", ASKS, server.url]
    asked = program("run", "--scenarios", folder, "--", *command, **variables)
    _, output, _ = asked.end()
    assert output == f"200 {server.url}/v1/chat/completions\n"


EITHER = """
import os, sys, urllib.request
from pathlib import Path
for url in (os.environ["MOCKLLM_URL"], os.environ["MOCKLLM_URL"].replace("http:", "https:")):
    with urllib.request.urlopen(url + "/v1/models") as answer:
        sys.stdout.write(f"{url.partition(':')[0]} {answer.status}\\n")
added = Path(os.environ["NODE_EXTRA_CA_CERTS"]).read_text()
sys.stdout.write(f"{added.count('BEGIN CERTIFICATE')} {os.environ['CURL_CA_BUNDLE']}\\n")
"""


def test_a_command_that_dials_tls_in_any_case(program, folder, tmp_path):
    """One port takes both; what the environment named for Node stays trusted, and curl, which has
    no need of it, keeps its own."""
    own = tmp_path / "own.pem"
    own.write_bytes(trustme.CA().cert_pem.bytes())
    run = ("run", folder, "--allow-no-requests", "--", sys.executable, "-c", EITHER)
    _, output, errors = program(*run, NODE_EXTRA_CA_CERTS=str(own), CURL_CA_BUNDLE="own").end()
    assert output == "http 200\nhttps 200\n2 own\n", errors


def test_a_command_that_trusts_others(program, folder):
    """Its handshake fails, and standard error says why."""
    asks = "import os, httpx; httpx.get(os.environ['MOCKLLM_URL'].replace('http:', 'https:'))"
    command = ("env", "-u", "SSL_CERT_FILE", sys.executable, "-c", asks)
    code, _, errors = program("run", folder, "--", *command).end()
    assert code == 1
    assert "CERTIFICATE_VERIFY_FAILED" in errors
    assert "a client of this server does not take the certificate of this process" in errors


@for_all(
    "arguments", [["serve", "--proxy"], ["serve", "--tls"], ["record", "-o", "out", "--proxy"]]
)
def test_a_quiet_server_says_what_clients_need(arguments, program, folder, tmp_path, monkeypatch):
    """Each address, and what to trust; a client that knows nothing else gets an answer."""
    monkeypatch.chdir(tmp_path)
    name, *options = arguments
    paths = [folder] if name == "serve" else ["--intercept", "api.example"]
    server = program(name, *paths, *options, "--port", "0", "--quiet").listening()
    asked, proxy = f"{server.url}/_mockllm/health", None
    if "--proxy" in options:
        proxy = server.line().removeprefix("and, as a proxy, on ")
        asked = "https://api.openai.com/v1/models" if name == "serve" else asked
    file = server.line().removeprefix("with the certificate to trust in ")
    trusted = ssl.create_default_context(cafile=file)
    with httpx.Client(proxy=proxy, verify=trusted, trust_env=False, timeout=GIVE_UP) as client:
        answer = client.get(asked)
    if name == "record":  # it asks no service here, and through the proxy none reaches mockllm
        assert (answer.status_code, "is mockllm itself" in answer.text) == (403, True)
    else:
        assert answer.status_code == 200
    server.signal()
    assert server.end()[1] in ("", "0 recorded\n")


AGENT = """#!{python}
import os, sys, httpx
assert "ANTHROPIC_BASE_URL" not in os.environ
answer = httpx.post(
    "https://api.anthropic.com/v1/messages?beta=true",
    headers={{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}},
    json={{
        "model": "claude", "max_tokens": 9, "stream": True,
        "messages": [{{"role": "user", "content": sys.argv[sys.argv.index("-p") + 1]}}],
    }},
)
sys.stdout.write(f"{{answer.status_code}} {{'Hello back' in answer.text}}\\n")
"""


def test_a_coding_agent(program, tmp_path):
    """A stand-in that speaks through the proxy of its environment alone is recorded and played."""
    agent = tmp_path / "claude"
    agent.write_text(AGENT.format(python=sys.executable))
    agent.chmod(0o700)
    folder = tmp_path / "recorded"
    lead = ("--intercept", "api.anthropic.com")
    key = {"ANTHROPIC_API_KEY": "any-key-of-the-user"}
    with OddUpstream(script(*message_events("Hello back"))) as service:
        upstream = ("--upstream", f"anthropic={service.url}")
        recorder = program(
            "record", *lead, *upstream, "-o", folder, "--", agent, "-p", "hello", **key
        )
        code, output, errors = recorder.end()
        assert (code, errors) == (0, "")
        assert "200 True\n" in output
        (request,) = service.requests
        assert ("x-api-key", "any-key-of-the-user") in request.headers
    played = program("run", "--scenarios", folder, *lead, "--", agent, "-p", "hello")
    code, output, errors = played.end()
    assert (code, output, errors) == (0, "200 True\n", "mockllm: 1 request: 1 played\n")
