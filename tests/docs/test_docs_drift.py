"""The blocks of docs/drift.md are what the command takes and prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from mockllm.cli import main
from tests.cli.test_drift import URL, answering, chunks
from tests.conformance.drift.service import exchange, live, record

PAGE = (Path(__file__).parents[2] / "docs" / "drift.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first block in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def commands() -> list[str]:
    """The command lines of the page, those of its job too."""
    job = yaml.safe_load(block("yaml"))["jobs"]["drift"]
    return [*block("sh").splitlines(), job["steps"][-1]["run"]]


@pytest.mark.parametrize("line", commands())
def test_the_commands_parse(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one that the program takes."""
    monkeypatch.chdir(tmp_path)
    program, name, *arguments = shlex.split(line)
    Path(arguments[0]).mkdir(parents=True)
    command = main.get_command(click.Context(main), name)
    assert (program, name) == ("mockllm", "drift")
    assert command is not None
    with command.make_context(name, arguments) as context:
        assert not context.args


def test_the_report_is_printed_so(tmp_path: Path) -> None:
    """Of a service that changed three fields and the order; the page leaves out two lines."""
    request = {"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    record(tmp_path / "recorded", exchange(URL, request, answering(chunks())))
    changed = chunks(lane="x", created="2026-01-01")
    for chunk in changed:
        del chunk["tier"]
    changed[2], changed[3] = changed[3], changed[2]
    with live(lambda _: answering(changed)) as (url, _):
        arguments = ["drift", str(tmp_path / "recorded"), "--upstream", url, "--yes"]
        output = CliRunner().invoke(main, arguments).output
    output = output.replace(url.removeprefix("http://"), "api.openai.com")
    versions = re.compile(r"openai [\d.]+|\d differences")
    printed = versions.sub("", output).splitlines()
    for line in block("console").splitlines():
        assert versions.sub("", line) in printed
