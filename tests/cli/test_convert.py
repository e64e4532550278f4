"""`mockllm convert-tests`: a project of pytest-recording, before and after."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
import yaml

from mockllm.replay.loading import load
from tests.inner_pytest import ADDOPTS

CLIENT = """\
import os

import httpx


def reply_to(text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
    return httpx.post(url, json=body).json()["choices"][0]["message"]["content"]
"""

TESTS = """\
import pytest
from client import reply_to


@pytest.mark.vcr  # recorded in May
def test_it():
    assert reply_to("Hello") == "answer to Hello"


@pytest.mark.vcr(filter_headers=["authorization"])
class TestMore:
    @pytest.mark.parametrize("model", ["openai:gpt-4o", "b"])
    def test_models(self, model):
        assert reply_to(model) == f"answer to {model}"


def test_other():
    pass
"""


def interaction(text):
    sent = {"model": "m", "messages": [{"role": "user", "content": text}]}
    message = {"role": "assistant", "content": f"answer to {text}"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    headers = {"content-type": ["application/json"]}
    url = "https://api.openai.com/v1/chat/completions"
    return {
        "request": {"method": "POST", "uri": url, "body": json.dumps(sent), "headers": headers},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": headers,
            "body": {"string": json.dumps({**body, "choices": [choice]})},
        },
    }


def write_cassette(path, *texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    entries = [interaction(text) for text in texts]
    path.write_text(yaml.dump({"interactions": entries, "version": 1}))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with three cassettes where pytest-recording puts them, as current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_ADDOPTS", ADDOPTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = --strict-markers\n")
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    cassettes = tmp_path / "tests" / "cassettes" / "test_a"
    write_cassette(cassettes / "test_it.yaml", "Hello")
    write_cassette(cassettes / "TestMore.test_models[openai-gpt-4o].yaml", "openai:gpt-4o")
    write_cassette(cassettes / "TestMore.test_models[b].yaml", "b")
    return tmp_path


def files(folder):
    """The files below a folder, without the caches of Python and pytest."""
    found = (str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    return sorted(name for name in found if "cache" not in name)


@pytest.mark.slow
def test_without_write_nothing_changes(mockllm, project):
    """Without --write the command prints a diff and what each cassette would become."""
    before = {name: (project / name).read_bytes() for name in files(project)}
    result = mockllm("convert-tests", "tests")
    assert result.exit_code == 0, result.output
    assert "-@pytest.mark.vcr  # recorded in May" in result.output
    assert "+@pytest.mark.mockllm_recorded  # recorded in May" in result.output
    assert (
        "tests/test_a.py::test_it: tests/cassettes/test_a/test_it.yaml -> "
        "tests/recorded/test_a/test_it (1 of 1 exchanges)"
    ) in result.output.splitlines()
    assert result.output.endswith("nothing was changed; with --write it is\n")
    assert {name: (project / name).read_bytes() for name in files(project)} == before


@pytest.mark.slow
def test_converted_tests_replay(mockllm, project):
    """With --write the marks change, and pytest finds every cassette as a recording: of classes,
    and of parameters with characters that file names cannot have. A second time nothing is left."""
    result = mockllm("convert-tests", "tests", "--write")
    assert result.exit_code == 0, result.output
    assert "converted tests/test_a.py" in result.output
    assert TESTS.count("vcr") == 2
    assert "vcr" not in (project / "tests" / "test_a.py").read_text()
    folder = project / "tests" / "recorded" / "test_a" / "test_it"
    assert files(folder) == ["test_it.1.jsonl", "test_it.yaml"]
    assert load([folder])
    command = [sys.executable, "-m", "pytest", "-q"]
    environment = {**os.environ, "OPENAI_API_KEY": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    again = mockllm("convert-tests", "tests", "--write")
    assert (again.exit_code, again.output) == (0, "")


@pytest.mark.slow
def test_what_cannot_be_converted(mockllm, project):
    """It is listed with file and line, and makes the exit code 1; the rest is converted."""
    (project / "tests" / "test_b.py").write_text(
        "import pytest\n\n\n@pytest.mark.vcr(match_on=['uri'])\ndef test_b():\n    pass\n"
    )
    write_cassette(project / "tests" / "cassettes" / "test_c.yaml", "x")
    (project / "tests" / "test_c.py").write_text(
        "import pytest\n\n\n@pytest.mark.vcr('more.yaml')\ndef test_c():\n    pass\n"
    )
    result = mockllm("convert-tests", "tests", "--write")
    assert result.exit_code == 1
    listed = [line.strip() for line in result.output.split("not converted:\n")[1].splitlines()]
    assert listed == [
        "tests/test_b.py:4: pytest.mark.vcr(match_on=...) is left out: write "
        "mockllm_recorded(match=[...])",
        "tests/test_b.py::test_b: there is no cassette 'test_b' in tests/cassettes; record the "
        "test anew",
        "tests/test_c.py::test_c: there is no cassette 'more.yaml' in tests/cassettes; record the "
        "test anew",
    ]
    assert (project / "tests" / "recorded" / "test_c" / "test_c").is_dir()


@pytest.mark.slow
def test_cassettes_elsewhere(mockllm, project):
    """--cassettes names their folder; an existing recording stays."""
    (project / "tests" / "cassettes").rename(project / "vcr")
    mine = project / "tests" / "recorded" / "test_a" / "test_it" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("scenario: mine\nturns: [{reply: {text: a}}]\n")
    result = mockllm("convert-tests", "tests", "--write", "--cassettes", "vcr")
    assert result.exit_code == 0, result.output
    assert "test_a/test_it is there already and stays as it is" in result.output
    assert files(mine.parent) == ["mine.yaml"]
    assert len(list((project / "tests" / "recorded" / "test_a").iterdir())) == 3


@pytest.mark.slow
def test_tests_that_cannot_be_collected(mockllm, project):
    """The command fails with what pytest reports, and changes nothing."""
    (project / "tests" / "test_a.py").write_text("import does_not_exist\n")
    result = mockllm("convert-tests", "tests", "--write")
    assert result.exit_code == 2
    assert "pytest cannot collect the tests:" in result.stderr
    assert "does_not_exist" in result.stderr


def test_long_names(pytester):
    """A name that is too long for a file is cut as pytest-recording cuts it."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    name = f"test_{'x' * 260}"
    pytester.makepyfile(test_a=f"import pytest\n\n@pytest.mark.vcr\ndef {name}(): ...\n")
    report = pytester.path / "tests.json"
    pytester.runpytest_inprocess(
        "--collect-only", "-p", "mockllm_pytest.cassettes", "--mockllm-cassettes-of", report
    )
    (found,) = json.loads(report.read_text())
    checksum = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    assert found["cassettes"] == [f"{name[:215]}...{checksum}"]
    assert len(f"{found['cassettes'][0]}.yaml") == 255
