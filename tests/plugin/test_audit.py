"""`pytest --mockllm-audit`: a suite of pytest-recording is watched, and none of it is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from vcr.cassette import Cassette
from vcr.request import Request

from mockllm_pytest.vcr_watch import request_as_written
from tests.cli.test_convert import CLIENT, files, interaction
from tests.inner_pytest import ADDOPTS

pytestmark = pytest.mark.slow

TESTS = """\
import httpx
import pytest
from client import reply_to


@pytest.fixture(scope="module")
def vcr_config():
    return {"record_mode": "rewrite", "filter_post_data_parameters": ["key"]}


@pytest.mark.vcr
def test_same():
    assert reply_to("Hello") == "answer to Hello"


@pytest.mark.vcr(record_mode="rewrite")
def test_other():
    assert reply_to("Be evil.") == "answer to Be kind."


@pytest.mark.vcr
def test_route():
    assert httpx.post("https://odd.test/v1/x", json={"a": 2, "key": "b"}).status_code == 200


@pytest.mark.vcr
def test_refused():
    assert reply_to("Hello") == "answer to Hello"
    with pytest.raises(Exception):
        httpx.get("https://odd.test/unknown")


@pytest.mark.vcr
def test_failing():
    assert reply_to("Hello") == ""


@pytest.mark.skip
@pytest.mark.vcr
def test_skipped():
    pass


def test_without():
    pass
"""

UNRECORDED = """\
import pytest


@pytest.mark.vcr
def test_it():
    pass
"""


def broken(text: str) -> dict[str, Any]:
    entry = interaction(text)
    sent = json.loads(entry["request"]["body"]) | {"stream": True}
    entry["request"]["body"] = json.dumps(sent)
    entry["response"]["headers"] = {"content-type": ["text/event-stream"]}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"content": "Hal"}, "finish_reason": None}
    text = json.dumps({**chunk, "choices": [choice]})
    entry["response"]["body"]["string"] = f"data: {text}\n\n"
    return entry


def route() -> dict[str, Any]:
    entry = interaction("any")
    entry["request"] |= {"uri": "https://odd.test/v1/x", "body": '{"a": 1}'}
    return entry


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    (tmp_path / "tests" / "test_b.py").write_text(UNRECORDED)
    cassettes = tmp_path / "tests" / "cassettes" / "test_a"
    cassettes.mkdir(parents=True)
    hello = interaction("Hello")
    for name, entries in {
        "same": [hello, broken("More")],
        "other": [interaction("Be kind.")],
        "route": [route()],
        "refused": [hello],
        "failing": [hello, hello],
        "skipped": [hello],
        "gone": [hello],
    }.items():
        text = yaml.dump({"interactions": entries, "version": 1})
        (cassettes / f"test_{name}.yaml").write_text(text)
    return tmp_path


def run(suite: Path, *options: str) -> tuple[int, str]:
    """The exit code of pytest, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options],
        cwd=suite,
        env={**os.environ, "PYTEST_ADDOPTS": ADDOPTS},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


SUMMARY = """\
5 tests with cassettes (1 failed, 4 passed); 7 recordings in 5 cassettes answered 5 requests
other requests than were recorded, in 2 tests: 2
  tests/test_a.py::test_other: tests/cassettes/test_a/test_other.yaml#1 POST \
https://api.openai.com/v1/chat/completions: messages[0].content: "Be kind." → "Be evil."
  tests/test_a.py::test_route: tests/cassettes/test_a/test_route.yaml#1 POST \
https://odd.test/v1/x: body.a: 1 → 2
requests that no recording answers: 1
  tests/test_a.py::test_refused: GET https://odd.test/unknown
recordings that nobody asks for: 1
  tests/cassettes/test_a/test_same.yaml#2 POST https://api.openai.com/v1/chat/completions
cassettes that no test opens: 1
  tests/cassettes/test_a/test_gone.yaml
answers that break off: 1
  tests/cassettes/test_a/test_same.yaml#2 POST https://api.openai.com/v1/chat/completions: \
its stream has no end
"""


def test_an_audit_says_what_the_cassettes_are_worth(
    suite: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In the terminal, as JSON and as a page, also under pytest-xdist. Modes that would remove or
    record cassettes do nothing."""
    out = tmp_path_factory.mktemp("out")
    before = {name: (suite / name).read_bytes() for name in files(suite)}
    _, printed = run(suite, f"--mockllm-audit={out}", "-n1", "tests")
    assert {name: (suite / name).read_bytes() for name in files(suite)} == before
    assert SUMMARY in printed, printed
    assert "1 failed, 6 passed, 1 skipped" in printed
    summary = json.loads((out / "audit.json").read_text())["summary"]
    counts = {
        name: summary[name] for name in ("tests_changed", "unrequested", "unopened", "broken")
    }
    assert counts == dict.fromkeys(counts, 1) | {"tests_changed": 2}
    page = (out / "audit.html").read_text()
    assert "2 of 5 tests send other requests than were recorded" in page


def test_some_tests_do_not_accuse_the_others(suite: Path) -> None:
    """What follows the option is a folder of tests, and not its value; a required rule fails the
    run."""
    required = "--mockllm-require=request-unchanged"
    code, printed = run(suite, required, "--mockllm-audit", "tests", "-k", "same or other")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "cassettes that no test opens were not looked for" in printed, printed
    assert "test_gone" not in printed
    assert "2 passed" in printed


def test_a_serialiser_of_the_suite_writes_both_requests() -> None:
    """It may change more today than it did when the cassette was written."""

    class Straight:
        """Turns curly quotes straight, as pydantic-ai's does."""

        @staticmethod
        def serialize(value: dict[str, Any]) -> str:
            return json.dumps(value, ensure_ascii=False).replace(
                "\N{RIGHT SINGLE QUOTATION MARK}", "'"
            )

        deserialize = staticmethod(json.loads)

    cassette = Cassette("any.yaml", serializer=Straight)
    request = Request("POST", "https://odd.test/v1/x", '{"a": "it\u2019s"}', {})
    assert request_as_written(cassette, request).body == b'{"a": "it\'s"}'
