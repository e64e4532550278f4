"""`mockllm convert-tests`: a project of pytest-recording, before and after."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
import yaml

from mockllm.play.replay.loading import load
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
    assert result.output.endswith("\nnext: pytest tests; the cassettes can be deleted then\n")
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
    """It is listed with file and line, and makes the exit code 1; the rest is converted, and what
    is only to know is listed apart."""
    (project / "tests" / "test_b.py").write_text(
        "import pytest\n\n\n@pytest.mark.vcr(match_on=['uri'])\ndef test_b():\n    pass\n"
    )
    (project / "tests" / "test_c.py").write_text(
        "import pytest\n\n\n@pytest.mark.vcr(  # why\n)\ndef test_c():\n    assert False\n"
    )
    result = mockllm("convert-tests", "tests", "--write")
    assert result.exit_code == 1
    remarks, problems = result.output.split("to know:\n")[1].split("not converted:\n")
    assert remarks.strip() == (
        "tests/test_b.py:4: pytest.mark.vcr(match_on=...) is left out: write "
        "mockllm_recorded(match=[...])"
    )
    assert [line.strip() for line in problems.splitlines()] == [
        "tests/test_c.py:4: pytest.mark.vcr with a comment in it: convert it by hand",
        "tests/test_c.py::test_c: it does not pass with VCR",
    ]
    assert result.output.startswith(
        "Not passing with VCR: 1 of 5 tests\n  tests/test_c.py::test_c: assert False\n"
        "Make them pass with VCR, or record them anew: "
    )
    assert (project / "tests" / "recorded" / "test_a" / "test_it").is_dir()


OPENED = """\
import vcr
from client import reply_to

cassettes = vcr.VCR(cassette_library_dir="tests/elsewhere")


def test_opened():
    with cassettes.use_cassette("more.yaml", allow_playback_repeats=True):
        assert reply_to("changed since") == "answer to Hello"
        assert reply_to("changed since") == "answer to Hello"
"""


@pytest.mark.slow
def test_cassettes_that_code_opens(mockllm, project):
    """The command sees what a test gets from a cassette that its code opens, anywhere: an answer
    twice, to a prompt that has changed since, and of the others nothing. The code stays."""
    (project / "tests" / "test_b.py").write_text(OPENED)
    write_cassette(project / "tests" / "elsewhere" / "more.yaml", "Hello", "never requested")
    result = mockllm("convert-tests", "tests/test_b.py", "--write", "--run")
    assert result.exit_code == 0, result.output
    assert "\n1 of 1 test that passed pass\n" in result.output
    source = (project / "tests" / "test_b.py").read_text()
    assert "@pytest.mark.mockllm_recorded\ndef test_opened" in source
    assert source.count("use_cassette") == 1
    folder = project / "tests" / "recorded" / "test_b" / "test_opened"
    assert len([name for name in files(folder) if name.endswith(".jsonl")]) == 2
    assert "never requested" not in "".join((folder / name).read_text() for name in files(folder))


REFUSED = """\
import vcr
from client import reply_to

cassettes = vcr.VCR(cassette_library_dir="tests/elsewhere")


def test_refused():
    with cassettes.use_cassette("more.yaml"):
        assert reply_to("Hello") == "answer to Hello"
        try:
            reply_to("Nobody answers this")
        except Exception:
            pass
"""


@pytest.mark.slow
def test_a_request_that_vcr_refuses(mockllm, project):
    """Where a test passes although no cassette has what it asks for, so does the converted one."""
    (project / "tests" / "test_b.py").write_text(REFUSED)
    write_cassette(project / "tests" / "elsewhere" / "more.yaml", "Hello")
    result = mockllm("convert-tests", "tests/test_b.py", "--write", "--run")
    source = (project / "tests" / "test_b.py").read_text()
    marks = "@pytest.mark.mockllm_recorded\n@pytest.mark.mockllm(unmatched=True)\ndef test_refused"
    assert marks in source
    assert result.exit_code == 0, result.output


@pytest.mark.slow
def test_what_a_filter_of_vcr_hides(mockllm, project):
    """A recording has what the test sends, not what VCR writes of it; the command says so."""
    (project / "tests" / "test_b.py").write_text(
        OPENED.replace('"tests/elsewhere"', '"tests/elsewhere", before_record_request=hide')
        .replace("\n\ncassettes", "\n\n\ndef hide(request):\n    request.body = b'{}'\n"
                 "    return request\n\n\ncassettes")
    )  # fmt: skip
    write_cassette(project / "tests" / "elsewhere" / "more.yaml", "Hello")
    result = mockllm("convert-tests", "tests/test_b.py", "--write", "--run")
    assert result.exit_code == 0, result.output
    assert "tests/test_b.py::test_opened: a filter of VCR changes its requests" in result.output


@pytest.mark.slow
def test_services_on_this_machine(mockllm, project):
    """A recording of a service on this machine answers for it."""
    (project / "client.py").write_text(
        CLIENT.replace("https://api.openai.com/v1", "http://localhost:11999/v1")
    )
    cassettes = project / "tests" / "cassettes" / "test_a"
    for file in cassettes.iterdir():
        text = file.read_text().replace("https://api.openai.com/v1", "http://localhost:11999/v1")
        file.write_text(text)
    result = mockllm("convert-tests", "tests", "--write", "--run")
    assert result.exit_code == 0, result.output
    assert "\n3 of 3 tests that passed pass\n" in result.output


@pytest.mark.slow
def test_run_names_what_does_not_pass(mockllm, project):
    """--run names each test that passed with VCR and does not now, with the reason; and apart from
    them those that did not pass before. It needs --write."""
    (project / "tests" / "test_b.py").write_text(
        "import pytest\nfrom client import reply_to\n\n\n@pytest.mark.vcr\n"
        "def test_once(request):\n    assert request.node.get_closest_marker('vcr')\n\n\n"
        "@pytest.mark.vcr\ndef test_never():\n    assert not 'red'\n"
    )
    write_cassette(project / "tests" / "cassettes" / "test_b" / "test_never.yaml", "Hello")
    result = mockllm("convert-tests", "tests", "--write", "--run")
    assert result.exit_code == 1
    assert not (project / "tests" / "recorded" / "test_b" / "test_never").exists()
    assert "\n3 of 4 tests that passed pass\n" in result.output
    assert "  tests/test_b.py::test_once: AssertionError: assert None" in result.output
    before = result.output.split("1 test did not pass before:\n")[1]
    assert before.startswith("  tests/test_b.py::test_never: AssertionError: assert not 'red'")
    assert mockllm("convert-tests", "tests", "--run").exit_code == 2


BROKEN = """\
import pytest


@pytest.fixture(autouse=True)
def vcr_is_older_than_aiohttp():
    raise AttributeError("module 'aiohttp.streams' has no attribute 'AsyncStreamReaderMixin'")
"""


@pytest.mark.slow
def test_a_vcr_that_does_not_work_here(mockllm, project):
    """Where no test passes with VCR, nothing is converted; the reason comes first, with what helps:
    aiohttp 3.14 lacks what older versions of vcrpy take from it."""
    (project / "conftest.py").write_text(BROKEN)
    before = {name: (project / name).read_bytes() for name in files(project)}
    result = mockllm("convert-tests", "tests", "--write", "--run")
    assert result.exit_code == 1
    first, reason, cure = result.output.splitlines()
    assert first == "Not passing with VCR: 3 of 3 tests"
    assert reason.startswith("  tests/test_a.py::test_it and 2 more: AttributeError: module ")
    assert cure.endswith(", which mockllm needs: pip install 'vcrpy>=8.2'")
    assert {name: (project / name).read_bytes() for name in files(project)} == before


@pytest.mark.slow
def test_an_answer_that_is_played_again(mockllm, project):
    """It is recorded as often as the test gets it, and each time is found again."""
    test = (
        "import pytest\nfrom client import reply_to\n\n\n"
        "@pytest.mark.vcr(allow_playback_repeats=True)\ndef test_it():\n"
        "    assert [reply_to('Hello') for _ in range(3)] == ['answer to Hello'] * 3\n"
    )
    (project / "tests" / "test_a.py").write_text(test)
    result = mockllm("convert-tests", "tests", "--write", "--run")
    assert result.exit_code == 0, result.output
    assert "(3 of 3 exchanges)" in result.output
    assert "NOT FOUND AGAIN" not in result.output
    assert "1 of 1 test that passed pass" in result.output


@pytest.mark.slow
def test_cassettes_elsewhere(mockllm, project):
    """`cassettes` of mockllm.toml names the folder of those that no test opens, as it is skipped;
    an existing recording stays."""
    (project / "tests" / "cassettes").rename(project / "vcr")
    (project / "tests" / "test_a.py").write_text(TESTS.replace("assert", "pytest.skip() or"))
    mine = project / "tests" / "recorded" / "test_a" / "test_it" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("scenario: mine\nturns: [{reply: {text: a}}]\n")
    (project / "mockllm.toml").write_text("[convert-tests]\ncassettes = 'vcr'\n")
    result = mockllm("convert-tests", "tests", "--write")
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
    assert "pytest cannot run the tests:" in result.stderr
    assert "does_not_exist" in result.stderr


def test_long_names(pytester):
    """A name that is too long for a file is cut as pytest-recording cuts it."""
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    name = f"test_{'x' * 260}"
    pytester.makepyfile(test_a=f"import pytest\n\n@pytest.mark.vcr\ndef {name}(): ...\n")
    reports = pytester.mkdir("reports")
    pytester.runpytest_subprocess(
        "-p", "mockllm_pytest.cassettes", "--mockllm-cassettes-of", reports
    )
    ((found,),) = [json.loads(report.read_text()) for report in reports.iterdir()]
    checksum = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    assert found["cassettes"] == [f"{name[:215]}...{checksum}"]
    assert len(f"{found['cassettes'][0]}.yaml") == 255
