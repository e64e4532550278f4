"""The table of coding agents, and the HOME, the variables and the words that each gets."""

import json
import os
import select
import tomllib
from contextlib import suppress

import pytest

from mockllm.checking.rules import table
from mockllm.cli.options.parameters import AGENT_NAMES
from mockllm.conformance.agents.launch import check_agent, prepare, run_agent
from mockllm.core.errors import NotStartedError, UsageError
from tests.conformance.agents.stand_ins import write_stand_in
from tests.tracked_files import ROOT

AGENTS = table("agents.yaml", "mockllm.conformance.agents")
LED = {
    "MOCKLLM_URL": "http://127.0.0.1:1/s/mine",
    "OPENAI_API_KEY": "mock-key",
    "GEMINI_API_KEY": "mock-key",
    "GOOGLE_API_KEY": "mock-key",
}


@pytest.fixture
def stand_in(tmp_path):
    """Writes a program that stands for an agent; the variables with which it is found."""

    def write(name, script):
        folder = write_stand_in(tmp_path, f"#!/bin/sh\n{script}\n", name)
        return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/home/user"}

    return write


def test_the_help_names_the_agents_of_the_table():
    """The option's help is no second list."""
    assert "|".join(AGENTS) == AGENT_NAMES
    with pytest.raises(UsageError, match="there is no agent 'cloude'; did you mean 'claude'"):
        check_agent("cloude")


def test_the_versions_are_those_that_are_tested():
    """What a message tells to install is what `make agents` installs."""
    tested = json.loads((ROOT / "tests/coding_agents/package.json").read_text())["dependencies"]
    packages = [agent["package"].rpartition("@") for agent in AGENTS.values()]
    assert {name: version for name, _, version in packages}.items() <= tested.items()


def test_the_page_has_the_table():
    """Names, programs and commands are those that are started."""
    rows = (
        f"| `{name}` | {agent['title']} | `{' '.join(agent['words'])}` |"
        for name, agent in AGENTS.items()
    )
    assert "\n".join(rows) in (ROOT / "docs/cli-serving.md").read_text()


@pytest.mark.parametrize("name", AGENTS)
def test_files_of_its_home(name, tmp_path, stand_in):
    """They can be read, and lead to the server, with the session in the URL."""
    home = tmp_path / "home"
    words = AGENTS[name]["words"]
    command = prepare(name, ["the prompt"], home, LED, stand_in(words[0], ""))
    assert command.words == (str(tmp_path / "bin" / words[0]), *words[1:], "the prompt")
    assert command.environment["HOME"] == str(home)
    texts = {path: path.read_text() for path in home.rglob("*") if path.is_file()}
    assert texts
    for path, text in texts.items():
        (tomllib if path.suffix == ".toml" else json).loads(text)
        assert "{url}" not in text
        assert "mock" not in text or f"{LED['MOCKLLM_URL']}/v1" in text


def test_settings_of_the_user_stay_out(tmp_path, stand_in):
    """An agent that runs beside the user's own one reads neither its settings nor its key."""
    theirs = {
        "CLAUDECODE": "1",
        "CLAUDE_CONFIG_DIR": "/home/user/.claude",
        "ANTHROPIC_AUTH_TOKEN": "a real one",
        "XDG_CONFIG_HOME": "/home/user/.config",
        "LANG": "de_DE.UTF-8",
    }
    environment = {**stand_in("claude", ""), **theirs}
    command = prepare("claude", ["p"], tmp_path / "home", LED, environment)
    assert {name for name in theirs if name in command.environment} == {"LANG"}
    assert not [value for value in command.environment.values() if value == "a real one"]


@pytest.mark.parametrize(
    ("led", "key"),
    [
        (LED, "mock-key"),
        ({"MOCKLLM_URL": "http://127.0.0.1:1", "GOOGLE_API_KEY": "theirs"}, "theirs"),
        ({"MOCKLLM_URL": "http://127.0.0.1:1"}, None),
    ],
)
def test_one_variable_has_the_key(led, key, tmp_path, stand_in):
    """Gemini CLI warns where two have it, and reads the one alone."""
    command = prepare("gemini", ["p"], tmp_path / "home", led, stand_in("gemini", ""))
    assert command.environment.get("GEMINI_API_KEY") == key
    assert "GOOGLE_API_KEY" not in command.environment


def test_a_program_of_the_project_comes_first(tmp_path, stand_in, monkeypatch):
    """As `npx` looks for it; the `node` beside it is that of its scripts."""
    environment = stand_in("codex", "echo global")
    installed = tmp_path / "project" / "node_modules" / ".bin"
    installed.mkdir(parents=True)
    below = tmp_path / "project" / "src"
    below.mkdir()
    for name, text in (("codex", "#!/usr/bin/env node"), ("node", "#!/bin/sh\necho own node")):
        (installed / name).write_text(text)
        (installed / name).chmod(0o755)
    monkeypatch.chdir(below)
    command = prepare("codex", ["p"], tmp_path / "home", LED, environment)
    assert run_agent(command, None, 60).output == "own node\n"


def test_a_program_that_is_missing(tmp_path):
    """The message says what installs it, at the version that was seen."""
    with pytest.raises(NotStartedError) as caught:
        prepare("opencode", ["p"], tmp_path, LED, {"PATH": str(tmp_path)})
    assert caught.value.exit_code == 127
    assert str(caught.value).endswith(
        f"nor on PATH. Install it: npm install {AGENTS['opencode']['package']}"
    )


def test_output_and_exit_code(tmp_path, stand_in):
    """Both streams, in the folder that was named, without standard input. `PWD` is that folder:
    opencode works there."""
    environment = stand_in("claude", "cat; echo $PWD; echo wrong >&2; exit 3") | {"PWD": "/"}
    command = prepare("claude", ["p"], tmp_path / "home", LED, environment)
    ended = run_agent(command, tmp_path, 60)
    assert (ended.output, ended.errors, ended.exit_code) == (f"{tmp_path}\n", "wrong\n", 3)
    killed = prepare("claude", ["p"], tmp_path, LED, stand_in("claude", "kill -9 $$"))
    assert run_agent(killed, None, 60).exit_code == 137


def test_an_agent_that_takes_too_long(tmp_path, stand_in):
    """It is ended with what it has started, in its group and out of it, and what it said stays."""
    script = "echo begun\nsleep 3600 &\necho $!\nsetsid sleep 3600 &\necho $!\nwait"
    command = prepare("claude", ["p"], tmp_path / "home", LED, stand_in("claude", script))
    ended = run_agent(command, tmp_path, 2)
    begun, *pids = ended.output.split()
    assert (begun, ended.exit_code) == ("begun", 124)
    assert ended.errors.startswith("mockllm: claude was ended after 2 s, with all that it had")
    assert len(pids) == 2
    for pid in pids:
        with suppress(ProcessLookupError):  # it has ended, and was waited for
            handle = os.pidfd_open(int(pid))
            assert select.select([handle], [], [], 60)[0], f"process {pid} still runs"
            os.close(handle)
