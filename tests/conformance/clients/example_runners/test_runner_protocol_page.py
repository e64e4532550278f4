"""docs/runner-protocol.md is true: its lines are valid, and a runner gives the answers it shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import mockllm.conformance
from mockllm.checking.cases.build import case
from mockllm.checking.resilience.cases import fault_cases
from mockllm.cli.init import runners_folder
from mockllm.conformance.clients.http_sessions import case_message
from mockllm.conformance.clients.messages import case_json, question, read_answer, read_hello
from mockllm.play.quirks.samples import SAMPLES
from tests.timeouts import GIVE_UP

PAGE = (Path(__file__).parents[4] / "docs" / "runner-protocol.md").read_text(encoding="utf-8")
SCHEMA = Path(mockllm.conformance.__file__).with_name("runner.schema.json")
BLOCKS = [
    block
    for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if block[:2] in ("> ", "< ")
]


def lines(block: str, sign: str) -> list[dict[str, object]]:
    found = [line for line in block.splitlines() if line.startswith(f"{sign} ")]
    return [json.loads(line[2:]) for line in found]


def test_there_are_conversations() -> None:
    """One for each level, one with a fault, and one of answers only."""
    assert [len(lines(block, ">")) for block in BLOCKS] == [2, 2, 2, 0, 2]
    levels = [lines(block, ">")[0]["level"] for block in BLOCKS[:3]]
    assert levels == ["bytes", "payloads", "http"]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_lines_are_valid(block: str) -> None:
    """mockllm reads what runners write on the page, and writes lines with the keys of the page."""
    sample = case(SAMPLES["sample-call"], "chat")
    for message in lines(block, ">"):
        if "mockllm" in message:
            assert message == question("chat", str(message["level"]))
        elif "feed" in message:
            assert message.keys() == {"id", *case_json(sample, "bytes")}
        else:
            urls = {"chat": str(message["base_url"])}
            with_fault = case_message(fault_cases("chat")[0], urls)
            keys = with_fault if "tries" in message else case_message(sample, urls, 30.0)
            assert message.keys() == {"id", *keys}
    for message in lines(block, "<"):
        read = read_hello if "mockllm" in message else read_answer
        assert read(message)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_schema_allows_the_lines(block: str) -> None:
    """The JSON Schema describes every line of the page."""
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for message in [*lines(block, ">"), *lines(block, "<")]:
        validator.validate(message)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS[:2])
def test_the_runner_gives_the_answers_of_the_page(block: str) -> None:
    """The Python runner, which has a place for everything, answers what the page shows."""
    sent = [line[2:] for line in block.splitlines() if line.startswith("> ")]
    done = subprocess.run(
        [sys.executable, str(runners_folder() / "python" / "runner.py")],
        input="\n".join(sent) + "\n",
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=True,
    )
    _, answer = map(json.loads, done.stdout.splitlines())
    _, shown = lines(block, "<")
    calls = [{**one} for one in answer["tool_calls"]]
    for call in calls:
        assert call.pop("raw_arguments") == call["arguments"]
    assert {**answer, "tool_calls": calls} == {**answer, **shown}
    assert shown.keys() >= {"id", "text", "finish", "tool_calls", "usage", "errors"}


@pytest.mark.slow
def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    """The first block can be typed as it is."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        command = [sys.executable, "-m", *line.split()]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=10 * GIVE_UP,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    (results,) = (tmp_path / "mockllm-results").iterdir()
    assert json.loads(results.read_text())["client"]["name"] == "example-python"
