"""`mockllm serve --workers`: several processes on one port are one server."""

import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.cli.conftest import GIVE_UP, chat

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

FLAKY = """\
scenario: flaky
match: {user: flaky}
turns:
  - attempts: [{http: 429}, {http: 503}]
    reply: {text: at last}
"""
SLOW = """\
scenario: slow
match: {user: slow}
turns:
  - reply: {text: one two three, split: words, every: 60s}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with two scenarios."""
    (tmp_path / "flaky.yaml").write_text(FLAKY)
    (tmp_path / "slow.yaml").write_text(SLOW)
    return tmp_path


def workers_of(served):
    """The process ids of the workers."""
    pid = served.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in _command(child)]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def running(pid):
    """Whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def listen(served, count):
    """Waits until so many workers listen."""
    port = f":{int(served.url.rpartition(':')[2]):04X} "
    lines = Path("/proc/net/tcp").read_text
    until(
        lambda: (
            sum(
                port in splitline[:24] and " 0A " in splitline for splitline in lines().splitlines()
            )
            == count
        )
    )


def until(condition):
    """Waits until something holds."""
    end = time.monotonic() + GIVE_UP
    while not condition():
        assert time.monotonic() < end
        os.sched_yield()


def get(url, path):
    """The JSON body of a control route."""
    with urlopen(url + path, timeout=GIVE_UP) as answer:
        return json.load(answer)


def test_one_server(program, folder):
    """Attempts, journal and verdict are those of one server; the first lines come once."""
    served = program("serve", folder, "--port", "0", "--workers", "3").listening()
    served.line_with("/agui")
    listen(served, 3)
    answers = [chat(served.url, "flaky") for _ in range(9)]
    assert [status for status, _ in answers] == [429, 503, *[200] * 7], answers
    journal = get(served.url, "/_mockllm/journal")
    assert [entry["status"] for entry in journal["exchanges"]] == [429, 503, *[200] * 7]
    assert len({entry["connection"] for entry in journal["exchanges"]}) == 9
    assert get(served.url, "/_mockllm/verify")["verdict"] == "good"
    served.signal()
    code, rest, errors = served.end()
    assert (code, errors) == (0, "")
    assert [rest.count(f" try {number}") for number in range(1, 10)] == [0, *[1] * 8]
    assert rest.count("stopping") == 1
    assert "listening" not in rest


def test_one_quota(program, folder):
    """All workers together let through what it has."""
    quota = ("--quota", "requests=7 per=1440m", "--fallback", "auto")
    served = program("serve", folder, "--port", "0", "--workers", "2", *quota).listening()
    listen(served, 2)
    answers = [chat(served.url, "anything else")[0] for _ in range(20)]
    assert sorted(answers) == [200] * 7 + [429] * 13


def test_a_worker_that_is_killed(program, folder):
    """It is started again; what it had written is there, and a verdict that lost nothing stands."""
    served = program("serve", folder, "--port", "0", "--workers", "2").listening()
    listen(served, 2)
    assert [chat(served.url, "flaky")[0] for _ in range(3)] == [429, 503, 200]
    before = get(served.url, "/_mockllm/verify")
    assert before["verdict"] == "good"
    victim = workers_of(served)[0]
    os.kill(victim, signal.SIGKILL)
    line = served.line_with("ended with signal 9")
    assert f"(process {victim})" in line
    assert line.endswith("it is started again")
    listen(served, 2)
    answers = [chat(served.url, "flaky") for _ in range(3)]
    assert [status for status, _ in answers] == [200, 200, 200], answers
    assert len(get(served.url, "/_mockllm/journal")["exchanges"]) == 6
    after = get(served.url, "/_mockllm/verify")
    assert (after["verdict"], after["gaps"]) == ("good", [])  # nothing was lost


def test_workers_end_with_their_supervisor(program, folder):
    """Nothing is left on the port when the first process is killed."""
    served = program("serve", folder, "--port", "0", "--workers", "2", "--grace", "0").listening()
    listen(served, 2)
    pids = workers_of(served)
    served.line_with("/agui")
    served.signal(signal.SIGKILL)
    until(lambda: not any(map(running, pids)))


def test_a_second_signal_ends_open_streams(program, folder):
    """The first one waits for a stream; the second ends all processes at once."""
    served = program("serve", folder, "--port", "0", "--workers", "2", "--grace", "600").listening()
    listen(served, 2)
    pids = workers_of(served)
    where = urlsplit(served.url)
    connection = HTTPConnection(where.hostname, where.port, timeout=GIVE_UP)
    body = '{"model": "m", "stream": true, "messages": [{"role": "user", "content": "slow"}]}'
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.read1(10)
    served.signal()
    served.line_with("stopping")
    served.signal()
    code, _, errors = served.end()
    assert code != 0
    assert "Traceback" not in errors
    until(lambda: not any(map(running, pids)))
    connection.close()


def test_what_is_wrong_is_said_once(program, folder):
    """A broken scenario, and a port that another server has, with or without workers."""
    served = program("serve", folder, "--port", "0", "--workers", "2").listening()
    port = served.url.rpartition(":")[2]
    for count in ("1", "2"):
        other = program("serve", folder, "--port", port, "--workers", count)
        code, _, errors = other.end()
        assert code == 2
        assert errors.count("in use") == 1
    (folder / "broken.yaml").write_text("scenario: [")
    broken = program("serve", folder, "--port", "0", "--workers", "3")
    code, output, errors = broken.end()
    assert code == 2, (output, errors)
    assert errors.count("broken.yaml") == 1


def test_an_option_that_is_wrong(program, folder):
    """It is told once, as one process tells it."""
    wrong = ("serve", folder, "--port", "0", "--allow-origin", "*")
    results = [program(*wrong, "--workers", count).end() for count in ("1", "2")]
    assert results[0] == results[1]
    assert results[1][2].startswith("mockllm: --allow-origin: '*' is not allowed")


def test_a_worker_that_cannot_be_started(folder):
    """What the system refuses is told as it is; the address was not the reason."""
    serve = [sys.executable, "-m", "mockllm", "serve", str(folder), "--port", "0", "--workers", "2"]
    limited = ["sh", "-c", 'ulimit -n 8; exec "$@"', "sh", *serve]  # too few for the worker's pipes
    done = subprocess.run(limited, capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.returncode != 0
    assert "Too many open files" in done.stderr
    assert "cannot listen" not in done.stderr


def test_what_cannot_be_combined(mockllm, program, folder):
    """Recordings are written by one process; a store that does not exist is an error."""
    recording = ("--record", "all", "--upstream", "http://127.0.0.1:1")
    for option in (("--workers", "2"), ("--state", "redis://127.0.0.1:1")):
        result = mockllm("serve", folder, *recording, *option)
        assert result.exit_code == 2
        assert "leave out --workers and --state" in result.output
    code, _, errors = program("serve", folder, "--port", "0", "--state", "mysql://x").end()
    assert code == 2
    assert "there is no such store; use redis://" in errors


def test_reload_is_seen_by_all(program, folder):
    """The log has it once, and each worker serves the new scenario."""
    served = program("serve", folder, "--port", "0", "--workers", "2", "--reload").listening()
    listen(served, 2)
    (folder / "new.yaml").write_text(FLAKY.replace("flaky", "fresh"))
    served.line_with("reloaded")
    until(lambda: all(chat(served.url, "fresh")[0] != 404 for _ in range(8)))


def test_connections_are_spread(program, folder):
    """Both workers answer."""
    served = program("serve", folder, "--port", "0", "--workers", "2").listening()
    listen(served, 2)
    connections = []
    where = urlsplit(served.url)
    before = {pid: _sockets(pid) for pid in workers_of(served)}
    for _ in range(64):
        connection = HTTPConnection(where.hostname, where.port, timeout=GIVE_UP)
        connection.request("GET", "/_mockllm/health")
        connection.getresponse().read()
        connections.append(connection)
    more = {pid: _sockets(pid) - before[pid] for pid in before}
    assert sum(more.values()) >= 64
    assert all(count > 8 for count in more.values()), more
    for connection in connections:
        connection.close()


def _sockets(pid):
    """How many sockets a process has."""
    found = 0
    for name in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += str(name.readlink()).startswith("socket:")
        except OSError:
            continue
    return found
