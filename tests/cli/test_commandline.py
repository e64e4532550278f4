"""Help, errors and completion of all commands."""

import os
import subprocess
import sys
from io import StringIO

import pytest

import mockllm as package
from mockllm.cli.options.headings import HEADINGS
from mockllm.cli.terminal.colour import in_colour
from mockllm.core.errors import ScenarioError
from tests.cases import for_all

COMMANDS = ("demo", "init", "list", "run", "schema", "serve", "show", "validate")


def test_help_names_every_command(mockllm):
    """`mockllm --help` lists the commands, each with a line of its own."""
    result = mockllm("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.stdout


def test_without_a_command_the_help_is_printed(mockllm):
    """`mockllm` alone prints the help."""
    result = mockllm()
    assert result.exit_code == 0
    assert result.stdout == mockllm("-h").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(mockllm, command):
    """The help of every command has an example."""
    result = mockllm(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"  mockllm {command}" in result.stdout


def test_version(mockllm):
    """`--version` prints name and version."""
    assert mockllm("--version").stdout == f"mockllm, version {package.__version__}\n"


@for_all(
    ("arguments", "fragments"),
    [
        (["srve"], ["no command 'srve'; did you mean 'serve'?", "(see mockllm --help)"]),
        (["help"], ["there is no command 'help'; mockllm --help lists the commands"]),
        (["list", "faults"], ["faults stand in `mockllm docs fault-kinds`"]),
        (["list", "profile"], ["Did you mean 'profiles'?"]),
        (["serve", ".", "--watch"], ["No such option '--watch'. Did you mean '--reload'?"]),
        (["serve", ".", "--fault", "cut:at=3events"], ["cut has an unknown key 'at'; known here"]),
        (
            ["serve", ".", "--fault", "timeout"],
            ["there is no fault 'timeout'; you may mean 'stall'"],
        ),
        (["list", "quirks", "chat-index-mising"], ["did you mean 'chat-index-missing'"]),
        (["show", "weather", "--api", "chatt"], ["no API 'chatt'; did you mean 'chat'?"]),
        (["check", "--", "true"], ["Missing option '--api'", "chat, responses, anthropic"]),
        (["serve", ".", "--fault", "cutt"], ["mockllm: there is no fault 'cutt'; did you mean"]),
        (["serve", ".", "--fault-seed", "x"], ["fault-burst and --fault-seed need --fault"]),
        (["serve", ".", "--quota", "request=5"], ["--quota 'request=5': there is no 'request'"]),
        (["validate"], ["name the files or folders"]),
        (["completion", "tcsh"], ["bash", "zsh", "fish"]),
        (["list", "--jason"], ["No such option", "--json", "(see mockllm list --help)"]),
        (["list", "nowhere"], ["nowhere", "does not exist"]),
        (["serve"], ["needs files or folders", "mockllm init", "--fallback auto"]),
        (["serve", "--fallback", "auto", "--reload"], ["needs files or folders"]),
        (["serve", ".", "--speed", "nan"], ["--speed", "at least 0"]),
        (["serve", ".", "--grace", "-1"], ["--grace", "at least 0"]),
        (["serve", ".", "--max-body", "much"], ["--max-body", "16MB"]),
        (["serve", ".", "--match", "user"], ["mockllm.toml: [serve] match = NAMES"]),
        (["serve", ".", "--no-log-quotes"], ["[serve] log-quotes = true or false"]),
        (["list", "quirks", "--scenarios", "."], ["--scenarios is for `mockllm list scenarios`"]),
        (["serve", ".", "--latency", "x=1"], ["mockllm: --latency 'x=1': there is no 'x'"]),
        (["serve", ".", "--port", "65536"], ["--port", "65535"]),
        (["show", "secret-number"], ["did you mean 'secret-numbers'?"]),
        (["run"], ["Missing argument"]),
        (["run", ".", "x", "-y"], ["'.' is no command; write -- before the", "run . -- x -y"]),
        (["run", "."], ["mockllm run . -- CMD"]),
        (["run", "a.yaml", ".", "--", "x"], ["'a.yaml' does not exist"]),
        (["record", "-o", "x", ".", "--", "x"], ["writes them to --output"]),
    ],
)
def test_wrong_use_is_an_error_of_one_line(mockllm, arguments, fragments):
    """Wrong use is one line on standard error, with exit code 2."""
    result = mockllm(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("mockllm: ")
    assert result.stderr.count("\n") == 1
    for fragment in fragments:
        assert fragment in result.stderr


@for_all("command", [["serve"], ["validate"], ["run", "--scenarios"], ["list"]])
def test_a_missing_path_names_a_similar_one(mockllm, monkeypatch, tmp_path, command):
    """Of a mistyped file or folder the error names the one beside it."""
    (tmp_path / "scenarios").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    found = mockllm(*command, "scenaros", *(["--", "true"] if "run" in command else []))
    assert found.exit_code == 2
    assert "'scenaros' does not exist. Did you mean 'scenarios'?" in found.stderr


@for_all(("program", "code"), [("./no-such-command", 127), ("/", 126), ("no-such-command", 127)])
def test_a_command_that_cannot_start_has_the_exit_code_of_a_shell(mockllm, program, code):
    """127 where there is no such program, 126 where it cannot be run."""
    result = mockllm("run", "--", program)
    assert result.exit_code == code
    assert result.stderr.startswith(f"mockllm: cannot run {program!r}: ")
    assert result.stderr.count("\n") == 1


def test_the_help_cuts_no_summary(mockllm):
    """The list of commands has the whole first sentence of each."""
    listed = " ".join(mockllm("--help").stdout.partition("Begin:\n")[2].split())
    assert "..." not in listed
    assert "Print the environment variables that the official SDKs read" in listed
    assert "judge its requests." in listed


def test_the_help_has_the_commands_in_groups(mockllm):
    """`mockllm --help` lists the commands under headings, in the order of use."""
    headings = ("Begin:", "Serve and run:", "Record:", "Check:", "Look up:")
    lines = mockllm("--help").stdout.splitlines()
    assert [line for line in lines if line in headings] == [*headings]


@for_all("command", ["serve", "record"])
def test_options_of_servers_have_headings(mockllm, command):
    """Each option of a server but --help is under a heading; each name has an option."""
    text = mockllm(command, "--help").stdout
    other = text.partition("\nOther:\n")[2].splitlines()
    assert len(other) == 1
    assert "--help  Show this message" in other[0]
    assert "\nFaults:\n  --fault NAME" in text


def test_every_name_under_a_heading_is_an_option(mockllm):
    """No heading has a name that both servers lack."""
    text = mockllm("serve", "--help").stdout + mockllm("record", "--help").stdout
    assert [name for names in HEADINGS.values() for name in names if f"--{name}" not in text] == []


@for_all("command", ["list", "validate", "show", "export", "report-bug", "run", "serve", "check"])
def test_scenarios_are_named_by_one_option(mockllm, command):
    """Each command that reads scenarios has `--scenarios`, whether it takes paths or not."""
    assert "--scenarios PATH" in mockllm(command, "--help").stdout


@for_all("command", [["show"], ["export", "--to", "vcr"], ["report-bug"]])
def test_a_path_may_follow_the_name_of_a_scenario(mockllm, folder, command):
    """`show NAME PATH` is `show NAME --scenarios PATH`, and so in each command with a name."""
    name, *options = command
    by_argument = mockllm(name, "hello", folder, *options)
    assert by_argument.exit_code == 0
    by_option = mockllm(name, "hello", "--scenarios", folder, *options)
    assert by_argument.stdout == by_option.stdout


def test_paths_and_the_option_for_scenarios_add_up(mockllm, folder, shipped):
    """`list PATH --scenarios PATH` lists the scenarios of both."""
    assert "hello" in mockllm("list", "--scenarios", folder).stdout
    both = mockllm("list", folder, "--scenarios", shipped).stdout
    assert "hello" in both
    assert "secret-numbers" in both


@for_all(
    ("variables", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_variables_decide_on_colour(monkeypatch, variables, terminal, colour):
    """NO_COLOR takes colours away, FORCE_COLOR gives them; else terminals have them."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = StringIO()
    stream.isatty = lambda: terminal
    assert in_colour(stream) is colour


@pytest.mark.slow
def test_the_demo_obeys_the_variables_of_colour(program):
    """`mockllm demo` has colours without a terminal where FORCE_COLOR asks for them."""
    demo = ("demo", "--speed", "0")
    _, plain, _ = program(*demo, FORCE_COLOR="", NO_COLOR="").end()
    _, coloured, _ = program(*demo, FORCE_COLOR="1", NO_COLOR="").end()
    assert "\x1b[" not in plain
    assert "\x1b[1m" in coloured


def test_broken_scenarios_are_reported_with_locations(mockllm, tmp_path):
    """A command that needs scenarios prints every problem, then the number of problems."""
    (tmp_path / "a.yaml").write_text(
        "scenario: a\nturns: [{reply: {text: x, splt: y}}, {http: 1}]\n"
    )
    result = mockllm("list", tmp_path)
    assert result.exit_code == 2
    *problems, last = result.stderr.splitlines()
    assert all(problem.startswith(f"{tmp_path}/a.yaml:") for problem in problems)
    assert last == f"mockllm: {len(problems)} problems in the scenarios"


def test_a_caller_gets_exceptions(mockllm, tmp_path):
    """With `standalone_mode=False` a command raises the exception."""
    from mockllm.cli import main

    (tmp_path / "a.yaml").write_text("5")
    with pytest.raises(ScenarioError):
        main.main(["list", str(tmp_path)], standalone_mode=False)


@pytest.mark.slow
def test_commands_that_do_not_serve_import_no_server(folder):
    """Commands that do not serve import neither the server nor its libraries."""
    script = (
        "import sys; from mockllm.cli import main\n"
        "for arguments in ['--help'], ['schema'], ['validate', sys.argv[1]]:\n"
        "    try: main(arguments)\n"
        "    except SystemExit as end: assert not end.code\n"
        "assert not {'aiohttp', 'openai', 'uvloop'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, folder], check=True, capture_output=True)


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly():
    """`mockllm list | head -1` leaves no traceback."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "mockllm", "list"], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    assert ended.returncode != 0
    assert ended.stderr == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(mockllm, monkeypatch, shell):
    """`mockllm completion` prints the script of each shell, as click's own variable does."""
    result = mockllm("completion", shell)
    monkeypatch.setenv("_MOCKLLM_COMPLETE", f"{shell}_source")
    assert mockllm().stdout.strip() == result.stdout.strip()
    assert result.exit_code == 0
    assert f"_MOCKLLM_COMPLETE={shell}_complete" in result.stdout


def test_names_of_scenarios_are_completed(mockllm, monkeypatch):
    """`mockllm show` completes the names of scenarios."""
    fragments = {"COMP_WORDS": "mockllm show secr", "COMP_CWORD": "2"}
    for name, value in ({"_MOCKLLM_COMPLETE": "bash_complete"} | fragments).items():
        monkeypatch.setenv(name, value)
    assert mockllm().stdout == "plain,secret-numbers\n"
