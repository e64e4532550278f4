"""`mockllm run`."""

import signal
import sys

import pytest

from mockllm.cli.verdict import judge
from mockllm.replay.session import Exchange, Session
from mockllm.replay.loading import loads
from tests.checking.bad_clients import TWO, Talk, a_call_made_up, other_arguments
from tests.cli.conftest import HELLO

SAYS = """
import os, sys, urllib.request, urllib.error
for said in sys.argv[1:]:
    body = b'{"model": "gpt", "messages": [{"role": "user", "content": "%b"}]}' % said.encode()
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", body,
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        error.close()
"""
TWO_TURNS = """\
scenario: two
match: {user: hello}
turns:
  - reply: {tool: ask, id: call_1}
  - reply: {text: done}
"""


@pytest.fixture
def says(program, folder):
    """A command that says things to the server."""

    def run(*said, options=(), command=SAYS):
        script = [sys.executable, "-c", command, *said]
        return program("run", "--scenarios", folder, *options, "--", *script)

    return run


@pytest.mark.slow
def test_all_was_played(says):
    """A command whose requests are all played ends with its own exit code, 0."""
    code, printed, errors = says("hello", "hello").end()
    assert (code, printed, errors) == (0, "", "mockllm: 2 requests: 2 played\n")


@pytest.mark.slow
def test_an_unmatched_request(says):
    """A request that nothing answers fails a command that is content with it."""
    code, _, errors = says("hello", "goodbye").end()
    assert code == 1
    first, second, third, *_ = errors.splitlines()
    assert first == "mockllm: 2 requests: 1 played, 1 unmatched"
    assert second == "  unmatched: POST /v1/chat/completions"
    assert third.startswith("    No scenario answers this request")


@pytest.mark.slow
def test_a_turn_that_was_not_played(says, folder):
    """A scenario that was begun has to be played to its end."""
    (folder / "hello.yaml").write_text(TWO_TURNS)
    code, _, errors = says("hello").end()
    assert code == 1
    assert "  not played: turn 2 of 2 of two\n" in errors


@pytest.mark.slow
def test_the_exit_code_of_the_command_comes_first(says):
    """A command that fails keeps its exit code, whatever the verdict; a signal counts as in a
    shell."""
    failing = says("goodbye", command=SAYS + "sys.exit(7)")
    killed = says(command="import os; os.kill(os.getpid(), 9)")
    assert failing.end()[0] == 7
    code, _, errors = killed.end()
    assert code == 137
    assert errors.startswith("mockllm: no request came; does the command read its base URL")


@pytest.mark.slow
def test_options_reach_the_server(says):
    """`--fallback auto` answers what no scenario answers."""
    code, _, errors = says("goodbye", options=["--fallback", "auto"]).end()
    assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(says, number):
    """The command gets the signals; the verdict still comes."""
    script = f"""
import signal, sys
signal.signal({int(number)}, lambda number, frame: sys.exit(5))
print("ready", flush=True)
while True: signal.pause()
"""
    running = says(command=script)
    assert running.line() == "ready"
    running.signal(number)
    code, _, errors = running.end()
    assert code == 5
    assert errors.startswith("mockllm: no request came")


@pytest.mark.slow
def test_its_environment(program):
    """The command finds the server, takes no proxy to it, and keeps what else it had."""
    script = (
        "import os; print(*(os.environ[name] for name in "
        "('MOCKLLM_URL', 'OPENAI_BASE_URL', 'OPENAI_API_KEY', 'NO_PROXY', 'MINE')))"
    )
    running = program(
        "run",
        *(sys.executable, "-c", script),
        OPENAI_API_KEY="a real one",
        HTTP_PROXY="http://127.0.0.1:9",
        no_proxy="example.com",
        MINE="mine",
    )
    url, base_url, *rest = running.line().split()
    assert base_url == f"{url}/v1"
    assert rest == ["mock-key", "example.com,127.0.0.1,localhost", "mine"]


def test_the_verdict_is_of_all_sessions():
    """Turns that were not played are told for each session that began their scenario."""
    (scenario,) = loads(TWO_TURNS)
    sessions = [Session("default"), Session("other")]
    for session in sessions:
        session.note_played(scenario, 0)
    sessions[0].note_played(scenario, 1)
    verdict = judge([], sessions, {"two": scenario})
    assert not verdict.good
    assert verdict.lines[1:] == ("  not played: turn 2 of 2 of two (session other)",)


def test_a_long_list_is_cut_short():
    """Of many bad requests the first are told, and how many more there are."""
    bad = Exchange("POST", "/v1/responses", {}, b"", outcome="invalid", problems=("why",))
    lines = judge([bad] * 25, [], {}).lines
    assert lines[0] == "mockllm: 25 requests: 25 refused"
    assert lines[-1] == "  ... and 5 more"
    assert len(lines) == 2 + 2 * 20


def test_errors_that_scenarios_ask_for_are_fine():
    """An HTTP error of a scenario's own is part of the play."""
    error = Exchange("POST", "/v1/responses", {}, b"", outcome="error", status=429)
    (scenario,) = loads(HELLO)
    assert judge([error], [], {"hello": scenario}).good


@pytest.mark.slow
def test_a_client_that_breaks_a_rule_of_conversations(program, folder):
    """A command whose requests are all played fails all the same for what it gets wrong."""
    (folder / "hello.yaml").write_text(
        TWO_TURNS.replace("{tool: ask, id: call_1}", "{tool: ask, id: call_1, arguments: {a: 1}}")
    )
    command = """
import json, os, urllib.request
call = {"id": "call_1", "type": "function", "function": {"name": "ask", "arguments": "{}"}}
history = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "tool_calls": [call]},
    {"role": "tool", "tool_call_id": "call_1", "content": "yes"},
]
for size in (1, 3):
    body = json.dumps({"model": "gpt", "messages": history[:size]}).encode()
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"authorization": "Bearer x"}
    )
    urllib.request.urlopen(request).read()
"""
    running = program("run", "--scenarios", folder, "--", sys.executable, "-c", command)
    code, _, errors = running.end()
    assert code == 1
    first, second = errors.splitlines()
    assert first == "mockllm: 2 requests: 2 played"
    assert second.startswith("  violated: history-faithful, request 2: call 'call_1' was streamed")


def test_violations_are_told_for_each_session():
    """The name of the invariant, the request and, where it is not the usual one, the session."""
    lines = []
    for name in ("default", "other"):
        talk = Talk(TWO, "chat")
        talk.session.name = name
        other_arguments(talk)
        verdict = judge(talk.session.journal, [talk.session], talk.player.catalogue.by_name)
        assert not verdict.good
        lines += verdict.lines[1:]
    one, other = lines
    assert one.startswith("  violated: history-faithful, request 2: call 'call_b'")
    assert other == f"{one} (session other)"


def test_a_long_list_of_violations_is_cut_short():
    """Of many violations the first are told, and how many more there are."""
    talks = [Talk(TWO, "chat", strict=False) for _ in range(25)]
    for talk in talks:
        a_call_made_up(talk)
    scenarios = talks[0].player.catalogue.by_name
    lines = judge([], [talk.session for talk in talks], scenarios).lines
    assert sum(line.startswith("  violated: ") for line in lines) == 20
    assert "  ... and 5 more" in lines
