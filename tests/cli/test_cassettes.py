"""`--cassettes` of `serve` and `run`: recordings of other tools are played where they are."""

import json
import sys
from urllib.request import Request, urlopen

import click
import pytest
import yaml

from mockllm.cli.options.parameters import read_scenarios
from mockllm.cli.serving.cassettes import Cassettes, ScenarioSources
from mockllm.core.errors import ScenarioError
from tests.cli.test_import import interaction
from tests.cli.test_run import SENDS_EACH


@pytest.fixture
def cassettes(tmp_path):
    """A folder with a cassette of two exchanges, one entry that is none, and another file."""
    folder = tmp_path / "cassettes"
    folder.mkdir()
    record(folder / "greet.yaml", "hello", "bye")
    (folder / "notes.md").write_text("x")
    return folder


def record(path, *texts):
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt"}
    entries = []
    for text in texts:
        message = {"role": "assistant", "content": f"You said {text}."}
        body = {**answer, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        entries.append(interaction(text, json.dumps(body), content="application/json"))
        sent = {"model": "gpt", "messages": [{"role": "user", "content": text}]}
        entries[-1]["request"]["body"] = json.dumps(sent)
    path.write_text(yaml.dump({"interactions": [*entries, {"request": {}}], "version": 1}))


@pytest.fixture
def context():
    """What a command runs in: what it made is gone at its end."""
    with click.Context(click.Command("serve")) as context:
        yield context


def test_they_are_imported_beside_nothing_of_the_users(cassettes, context, capsys):
    """Standard error has what is not played and the sum; the folder is gone with the command, and
    that of the cassettes stays as it was."""
    before = sorted(cassettes.iterdir())
    (folder,) = ScenarioSources((), Cassettes((cassettes,), ())).folders()
    assert {scenario.name for scenario in read_scenarios((folder,))} == {"greet", "greet-2"}
    assert capsys.readouterr().err == (
        f"{cassettes}/greet.yaml#3 -> skipped: it has no request with its response\n"
        "1 file of another kind was not read: 1 *.md (notes.md)\n"
        "cassettes: 3 exchanges: 2 neutral, 0 in part, 1 skipped; 2 scenarios\n"
    )
    context.close()
    assert not folder.exists()
    assert sorted(cassettes.iterdir()) == before


@pytest.mark.usefixtures("context")
def test_they_are_read_again(cassettes, tmp_path):
    """Each time as they are then, into another folder: what is played from the first one goes on.
    Where all are gone, that is a problem, and a server goes on with what it has."""
    sources = ScenarioSources((tmp_path / "scenarios",), Cassettes((cassettes,), ()))
    assert sources.watched == (tmp_path / "scenarios", cassettes)
    _, first = sources.folders()
    record(cassettes / "more.yaml", "again")
    _, second = sources.folders()
    assert [len(read_scenarios((folder,))) for folder in (first, second)] == [2, 3]
    for file in cassettes.iterdir():
        file.unlink()
    with pytest.raises(ScenarioError, match="there is no recording that can be played"):
        sources.folders()


@pytest.mark.usefixtures("context")
def test_the_lines_are_few(cassettes, capsys):
    """A suite of which hardly anything is played does not fill the screen."""
    entries = [interaction("hello"), *[{"request": {}}] * 30]
    (cassettes / "greet.yaml").write_text(yaml.dump({"interactions": entries}))
    ScenarioSources((), Cassettes((cassettes,), ())).folders()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 23
    assert lines[20] == "... and 10 more; `mockllm import` shows all"


def test_nothing_to_play(mockllm, tmp_path):
    """It is an error before anything runs."""
    result = mockllm("run", "--cassettes", tmp_path, "--", "true")
    assert result.exit_code == 2
    assert f"{tmp_path}:1:1: there is no recording that can be played" in result.stderr


def test_several_processes_do_not_read_them_again(mockllm, cassettes):
    """The option is refused together with --reload."""
    result = mockllm("serve", "--cassettes", cassettes, "--reload", "--workers", "2")
    assert result.exit_code == 2
    assert "--cassettes with --reload needs one process" in result.stderr


@pytest.mark.slow
def test_a_program_plays_them(program, cassettes, tmp_path):
    """`run` needs no scenarios, and the option may stand in `mockllm.toml`."""
    config = tmp_path / "mockllm.toml"
    config.write_text(f"[run]\ncassettes = '{cassettes}'\n")
    words = ("--config", config, "run", "--", sys.executable, "-c", SENDS_EACH, "hello", "bye")
    code, _, errors = program(*words).end()
    assert code == 0
    assert errors.splitlines()[-1] == "mockllm: 2 requests: 2 played"


@pytest.mark.slow
def test_changes_are_served(program, cassettes):
    """With --reload a server plays cassettes as they are now."""
    served = program("serve", "--cassettes", cassettes, "--port", "0", "--reload").listening()
    assert said(served.url, "hello") == "You said hello."
    record(cassettes / "more.yaml", "again")
    served.line_with("reloaded 3 scenarios")
    assert said(served.url, "again") == "You said again."


def said(url: str, text: str) -> str:
    body = json.dumps({"model": "gpt", "messages": [{"role": "user", "content": text}]}).encode()
    with urlopen(Request(f"{url}/v1/chat/completions", body)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]
