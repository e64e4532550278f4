"""The blocks of docs/deployment.md for Testcontainers: they compile, and fit the image.

No Docker is needed; what the libraries themselves do is not tested here."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from tests.deployment.command_lines import parsed, program, run
from tests.deployment.dockerfile import argv, instructions
from tests.docs.pages import text_of
from tests.timeouts import GIVE_UP

BLOCKS = dict(
    re.findall(r"^```(js|java|go)\n(.*?)^```", text_of("deployment"), re.MULTILINE | re.DOTALL)
)


def test_the_blocks_fit_the_image():
    """Port, command and path are those of the image."""
    assert set(BLOCKS) == {"js", "java", "go"}
    _, port = next(one for one in instructions() if one[0] == "EXPOSE")
    assert "docker build -t mockllm ." in text_of("deployment")
    for text in BLOCKS.values():
        assert '"mockllm:latest"' in text
        assert set(re.findall(r"\b\d{4}\b", text)) == {port}
        (command,) = re.findall(r"(?:withCommand|WithCmd)\(\[?(.*?)\]?\)", text)
        words = re.findall(r'"(.*?)"', command)
        assert [word if word != "/tests" else "/scenarios" for word in words] == argv("CMD")
        assert parsed(words)["port"] == int(port)
        assert '"/tests"' in text.replace(command, "")


def test_what_they_ask_is_answered_under_a_mapped_port():
    """The path that they wait for answers 200, and a session has the address that was asked."""
    (path,) = {one for text in BLOCKS.values() for one in re.findall(r'"(/_mockllm/\w+)"', text)}
    scenario = loads("scenario: a\nturns: [{reply: {text: a}}]\n")
    mapped = {"host": "localhost:49152"}
    with (
        ServerThread(scenario, ServerOptions(host="0.0.0.0")) as thread,
        httpx.Client(base_url=thread.url, headers=mapped, trust_env=False) as client,
    ):
        assert client.get(path).status_code == 200
        made = client.post("/_mockllm/sessions", json={}).json()
        assert made["url"].startswith("http://localhost:49152/")


@pytest.mark.slow
def test_the_syntax_of_node_and_go(tmp_path: Path):
    """Node and gofmt accept their blocks; the second is formatted, too."""
    (tmp_path / "recipe.mjs").write_text(BLOCKS["js"])
    run(program("node"), "--check", tmp_path / "recipe.mjs")
    (tmp_path / "recipe_test.go").write_text(BLOCKS["go"])
    assert run(program("gofmt"), "-l", tmp_path / "recipe_test.go") == ""


@pytest.mark.slow
def test_the_syntax_of_java(tmp_path: Path):
    """The compiler misses the libraries of the block, and nothing else."""
    (tmp_path / "AgentTest.java").write_text(BLOCKS["java"])
    done = subprocess.run(
        [program("javac"), "-d", tmp_path, tmp_path / "AgentTest.java"],
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    errors = re.findall(r"error: (.*)", done.stderr)
    assert errors
    missing = re.compile(r"package \S+ does not exist|cannot find symbol")
    assert [error for error in errors if not missing.fullmatch(error)] == []
