"""`mockllm serve`, as a program."""

import json
import re
import signal
import socket

import pytest

from tests.cli.conftest import HELLO, asked, chat, write

pytestmark = pytest.mark.slow

SLOW = """\
scenario: slow
match: {user: slow}
turns:
  - reply: {text: one two three, split: words, every: 200ms}
"""
REQUEST = re.compile(
    r"\d\d:\d\d:\d\d  chat       hello  turn 1   played     200 +\d+\.\d ms  try 2|"
    r"\d\d:\d\d:\d\d  chat       hello  turn 1   played     200 +\d+\.\d ms"
)


def test_the_first_lines(program, folder):
    """The address comes first, then what is served, and the base URL for each client."""
    served = program("serve", folder, "--port", "0").listening()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.url)
    lines = [served.line() for _ in range(6)]
    assert lines[:5] == [
        "",
        "Serving 1 scenario:",
        "  hello  Says hello.",
        "",
        "Give to clients (any API key will do):",
    ]
    assert lines[5] == f"  OPENAI_BASE_URL={served.url}/v1  # chat, responses"


def test_a_line_for_each_request(program, folder):
    """Each request has one line with scenario, turn, outcome, status and time."""
    served = program("serve", folder, "--port", "0").listening()
    served.line_with("OPENAI_BASE_URL")
    assert chat(served.url, "hello")[0] == 200
    assert REQUEST.fullmatch(served.line_with("chat       "))
    assert chat(served.url, "goodbye")[0] == 404
    line = served.line()
    assert re.search(r"chat       -      -        unmatched  404 ", line)
    assert "POST /v1/chat/completions  No scenario answers this request" in line


def test_lines_for_machines(program, folder):
    """With `--log-format json` every line after the first is an object that says its event."""
    served = program("serve", folder, "--port", "0", "--log-format", "json").listening()
    listening = json.loads(served.line())
    assert listening["event"] == "listening"
    assert listening["scenarios"] == ["hello"]
    assert listening["base_urls"]["chat"] == f"{served.url}/v1"
    chat(served.url, "hello")
    request = json.loads(served.line())
    assert request["event"] == "request"
    told = [request[key] for key in ("api", "scenario", "turn", "outcome", "status")]
    assert told == ["chat", "hello", 0, "played", 200]
    assert "headers" not in request
    served.signal()
    assert json.loads(served.line())["event"] == "stopping"


def test_quiet(program, folder):
    """With `--quiet` there is the first line and no more."""
    served = program("serve", folder, "--port", "0", "--quiet").listening()
    chat(served.url, "hello")
    served.signal()
    assert served.end() == (0, "", "")


@pytest.mark.parametrize(
    ("number", "loop"), [(signal.SIGTERM, "asyncio"), (signal.SIGINT, "uvloop")]
)
def test_open_streams_are_finished(program, folder, number, loop):
    """After SIGTERM or SIGINT an open stream goes on to its end, and the exit code is 0."""
    write(folder, "slow.yaml", SLOW)
    served = program("serve", folder, "--port", "0", "--loop", loop).listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with asked(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal(number)
        assert response.read().endswith(b"data: [DONE]\n\n")
    code, rest, errors = served.end()
    assert (code, errors) == (0, "")
    assert "stopping; open streams have 5 s" in rest


def test_a_second_signal_cuts(program, folder):
    """Whoever asks twice does not wait for open streams."""
    write(folder, "slow.yaml", SLOW.replace("200ms", "60s"))
    served = program("serve", folder, "--port", "0", "--grace", "60").listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with asked(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal()
        served.line_with("stopping")
        served.signal()
        code, _, errors = served.end()
    assert (code, errors) == (130, "")


def test_streams_beyond_the_grace_are_cut(program, folder):
    """Who is not done within `--grace` is cut, and the exit code is still 0."""
    write(folder, "slow.yaml", SLOW.replace("200ms", "60s"))
    served = program("serve", folder, "--port", "0", "--grace", "0").listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with asked(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal()
        code, _, errors = served.end()
    assert (code, errors) == (0, "")


def test_a_port_in_use(program, folder):
    """A port that somebody listens on is told in one line, with exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, printed, errors = program("serve", folder, "--port", port).end()
    assert (code, printed) == (2, "")
    assert errors.startswith(f"mockllm: 127.0.0.1:{port} is in use")
    assert errors.count("\n") == 1


def test_a_host_that_is_not_ours(program, folder):
    """An address that cannot be bound is told in one line."""
    code, _, errors = program("serve", folder, "--host", "192.0.2.1", "--port", "0").end()
    assert code == 2
    assert errors.startswith("mockllm: cannot listen on 192.0.2.1:0: ")
    assert errors.count("\n") == 1


def test_broken_files_are_not_served(program, folder):
    """A server does not start with files that have problems, and tells them."""
    write(folder, "bad.yaml", "scenario: bad\n")
    code, printed, errors = program("serve", folder, "--port", "0").end()
    assert (code, printed) == (2, "")
    assert f"{folder}/bad.yaml:1:1" in errors
    assert errors.endswith("mockllm: 1 problem in the scenarios\n")


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_reload(program, folder, whole):
    """Changed files are served at once; broken ones are told, and the last good version stays."""
    file = folder / "hello.yaml"
    served = program("serve", folder if whole else file, "--port", "0", "--reload").listening()
    served.line_with("OPENAI_BASE_URL")
    write(folder, "hello.yaml", HELLO.replace("Hello there", "Good day"))
    assert served.line_with("reloaded") == "reloaded 1 scenario"
    assert b"Good day" in chat(served.url, "hello")[1]
    write(folder, "hello.yaml", "scenario: 5\n")
    assert f"{file}:1:1" in served.line_with("hello.yaml")
    assert "still serving the last good version" in served.line_with("not reloaded")
    assert b"Good day" in chat(served.url, "hello")[1]
    write(folder, "hello.yaml", HELLO)
    assert served.line_with("reloaded 1") == "reloaded 1 scenario"
    assert b"Hello there" in chat(served.url, "hello")[1]
    served.signal()
    code, _, errors = served.end()
    assert (code, errors) == (0, "")


def test_a_reader_that_has_gone(program, folder):
    """`mockllm serve | head -1` goes on to serve."""
    served = program("serve", folder, "--port", "0").listening()
    served.process.stdout.close()
    for _ in range(3):
        assert chat(served.url, "hello")[0] == 200
    served.signal()
    assert served.process.wait() == 0
    assert served.process.stderr.read() == ""


def test_options_reach_the_server(program, folder):
    """`--fallback auto`, `--lenient` and `--max-body` are what they say."""
    options = ("--fallback", "auto", "--lenient", "--max-body", "1KB")
    served = program("serve", folder, "--port", "0", *options).listening()
    assert chat(served.url, "goodbye")[0] == 200
    with asked(served.url, "/v1/chat/completions", b"{}") as response:
        assert response.status == 200
    assert chat(served.url, "x" * 1024)[0] == 413
