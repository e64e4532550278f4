"""`mockllm run`: a command with a server beside it, and the verdict on its requests."""

import signal
import sys

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.cli.run import judge
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.loading import loads
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.sessions.shortened_bodies import MAX_BODY
from mockllm.serve.ui.explanation import findings_json
from tests.checking.conversations.bad_clients import (
    ENDLESS,
    REPORT,
    TWO,
    Conversation,
    a_call_made_up,
    loses_its_tools,
    never_stops,
    other_arguments,
)
from tests.cli.conftest import HELLO
from tests.entries import amend, journal_entry

SENDS_EACH = """
import os, sys, urllib.request, urllib.error
for text in sys.argv[1:]:
    body = b'{"model": "gpt", "messages": [{"role": "user", "content": "%b"}]}' % text.encode()
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
def run_requests(program, folder):
    """Runs a command that sends each text to the server as a request."""

    def run(*texts, options=(), command=SENDS_EACH):
        script = [sys.executable, "-c", command, *texts]
        return program("run", "--scenarios", folder, *options, "--", *script)

    return run


@pytest.mark.slow
def test_all_was_played(run_requests):
    """A command whose requests are all played keeps its exit code 0."""
    code, printed, errors = run_requests("hello", "hello").end()
    assert (code, printed, errors) == (0, "", "mockllm: 2 requests: 2 played\n")


@pytest.mark.slow
def test_scenarios_before_the_command(program, folder, tmp_path):
    """They are paths of scenarios, and options may follow them; those of a file are left out."""
    config = tmp_path / "mockllm.toml"
    config.write_text(f"[run]\nscenarios = ['{config}']\n")
    script = (sys.executable, "-c", SENDS_EACH, "hello")
    for options in ((), ("--speed", "0")):
        words = ("--config", config, "run", folder, *options, "--", *script)
        assert program(*words).end() == (0, "", "mockllm: 1 request: 1 played\n")


@pytest.mark.slow
def test_an_unmatched_request(run_requests):
    """An unmatched request makes the exit code 1, though the command succeeds."""
    code, _, errors = run_requests("hello", "goodbye").end()
    assert code == 1
    first, second, *_ = errors.splitlines()
    assert first == "mockllm: 2 requests: 1 played, 1 unmatched"
    assert second.startswith("  request 2 matches nothing: No scenario answers this request")
    assert second.endswith(" (POST /v1/chat/completions)")


@pytest.mark.slow
def test_a_turn_that_was_not_played(run_requests, folder):
    """A scenario that was begun must be played to its end."""
    (folder / "hello.yaml").write_text(TWO_TURNS)
    code, _, errors = run_requests("hello").end()
    assert code == 1
    assert "  turn 2 of 2 of two was not played\n" in errors


@pytest.mark.slow
def test_the_exit_code_of_the_command_has_precedence(run_requests):
    """A failing command keeps its exit code, whatever the verdict; a signal is 128 plus its
    number."""
    failing = run_requests("goodbye", command=SENDS_EACH + "sys.exit(7)")
    killed = run_requests(command="import os; os.kill(os.getpid(), 9)")
    assert failing.end()[0] == 7
    code, _, errors = killed.end()
    assert code == 137
    assert errors.startswith("mockllm: no request came; does the client read its base URL")


@pytest.mark.slow
def test_options_reach_the_server(run_requests):
    """`--fallback auto` answers what no scenario answers."""
    for value in ("auto", "auto(tokens=lognormal(200, p99=1500))"):
        code, _, errors = run_requests("goodbye", options=["--fallback", value]).end()
        assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("on", "'on' must be auto, or auto(tokens=LENGTH)"),
        ("auto(tokens=)", "'auto(tokens=)' must be auto, or auto(tokens=LENGTH)"),
        ("auto(tokens=gamma(2))", "'gamma(2)' is no distribution; there are constant(VALUE)"),
        ("auto(tokens=100001)", "'100001' must be a number of tokens from 0 to 100000"),
    ],
)
def test_a_fallback_that_is_none(value, message):
    """It is an error of the command, which says what there is."""
    ran = CliRunner().invoke(main, ["run", "--fallback", value, "--", "true"])
    assert ran.exit_code == 2
    assert message in " ".join(ran.output.replace("\n", " ").split())


@pytest.mark.slow
def test_what_a_run_ignores(run_requests, folder):
    """`--match-ignore` counts for every scenario; what is none of its kinds is an error."""
    text = "match: {user: {equals: 'at 2026-01-01T10:00'}}"
    (folder / "hello.yaml").write_text(f"scenario: a\n{text}\nturns: [{{reply: {{text: hi}}}}]\n")
    options = ["--match-ignore", "timestamp", "--match-ignore", "/!+/"]
    code, _, errors = run_requests("at 2026-02-02T11:11", options=options).end()
    assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")
    assert run_requests("at 2026-02-02T11:11").end()[0] == 1
    code, _, errors = run_requests("x", options=["--match-ignore", "uuids"]).end()
    assert code == 2
    assert "'uuids' must be uuid, timestamp, date" in errors
    assert "did you mean 'uuid'?" in errors


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(run_requests, number):
    """The command receives the signal, and the verdict is still printed."""
    script = f"""
import signal, sys
signal.signal({int(number)}, lambda number, frame: sys.exit(5))
print("ready", flush=True)
while True: signal.pause()
"""
    running = run_requests(command=script)
    assert running.line() == "ready"
    running.signal(number)
    code, _, errors = running.end()
    assert code == 5
    assert errors.startswith("mockllm: no request came")


def test_a_run_without_a_request():
    """The verdict on nothing is bad unless that is allowed."""
    nothing = judge([], [], {})
    assert not nothing.good
    assert nothing.lines[0].startswith("mockllm: no request came; does the client read its base ")
    assert nothing.lines[1:] == ("  --allow-no-requests accepts it",)
    allowed = judge([], [], {}, allow_no_requests=True)
    assert (allowed.good, allowed.lines) == (True, nothing.lines[:1])


@pytest.mark.slow
def test_the_environment_of_the_command(program):
    """The command has the server's variables, bypasses the proxy, and keeps its other variables."""
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


def test_unplayed_turns_are_reported_for_each_session():
    """Unplayed turns are reported for each session that began their scenario."""
    (scenario,) = loads(TWO_TURNS)
    sessions = [Session("default"), Session("other")]
    for session in sessions:
        session.record(journal_entry("POST", outcome="played"))
        session.note_played(scenario.name, 0)
    sessions[0].note_played(scenario.name, 1)
    verdict = judge(sessions[0].journal, sessions, {"two": scenario})
    assert not verdict.good
    assert verdict.lines[1:] == ("  turn 2 of 2 of two was not played (session other)",)


def test_a_mistake_of_mockllm_is_never_good():
    """A request on which mockllm failed is bad under all rules, and the line says why."""
    session = Session("default")
    failed = journal_entry(
        "POST", "/v1/responses", {}, b"", outcome="failed", problems=("KeyError",)
    )
    session.record(failed)
    verdict = judge([failed], [session], {}, leave_out=frozenset(), allow_unplayed=True)
    assert not verdict.good
    assert verdict.lines == (
        "mockllm: 1 request: 1 that mockllm failed on",
        "  request 1 could not be answered: KeyError (POST /v1/responses)",
    )


def test_a_long_list_is_cut_short():
    """Of many bad requests the first twenty are printed, with the number of the rest."""
    bad = [
        journal_entry("POST", "/v1/responses", {}, b"", outcome="invalid", problems=(f"why {n}",))
        for n in range(25)
    ]
    lines = judge(bad, [], {}).lines
    assert lines[0] == "mockllm: 25 requests: 25 refused"
    assert lines[-1] == "  ... and 5 more"
    shown = [f"  request 0 was refused: why {n} (POST /v1/responses)" for n in range(20)]
    assert lines[1:-1] == tuple(shown)


@pytest.mark.slow
def test_an_unknown_path_is_one_line(program, folder):
    """Each request for a path that the server does not know is one line."""
    command = """
import os, urllib.request, urllib.error
for path in ("/nothing", "/embeddings"):
    try:
        urllib.request.urlopen(os.environ["OPENAI_BASE_URL"] + path)
    except urllib.error.HTTPError as error:
        error.close()
"""
    running = program("run", "--scenarios", folder, "--", sys.executable, "-c", command)
    code, _, errors = running.end()
    assert code == 1
    summary, *lines = errors.splitlines()
    assert summary == "mockllm: 2 requests: 2 for an unknown route"
    assert [line.partition(": mockllm knows no route ")[0] for line in lines] == [
        "  request 1 matches nothing",
        "  request 2 matches nothing",
    ]
    assert [line.rpartition(" (")[2] for line in lines] == [
        "GET /v1/nothing)",
        "GET /v1/embeddings)",
    ]


@pytest.mark.slow
def test_an_answer_that_is_requested_twice(run_requests):
    """A second request for an answer is a violation where `--require` says so, and else none."""
    code, _, errors = run_requests("hello", "hello", options=["--require", "extra-request"]).end()
    assert code == 1
    assert "  extra-request, request 2: turn 1 of scenario 'hello'" in errors
    options = ["--leave-out", "extra-request"]
    assert run_requests("hello", "hello", options=options).end()[0] == 0


@pytest.mark.slow
def test_unplayed_turns_may_be_allowed(run_requests, folder):
    """With `--allow-unplayed` a scenario need not be played to its end."""
    (folder / "hello.yaml").write_text(TWO_TURNS)
    code, _, errors = run_requests("hello", options=["--allow-unplayed"]).end()
    assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")


@pytest.mark.slow
def test_a_wrong_name_to_leave_out(run_requests):
    """An unknown rule is an error before the command runs; it suggests the nearest name."""
    code, printed, errors = run_requests(
        options=["--leave-out", "multihop"], command="print('it runs')"
    ).end()
    assert (code, printed) == (2, "")
    assert "--leave-out: there is no conversation invariant 'multihop'; did you mean" in errors


def test_the_depth_of_a_verdict():
    """`depth` bounds the requests in a row of a client that never stops."""
    conversation = Conversation(ENDLESS, "chat")
    never_stops(conversation)
    given = (conversation.session.journal, [conversation.session])
    scenarios = conversation.player.served.by_name
    assert judge(*given, scenarios, depth=7).good
    verdict = judge(*given, scenarios, depth=4)
    assert not verdict.good
    assert "depth-bounded, request 5" in verdict.lines[1]


def test_turns_in_the_first_history_are_not_missed():
    """The client had them from elsewhere; later turns must be played."""
    (scenario,) = loads(TWO_TURNS.replace("done}", "done}\n  - reply: {text: end}"))
    session = Session("default")
    session.record(journal_entry("POST", outcome="played"))
    session.note_played(scenario.name, 1)
    verdict = judge(session.journal, [session], {"two": scenario})
    assert verdict.lines[1:] == ("  turn 3 of 3 of two was not played",)


def test_a_session_that_cannot_be_judged_is_reported():
    """The verdict is unknown, and not good, where a session was evicted, or has too many requests,
    or one that is too large."""
    back, full, large = (
        Session("back", evicted=True),
        Session("full", 1, max_dropped=1),
        Session("l"),
    )
    for _ in range(4):
        full.record(journal_entry("POST", "/v1/responses", {}, b"{}", outcome="played"))
    image = journal_entry("POST", "/v1/responses", {}, b"[" + b"1," * MAX_BODY, target=NO_TARGET)
    amend(image, outcome="played")
    large.record(image)
    image.settle()
    verdict = judge([image], [back, full, large], {}, evicted=["gone"])
    assert not verdict.good
    assert verdict.lines[1:] == (
        "  verdict unknown: it was dropped once, as there were too many; its earlier requests are "
        "not judged (session back)",
        "  verdict unknown: its first 2 requests exceeded its memory; not judged (session full)",
        "  verdict unknown: too large to be kept and judged: request 1 (session l)",
        "  verdict unknown: it was dropped, as there were too many (session gone)",
    )


def test_the_summary_says_who_refused():
    """An error by a quota is not the scenario's."""
    causes = ("scenario", "quota", "quota", "state store")
    errors = [journal_entry("POST", outcome="error", status=429, cause=cause) for cause in causes]
    assert judge(errors, [], {}).lines == (
        "mockllm: 4 requests: 1 answered with the error that the scenario asks for, 2 refused by "
        "--quota, 1 refused, as the state store was away",
    )


def test_http_errors_of_scenarios_are_no_failure():
    """An HTTP error of a scenario is no failure."""
    error = journal_entry("POST", "/v1/responses", {}, b"", outcome="error", status=429)
    (scenario,) = loads(HELLO)
    assert judge([error], [], {"hello": scenario}).good


@pytest.mark.slow
def test_a_violation_fails_the_command(program, folder):
    """A command that breaks an invariant fails, though all its requests are played."""
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
    assert second.startswith("  history-faithful, request 2: call 'call_1' was streamed")


def test_violations_are_reported_for_each_session():
    """A violation has its invariant, its request, and its session unless it is the default."""
    lines = []
    for name in ("default", "other"):
        conversation = Conversation(TWO, "chat")
        conversation.session.name = name
        other_arguments(conversation)
        verdict = judge(
            conversation.session.journal, [conversation.session], conversation.player.served.by_name
        )
        assert not verdict.good
        lines += verdict.lines[1:]
    one, other = lines
    assert one.startswith("  history-faithful, request 2: call 'call_b'")
    assert other == f"{one} (session other)"


def test_a_long_list_of_violations_is_cut_short():
    """Of many violations the first twenty are printed, with the number of the rest."""
    conversations = [Conversation(TWO, "chat", strict=False) for _ in range(25)]
    for conversation in conversations:
        a_call_made_up(conversation)
    scenarios = conversations[0].player.served.by_name
    lines = judge([], [conversation.session for conversation in conversations], scenarios).lines
    assert sum(line.startswith("  history-faithful, request 2: ") for line in lines) == 20
    assert "  ... and 5 more" in lines


def test_remarks_are_shown_and_are_not_bad():
    """What a request lost may be meant so; with `--require` it counts."""
    conversation = Conversation(REPORT, "chat")
    loses_its_tools(conversation)
    given = (list(conversation.session.journal), [conversation.session])
    scenarios = conversation.player.served.by_name
    verdict = judge(*given, scenarios)
    assert verdict.good
    assert any(line.startswith("  remark: tools-kept, request 2") for line in verdict.lines)
    assert not judge(*given, scenarios, require=frozenset({"tools-kept"})).good
    findings, _ = findings_json(conversation.session, scenarios, 2)
    assert [finding["rule"] for finding in findings] == ["tools-kept (a remark)"]
