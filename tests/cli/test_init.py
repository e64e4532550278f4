"""`mockllm init`: the first scenario of a project."""

import re
import shlex

import pytest

from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cli.conftest import post


def test_the_scenario_loads(mockllm, tmp_path):
    """The file is a commented scenario with a tool and two turns, and loads."""
    folder = tmp_path / "new" / "scenarios"
    result = mockllm("init", folder)
    assert result.exit_code == 0
    (file,) = folder.iterdir()
    (scenario,) = load([folder])
    assert (len(scenario.tools), len(scenario.turns)) == (1, 2)
    assert file.read_text().count("#") > 10
    assert f"wrote {file}" in result.stdout
    assert f"mockllm serve {folder}" in result.stdout


def test_nothing_is_overwritten(mockllm, tmp_path):
    """A file that exists is an error, and is not changed."""
    file = tmp_path / "weather.yaml"
    file.write_text("mine")
    result = mockllm("init", tmp_path)
    assert result.exit_code == 2
    assert f"{file} is there already" in result.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_created(mockllm, tmp_path):
    """A folder that cannot be created is an error."""
    (tmp_path / "file").write_text("")
    result = mockllm("init", tmp_path / "file" / "scenarios")
    assert result.exit_code == 2
    assert result.stderr.startswith("mockllm: ")
    assert "Not a directory" in result.stderr


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_scenario_can_be_printed(mockllm, tmp_path, api):
    """`mockllm show` prints both turns of the scenario."""
    mockllm("init", tmp_path)
    for turn in (1, 2):
        result = mockllm("show", "weather", "--scenarios", tmp_path, "--api", api, "--turn", turn)
        assert result.exit_code == 0, result.stderr


def test_the_printed_request_is_answered(mockllm, tmp_path):
    """The request of the printed curl line is answered with the scenario."""
    printed = mockllm("init", tmp_path).stdout
    found = re.search(r"curl -N http://127\.0\.0\.1:8080(\S+) .*\n\s+-d (.*)\n", printed)
    assert found
    (body,) = shlex.split(found[2])
    with (
        ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server,
        post(server.url, found[1], body.encode()) as response,
    ):
        assert response.status == 200
        assert b"get_weather" in response.read()
