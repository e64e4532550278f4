"""`mockllm serve` as a program: its output, signals, reload and errors."""

import asyncio
import contextlib
import errno
import json
import re
import signal
import socket
import sys

import httpx
import pytest

from mockllm.cli.serving.listening import _LoopErrors
from mockllm.cli.serving.server_log import LineOutput, LogOptions, ServerLog
from tests.cli.conftest import GIVE_UP, HELLO, chat, post, write

pytestmark = pytest.mark.slow

SLOW = """\
scenario: slow
match: {user: slow}
turns:
  - reply: {text: one two three, split: words, every: 200ms}
"""
REQUEST = re.compile(
    r"\d\d:\d\d:\d\d  chat +hello  turn 1   played     200 +\d+\.\d ms  try 2|"
    r"\d\d:\d\d:\d\d  chat +hello  turn 1   played     200 +\d+\.\d ms"
)


def test_the_first_lines(program, folder):
    """The output begins with the address, the scenarios, and the base URL of each client."""
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
    base = f"  OPENAI_BASE_URL={served.url}/v1"
    assert lines[5] == f"{base}  # chat, responses, completions, realtime"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_scenarios(program, workers):
    """Automatic answers need none."""
    options = ["--fallback", "auto(tokens=5)", "--workers", workers]
    served = program("serve", *options, "--port", "0").listening()
    assert served.line_with("OPENAI_BASE_URL")
    status, body = chat(served.url, "hello")
    assert (status, len(json.loads(body)["choices"][0]["message"]["content"].split())) == (200, 5)


def test_a_line_for_each_request(program, folder):
    """Each request has one line with scenario, turn, outcome, status and time."""
    served = program("serve", folder, "--port", "0").listening()
    served.line_with("OPENAI_BASE_URL")
    assert chat(served.url, "hello")[0] == 200
    assert REQUEST.fullmatch(served.line_with("  chat "))
    assert chat(served.url, "goodbye")[0] == 404
    line = served.line()
    assert re.search(r"chat +-      -        unmatched  404 ", line)
    assert "POST /v1/chat/completions  No scenario answers this request" in line


def serve_with_loop(loop, folder):
    """The words of `serve` on an event loop, which only a file names."""
    config = folder / "loop.toml"
    config.write_text(f'[serve]\nloop = "{loop}"\n')
    return "--config", config, "serve"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is Linux's")
def test_too_many_connections_are_one_line(program, folder, tmp_path):
    """Others wait until there is room; nothing is written a thousand times."""
    import resource

    command = (*serve_with_loop("asyncio", tmp_path), folder)
    served = program(*command, "--port", "0", "--quiet").listening()
    resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (100, 100))
    where = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    idle = [socket.create_connection(where) for _ in range(150)]
    assert "no connection can be accepted: Too many open files" in served.line()
    for connection in idle:
        connection.close()
    assert chat(served.url, "hello")[0] == 200
    served.signal()
    assert served.end() == (0, "", "")


def test_a_listener_that_closes_while_connections_wait(tmp_path):
    """The loop tries once more to accept on the closed socket; that is no error to report."""
    loop = asyncio.new_event_loop()
    output = (tmp_path / "log").open("wb")
    report = ServerLog(LogOptions(quiet=True), LineOutput(output.fileno()))
    errors, reported = _LoopErrors(report), []
    loop.default_exception_handler = reported.append
    closed = {"exception": ValueError("Invalid file descriptor: -1")}
    try:
        errors(loop, closed)
        errors(loop, {"exception": OSError(errno.EMFILE, "Too many open files")})
        errors(loop, closed)
    finally:
        loop.close()
        output.close()
    assert reported == [closed]


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no such limit")
def test_as_many_connections_as_the_system_allows(program, folder, tmp_path):
    """The limit of a shell is often low, and that of the system high."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 400:
        pytest.skip("the system allows no more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        command = (*serve_with_loop("asyncio", tmp_path), folder)
        served = program(*command, "--port", "0").listening()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with contextlib.ExitStack() as opened:
        where = ("127.0.0.1", int(served.url.rpartition(":")[2]))
        for _ in range(350):
            opened.enter_context(socket.create_connection(where))
        assert chat(served.url, "hello")[0] == 200


def test_json_lines(program, folder):
    """With `--log-format json` every line is an object with an `event`, after the address."""
    served = program("serve", folder, "--port", "0", "--log-format", "json").listening()
    listening = json.loads(served.line())
    assert listening["event"] == "listening"
    assert listening["scenarios"] == ["hello"]
    assert listening["base_urls"]["chat"] == f"{served.url}/v1"
    chat(served.url, "hello")
    request = json.loads(served.line())
    assert request["event"] == "request"
    facts = [request[key] for key in ("api", "scenario", "turn", "outcome", "status")]
    assert facts == ["chat", "hello", 0, "played", 200]
    assert "headers" not in request
    served.signal()
    assert json.loads(served.line())["event"] == "stopping"


def test_quiet_prints_the_address_only(program, folder):
    """With `--quiet` the address is the only line."""
    served = program("serve", folder, "--port", "0", "--quiet").listening()
    chat(served.url, "hello")
    served.signal()
    assert served.end() == (0, "", "")


@pytest.mark.parametrize(
    ("number", "loop"), [(signal.SIGTERM, "asyncio"), (signal.SIGINT, "uvloop")]
)
def test_open_streams_are_finished(program, folder, tmp_path, number, loop):
    """After SIGTERM or SIGINT an open stream is sent to its end, and the exit code is 0."""
    write(folder, "slow.yaml", SLOW)
    command = (*serve_with_loop(loop, tmp_path), folder)
    served = program(*command, "--port", "0", "--grace", "60").listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with post(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal(number)
        assert response.read().endswith(b"data: [DONE]\n\n")
    code, rest, errors = served.end()
    assert (code, errors) == (0, "")
    assert "stopping; open streams have 60 s" in rest


def test_the_default_grace(program, folder):
    """Without `--grace` open streams have five seconds after a signal."""
    served = program("serve", folder, "--port", "0").listening()
    served.signal()
    code, rest, errors = served.end()
    assert (code, errors) == (0, "")
    assert "stopping; open streams have 5 s" in rest


def test_a_second_signal_cuts(program, folder):
    """A second signal cuts open streams at once, with exit code 130."""
    write(folder, "slow.yaml", SLOW.replace("200ms", "60s"))
    served = program("serve", folder, "--port", "0", "--grace", "60").listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with post(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal()
        served.line_with("stopping")
        served.signal()
        code, _, errors = served.end()
    assert (code, errors) == (130, "")


def test_streams_beyond_the_grace_are_cut(program, folder):
    """A stream that is still open after `--grace` is cut, and the exit code is still 0."""
    write(folder, "slow.yaml", SLOW.replace("200ms", "60s"))
    served = program("serve", folder, "--port", "0", "--grace", "0").listening()
    body = b'{"model": "mock/slow", "stream": true, "messages": [{"role": "user", "content": ""}]}'
    with post(served.url, "/v1/chat/completions", body) as response:
        assert b"data" in response.readline()
        served.signal()
        code, _, errors = served.end()
    assert (code, errors) == (0, "")


def test_a_port_in_use(program, folder):
    """A port in use is an error of one line, with exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, printed, errors = program("serve", folder, "--port", port).end()
    assert (code, printed) == (2, "")
    assert errors.startswith(f"mockllm: 127.0.0.1:{port} is in use")
    assert errors.count("\n") == 1


def test_an_address_that_cannot_be_bound(program, folder):
    """An address that cannot be bound is an error of one line, with exit code 2."""
    code, _, errors = program("serve", folder, "--host", "192.0.2.1", "--port", "0").end()
    assert code == 2
    assert errors.startswith("mockllm: cannot listen on 192.0.2.1:0: ")
    assert errors.count("\n") == 1


def test_broken_files_are_not_served(program, folder):
    """The server prints the problems of broken files, and does not start."""
    write(folder, "bad.yaml", "scenario: bad\n")
    code, printed, errors = program("serve", folder, "--port", "0").end()
    assert (code, printed) == (2, "")
    assert f"{folder}/bad.yaml:1:1" in errors
    assert errors.endswith("mockllm: 1 problem in the scenarios\n")


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_reload_serves_the_last_good_version(program, folder, whole):
    """A changed file is loaded; for a broken one the problems are printed, and the last good
    version is served."""
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


def test_reload_reads_included_files(program, folder):
    """A change of a file that the served one includes changes the answers."""
    write(folder, "common.yaml", "replies: {hi: {text: Hello there}}\n")
    text = (
        "scenario: hello\ninclude: common.yaml\nmatch: {user: hello}\nturns: [{reply: {use: hi}}]\n"
    )
    write(folder, "hello.yaml", text)
    served = program("serve", folder / "hello.yaml", "--port", "0", "--reload").listening()
    served.line_with("OPENAI_BASE_URL")
    write(folder, "common.yaml", "replies: {hi: {text: Good day}}\n")
    assert served.line_with("reloaded") == "reloaded 1 scenario"
    assert b"Good day" in chat(served.url, "hello")[1]
    served.signal()
    code, _, errors = served.end()
    assert (code, errors) == (0, "")


def test_a_closed_reader_does_not_stop_the_server(program, folder):
    """`mockllm serve | head -1` goes on serving."""
    served = program("serve", folder, "--port", "0").listening()
    served.process.stdout.close()
    for _ in range(3):
        assert chat(served.url, "hello")[0] == 200
    served.signal()
    assert served.process.wait() == 0
    assert served.process.stderr.read() == ""


def test_options_reach_the_server(program, folder):
    """`--fallback auto`, `--lenient` and `--max-body` each change the answer to one request."""

    def statuses(*options):
        served = program("serve", folder, "--port", "0", *options).listening()
        without_model = b'{"messages": [{"role": "user", "content": "hello"}]}'
        with post(served.url, "/v1/chat/completions", without_model) as response:
            lenient = response.status
        return chat(served.url, "goodbye")[0], lenient, chat(served.url, "x" * 1024)[0]

    assert statuses() == (404, 400, 404)
    assert statuses("--fallback", "auto") == (200, 400, 200)
    assert statuses("--lenient") == (404, 200, 404)
    assert statuses("--max-body", "1KB") == (404, 400, 413)
    assert statuses("--fallback", "auto", "--lenient", "--max-body", "1KB") == (200, 200, 413)


def test_large_bodies_evict_no_session(program, folder):
    """Bodies of 280 MB in all are kept in part, with their full size, and no other session goes."""
    served = program("serve", folder, "--port", "0", "--quiet").listening()
    with httpx.Client(base_url=served.url, timeout=GIVE_UP) as client:

        def ask(session, text):
            sent = {"model": "m", "messages": [{"role": "user", "content": text}]}
            path, headers = "/v1/chat/completions", {"x-mockllm-session": session}
            with post(served.url, path, json.dumps(sent).encode(), headers) as response:
                assert (response.status, bool(response.read())) == (200, True)

        def found(kind, session=None):
            answer = client.get(f"/_mockllm/{kind}", params={"session": session} if session else {})
            return answer.json()

        ask("first", "hello")
        for number in range(70):
            ask(f"large{number}", "hello " + "A" * 4_000_000)
        assert len(found("sessions")["sessions"]) == 71
        (entry,) = found("journal", "large0")["exchanges"]
        assert entry["body_size"] > 4_000_000
        assert len(entry["body"]) < 10_000
        assert "[cut: 4000006 characters, sha256 " in entry["body"]
        (small,) = found("journal", "first")["exchanges"]
        assert "body_size" not in small
        assert found("verify", "large0")["good"]
