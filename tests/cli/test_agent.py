"""`run --agent`, `record --agent` and `agent`: a program that stands for an agent is led."""

import json
import signal
from functools import partial

import pytest
from click.testing import CliRunner

from mockllm import ServerOptions, ServerThread, loads
from mockllm.cli import main
from tests.conformance.agents.stand_ins import ASKS, WAITS, write_stand_in

START = ["--dangerously-skip-permissions", "--print"]


@pytest.fixture
def path(tmp_path):
    """Makes a folder with a `claude` that runs a script; what PATH is then."""
    return partial(write_stand_in, tmp_path)


@pytest.mark.slow
def test_run(program, folder, path):
    """The prompt comes last, after options of the agent's own; the verdict is that of `run`."""
    words = ("run", folder, "--agent", "claude", "--", "--model", "m", "hello")
    theirs = {"CLAUDE_CONFIG_DIR": "/theirs", "ANTHROPIC_API_KEY": "theirs"}
    code, output, errors = program(*words, PATH=path(ASKS), **theirs).end()
    assert (code, errors) == (0, "mockllm: 1 request: 1 played\n")
    arguments = [*START, "--model", "m", "hello"]
    assert json.loads(output) == [arguments, "Hello there", True, "mock-key", None]


@pytest.mark.slow
def test_record(program, folder, path, tmp_path):
    """The user's key reaches the agent, and the service; the settings of the user do not."""
    theirs = {"CLAUDE_CONFIG_DIR": "/theirs", "ANTHROPIC_API_KEY": "sk-theirs"}
    with ServerThread(loads((folder / "hello.yaml").read_text()), ServerOptions()) as service:
        options = ("--upstream", service.url, "-o", tmp_path / "recorded")
        words = ("record", *options, "--agent", "claude", "--", "hello")
        code, output, errors = program(*words, PATH=path(ASKS), **theirs).end()
        assert len(service.exchanges("default")) == 1
    assert code == 0, errors
    # The agent ends no line, so one of the recorder's may follow on its own.
    said, _ = json.JSONDecoder().raw_decode(output, output.index("[["))
    assert said[1:] == ["Hello there", True, "sk-theirs", None]
    assert "--agent claude -- CMD" in output + errors


@pytest.mark.slow
def test_a_server_that_runs_already(program, folder, path):
    """`agent` leads it to the URL of a session, with `--` after its name or without."""
    scenario = (folder / "hello.yaml").read_text()
    found = path(ASKS)
    with ServerThread(loads(scenario), ServerOptions()) as server:
        for words in (("claude", "hello"), ("claude", "--", "hello")):
            url = f"{server.url}/s/mine"
            code, output, errors = program("agent", "--url", url, *words, PATH=found).end()
            assert (code, errors) == (0, "")
            assert json.loads(output)[0] == [*START, "hello"]
        assert len(server.exchanges("mine")) == 2


@pytest.mark.slow
def test_a_timeout(program, folder, path):
    """It is an exit code of its own, and the requests so far are judged all the same."""
    words = ("run", folder, "--agent", "claude", "--timeout", "1s", "--", "hello")
    code, _, errors = program(*words, PATH=path(WAITS)).end()
    assert code == 124
    first, second, *_ = errors.splitlines()
    assert first == (
        "mockllm: claude was ended after 1 s, with all that it had started; a longer timeout gives "
        "it more time"
    )
    assert second.startswith("mockllm: no request came")


@pytest.mark.slow
def test_signals_reach_the_agent(program, folder, path):
    """Though it is in a group of its own."""
    running = program("run", folder, "--agent", "claude", "--", "hello", PATH=path(WAITS))
    running.line_with("waits")
    running.signal(signal.SIGTERM)
    assert running.end()[0] == 5


@pytest.mark.slow
def test_an_agent_that_was_started_by_hand(program, folder, tmp_path):
    """Codex reads no base URL from the environment: the hint says what leads it."""
    found = write_stand_in(tmp_path, "#!/bin/sh\n", "codex")
    code, _, errors = program("run", folder, "--", "codex", "exec", "hello", PATH=found).end()
    assert code == 1
    assert "  --agent codex leads it here" in errors
    assert '-c openai_base_url="\\"$OPENAI_BASE_URL\\""' in errors


@pytest.mark.slow
def test_a_program_that_is_missing(program, folder, tmp_path):
    """The exit code is that of a shell."""
    code, _, errors = program("run", folder, "--agent", "claude", "--", "x", PATH=tmp_path).end()
    assert code == 127
    assert "npm install @anthropic-ai/claude-code@" in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--agent", "cloude", "--", "x"], "there is no agent 'cloude'; did you mean"),
        (["agent", "cloude", "x"], "there is no agent 'cloude'; did you mean"),
        (["agent", "claude"], "Missing argument"),
        (["record", "--upstream", "http://a", "-o", "b", "--agent", "codex"], "needs a prompt"),
        (["run", "--agent", "codex", "--timeout", "soon", "--", "x"], "'soon' must be a duration"),
    ],
)
def test_what_is_refused(words, message):
    """Before anything is started."""
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2
    assert message in f"{ran.output}{ran.exception}"
